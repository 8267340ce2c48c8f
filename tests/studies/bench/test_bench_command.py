"""`halftruth bench` as a person calls it; figures in children of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

from protocol.failure import RunFailed
from studies.bench import run as bench
from studies.bench.alone import alone
from studies.bench.figure import Figure, at_most
from studies.bench.figures import FIGURES
from studies.bench.row import OURS, PEER, Row, dump
from studies.cli import main

ROW = Row("help", "ours", OURS, "s", 0.1, 0.1, 0.1, 1.0, 1, True)
FLOWER = Row("help", "flwr --help", PEER, "s", 1.0, 1.0, 1.0, 10.0, 1, True)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given numbers in the place of measured ones: `import` fails, all others are the same."""

    def given(figure: Figure, runs: int, small: bool) -> list[Row]:
        if figure.name == "import":
            raise RunFailed("import: AssertionError: other bits")
        return [ROW, FLOWER]

    monkeypatch.setattr(bench, "alone", given)


def test_a_figure_runs_in_a_child_on_one_core() -> None:
    figure = Figure("help", "help", at_most(1), FIGURES["help"].prepare, cores=1)
    rows = alone(figure, 1, small=True)
    assert [(row.figure, row.role, row.small) for row in rows] == [("help", "ours", True), ("help", "limit", True)]


def test_a_child_that_fails_says_why() -> None:
    with pytest.raises(RunFailed, match="nothing: KeyError: 'nothing'"):
        alone(Figure("nothing", "nothing", at_most(1), FIGURES["help"].prepare), 1, small=True)


@pytest.mark.usefixtures("measured")
def test_a_table_a_file_and_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "bench.json"
    assert main(["bench", "help", "--small", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "halftruth bench help --small --runs 5" in said and "flwr --help" in said and "<= 0.3 s" in said
    assert main(["bench", "help", "--small", "--against", str(out)]) == 0
    assert "1 ratios compared" in capsys.readouterr().out


@pytest.mark.usefixtures("measured")
def test_a_ratio_that_fell_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "recorded.json"
    dump([Row("help", "flwr --help", PEER, "s", 1.0, 1.0, 1.0, 25.0, 5, True)], {}, path)
    assert main(["bench", "help", "--small", "--against", str(path)]) == 1
    assert "help, peer flwr --help: expected a ratio of at least 25 / 2, got 10" in capsys.readouterr().err
    assert main(["bench", "help", "--small", "--against", str(path), "--margin", "3"]) == 0


@pytest.mark.usefixtures("measured")
def test_a_figure_that_fails_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "help", "import", "--small"]) == 1
    said = capsys.readouterr()
    assert "help: halftruth --help in a new process" in said.out
    assert "halftruth: import: AssertionError: other bits" in said.err


def test_help_of_bench_shows_examples_and_waits_for_no_library() -> None:
    script = "import sys; from studies.cli import main\ntry: main(['bench', '--help'])\nexcept SystemExit: pass\n"
    script += "print(sorted(set(sys.modules) & {'numpy', 'rich', 'numba', 'flwr', 'scipy'}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n") and "halftruth bench --small" in done.stdout.split("examples:")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bench", "walk"], "expected figures out of"),
        (["bench", "--margin", "0.5"], "expected a factor >= 1"),
        (["bench", "--runs", "0"], "at least 1"),
        (["bench", "help", "--against", "{out}/nowhere.json"], "found none"),
        (["bench", "help", "--out", "{out}"], "expected a file in a folder"),
        (["bench", "--scaling"], "expected --out DIR"),
        (["bench", "help", "--round", "--out", "{out}"], "without figures"),
    ],
)
def test_wrong_use_of_bench_is_2(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main([word.format(out=tmp_path) for word in words])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2 and message in capsys.readouterr().err
