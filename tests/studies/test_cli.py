"""The command line: exit codes, messages, and a help that does not keep people waiting."""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.cli import _parser, main

ROOT = Path(__file__).parents[2]
FEW = ("--set", "study.repetitions=2", "--set", "grid.n=[150]", "--jobs", "1")


def code_of(*words: str) -> int:
    try:
        return main(words)
    except SystemExit as stopped:  # argparse
        return int(stopped.code or 0)


def test_help_loads_no_library() -> None:
    script = "import sys; from studies.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    script += "print(sorted(set(sys.modules) & {'numpy', 'rich', 'numba', 'pyarrow', 'matplotlib', 'scipy'}))"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "halftruth report out/quick" in done.stdout
    assert time.perf_counter() - began < 3  # 0.05 s on an idle machine


FEDERATION = ("up", "status", "down", "server", "certs", "keys new", "keys register", "keys list", "keys revoke")
COMMANDS = (
    "run",
    "report",
    "watch",
    "fit",
    "federate",
    "policy",
    "attack",
    "node",
    "data split",
    "plan",
    "ledger show",
    *FEDERATION,
)


@pytest.mark.parametrize("command", ["run", "report", "watch", "federate", "node", *FEDERATION])
def test_every_command_shows_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*command.split(), "--help") == 0
    assert f"halftruth {command}" in capsys.readouterr().out.split("examples:")[1]


