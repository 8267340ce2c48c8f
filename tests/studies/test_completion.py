"""Scripts of completion, in a real shell."""

import shutil
import subprocess
from pathlib import Path

import pytest

from studies.cli import main

ASK = """\
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMP_LINE="$*"
_shtab_halftruth
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("completion") / "halftruth"
    with pytest.MonkeyPatch.context() as patch, made.open("w") as file:
        patch.setattr("sys.stdout", file)
        assert main(["completion", "bash"]) == 0
    return made


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["rec"], {"records"}),
        (["data", "s"], {"split"}),
        (["fit", "--eps"], {"--epsilon"}),
        (["run", "--on", "s"], {"simulation"}),
        (["report", ""], {"here"}),
        (["fit", "vo"], {"votes.csv"}),
    ],
)
def test_bash_completes(words: list[str], wanted: set[str], bash: Path, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "votes.csv").touch()
    command = ["bash", "-c", ASK, "bash", str(bash), "halftruth", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert wanted <= {line.strip() for line in done.stdout.splitlines()}


@pytest.mark.parametrize(("shell", "first"), [("zsh", "#compdef halftruth"), ("fish", "complete -c halftruth")])
def test_other_shells_have_scripts(shell: str, first: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert first in said and "epsilon" in said