@pytest.mark.parametrize("command", FEDERATION)
def test_help_of_commands_about_federations_loads_no_library(command: str) -> None:
    words = [*command.split(), "--help"]
    script = f"import sys; from studies.cli import main\ntry: main({words})\nexcept SystemExit: pass\n"
    script += "print(sorted(set(sys.modules) & {'numpy', 'cryptography', 'rich', 'flwr', 'scipy', 'deploy'}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_has_a_help_text(command: str) -> None:
    parser = _parser(command.split())
    for word in command.split():
        (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
        assert word in commands.choices
        parser = commands.choices[word]
    assert len(parser._actions) > 1
    assert not [action.dest for action in parser._actions if not action.help]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("--version") == 0
    assert re.fullmatch(r"halftruth (\d+\.\d+\.\d+\S*|unknown)\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "required: COMMAND"),
        (["walk"], "invalid choice: 'walk'"),
        (["run", "x.toml"], "--out"),
        (["run", "nowhere.toml", "--out", "{out}"], "nowhere.toml"),
        (["run", "{study}", "--out", "{out}", "--jobs", "0"], "at least 1"),
        (["run", "{study}", "--out", "{out}", "--clients", "many"], "at least 1"),
        (["run", "{study}", "--out", "{out}", "--on", "moon"], "in-process"),
        (["run", "{study}", "--out", "{out}", "--deadline", "5"], "--on deployment, got --on in-process"),
        (["run", "{study}", "--out", "{out}", "--on", "deployment", "--deadline", "nan"], "expected seconds > 0"),
        (["federate", "{out}", "--nodes", "{out}", "--superlink", "lab"], "not allowed with argument --nodes"),
        (["federate", "{out}"], "one of the arguments --nodes --superlink --federation is required"),
        (["federate", "{out}", "--nodes", "{out}", "--deadline", "0"], "expected seconds > 0"),
        (["federate", "{out}", "--nodes", "{out}"], "make one with halftruth data split"),
        (["run", "{study}", "--out", "{out}", "--federation"], "expected --on deployment"),
        (["federate", "{out}", "--federation", "{out}", "--on", "in-process"], "make one with halftruth data split"),
        (["run", "{study}", "--out", "{out}", "--resume", "--overwrite"], "got both"),
        (["run", "{study}", "--out", "{out}", "--set", "grid.epsilom=[1]"], "did you mean 'epsilon'"),
        (["report", "{out}"], "study.json"),
        (["run", "{study}", "--out", "{study}"], "--out: expected a folder, got the file"),
        (["run", "{study}", "--out", "{study}/sub"], "--out: expected a folder, got the file"),
        (["ledger"], "required: COMMAND"),
    ],
)
def test_wrong_use_is_2_and_says_why(
    words: list[str], message: str, study_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [word.format(study=study_path, out=tmp_path / "out") for word in words]
    assert code_of(*filled) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_and_its_report(study_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert code_of("run", str(study_path), "--out", out, *FEW) == 0
    shown = capsys.readouterr().out
    assert "n = 150" in shown
    assert "results.parquet" in shown
    assert f"halftruth report {out}" in shown
    assert code_of("run", str(study_path), "--out", out, *FEW) == 2
    assert "--resume" in capsys.readouterr().err
    assert code_of("run", str(study_path), "--out", out, *FEW, "--resume") == 0


def test_a_failed_run_is_1(study_text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.toml"
    study.write_text(study_text.replace("bound = 3.0\n", ""))
    few = ["--set", "study.repetitions=1", "--set", "grid.n=[2]", "--jobs", "1"]
    assert code_of("run", str(study), "--out", str(tmp_path / "out"), *few) == 1
    assert "n = 2, repetitions 0..0" in capsys.readouterr().err


def test_a_full_disk_or_no_permission_is_1(
    study_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / "parts").mkdir(parents=True)
    (out / "study.json").mkdir()  # a file that cannot be written
    assert code_of("run", str(study_path), "--out", str(out), *FEW, "--overwrite") == 1
    said = capsys.readouterr().err
    assert "study.json" in said and "Errno" not in said


UNMADE = (
    ["run", "{study}", "--out", "{bad}", *FEW],
    ["fit", "{votes}", "--trust", "local", "--epsilon", "1", "--state", "{bad}"],
    ["fit", "{votes}", "--trust", "central", "--epsilon", "1", "--state", "{bad}"],
    ["data", "split", "{votes}", "--nodes", "1", "--out", "{bad}"],
    ["attack", "studies/toml/attacks.toml", "--out", "{bad}", "--set", "study.repetitions=1"],
    ["policy", "studies/toml/downstream.toml", "--out", "{bad}", "--set", "bandit.worlds=1"],
)


@pytest.mark.parametrize("words", UNMADE, ids=lambda words: words[0])
def test_a_folder_that_cannot_be_made_is_wrong_use(
    words: list[str], study_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One whose name is more than a file system takes: said in words, with the flag, before anything is computed."""
    votes = tmp_path / "votes.csv"
    votes.write_text("labeler,item_a,item_b,winner\nann,x,y,x\n", encoding="utf-8")
    bad = tmp_path / ("n" * 300)
    flag = "--state" if "--state" in words else "--out"
    assert code_of(*(word.format(study=study_path, votes=votes, bad=bad / "sub") for word in words)) == 2
    said = capsys.readouterr().err
    assert f"{flag}: expected a folder that can be made, got {bad}" in said and "Errno" not in said


@pytest.mark.parametrize(("trust", "name"), [("local", "ledger.sqlite"), ("central", "curator.sqlite")])
def test_a_ledger_that_cannot_be_written_is_named_in_words(
    trust: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes, place = tmp_path / "votes.csv", tmp_path / "state" / name
    votes.write_text("labeler,item_a,item_b,winner\nann,x,y,x\n", encoding="utf-8")
    place.mkdir(parents=True)
    assert code_of("fit", str(votes), "--trust", trust, "--epsilon", "1", "--state", str(place.parent)) == 1
    said = capsys.readouterr().err
    assert f"{place}: " in said and "Is a directory" in said and "Errno" not in said


def test_a_report_on_half_a_run_says_how_to_go_on(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished, tmp_path / "out")
    (tmp_path / "out" / "results.parquet").unlink()
    assert code_of("report", str(tmp_path / "out")) == 2
    said = capsys.readouterr().err
    assert "finished units): go on with halftruth run" in said
    assert said.endswith("--resume\n")


def test_an_edited_study_json_is_noticed(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(finished, tmp_path / "out")
    record = tmp_path / "out" / "study.json"
    record.write_text(record.read_text().replace('"seed": 11', '"seed": 12'))
    assert code_of("report", str(tmp_path / "out")) == 2
    assert "edited" in capsys.readouterr().err


def test_module_and_command_are_one(study_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "studies", "report", "x"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("halftruth: x")
