"""`halftruth records`: estimates from a file's own records, what they pay, and what is refused before they do."""

import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from client.ledger_view import read_entries
from client.sources.record_columns import RecordColumns
from client.sources.record_table import read_record_table
from protocol.privacy import Unit
from server.estimators.newton import EstimationError
from server.mechanisms.gaussian import analytic_noise_multiplier
from server.release_file import read_releases
from studies import in_process
from studies.cli import main
from studies.fit.state import CURATOR, LEDGER
from studies.records.exact import Flat, flat, loss, minimiser
from studies.tails import tail_index

N = 400
CENTRAL = ("--trust", "central", "--epsilon", "2", "--id", "id")
DESCENT = ("--model", "linear", "--response", "y", "--rounds", "3", "--step", "0.5", "--threshold", "3")


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """400 records of 40 people: x from a heavy tail, y = 2 x - 1 and noise, z 0 or 1."""
    random = np.random.default_rng(3)
    x, noise = (random.pareto(2.5, N) + 1).tolist(), random.normal(size=N).tolist()
    lines = ["id,who,x,y,z"]
    for row in range(N):
        z = int(random.random() < 0.3)
        lines.append(f"c{row},p{row % 40},{x[row]!r},{2 * x[row] - 1 + noise[row]!r},{'yes' if z else 'no'}")
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> dict[str, Any]:
    """The JSON that the command prints."""
    state = ("--state", str(path.parent / "state"))
    assert main(["records", str(path), *words, *state, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> str:
    """What is said where the command is wrong use; nothing is kept then."""
    assert main(["records", str(path), *words, "--state", str(path.parent / "state")]) == 2
    assert not (path.parent / "state").exists()
    return capsys.readouterr().err


def test_a_private_mean_is_near_and_pays_once(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--columns", "x", *CENTRAL, "--tail", "1", "--moment", "5")
    first, second = (run(capsys, losses, *words) for _ in range(2))
    assert (first.pop("charged_rows"), second.pop("charged_rows")) == (N, 0)
    assert first == second
    mean = run(capsys, losses, "--columns", "x", "--trust", "clear")["estimate"]["x"]
    assert abs(first["estimate"]["x"] - mean) < 0.5  # noise has a deviation of 0.05
    assert first["guarantee"].startswith(
        "Guarantee: (epsilon = 2, delta = 0.00001) per record; neighbours: replace one"
    )
    assert (first["coins"], first["unit"], first["notes"]) == ("os", "record", [])
    again = run(capsys, losses, "--columns", "x", *CENTRAL, "--threshold", "4")  # another question
    assert again["charged_rows"] == N


def test_a_run_of_rounds_pays_once_and_goes_on_after_a_crash(
    losses: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--columns", "x", *CENTRAL, *DESCENT, "--intercept")
    state, answered = losses.parent / "state", in_process.reply
    calls = []

    def crash(raw: bytes, node: Any) -> bytes:
        calls.append(raw)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return answered(raw, node)

    with monkeypatch.context() as patched:
        patched.setattr(in_process, "reply", crash)
        assert main(["records", str(losses), *words, "--state", str(state)]) == 130
    released = [release.values for release in read_releases(state / CURATOR)]
    assert len(released) == 2
    found = run(capsys, losses, *words)
    assert found["charged_rows"] == 0  # paid at the first round, before the crash
    assert [release.values for release in read_releases(state / CURATOR)][:2] == released
    assert sum(entry.labels for entry in read_entries(state / LEDGER)) == N
    assert run(capsys, losses, *words) == found
    assert set(found["estimate"]) == {"x", "intercept"}


def test_holders_and_local_reports(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(
        capsys, losses, "--columns", "x", "--trust", "local", "--epsilon", "3", "--threshold", "6", "--id", "id"
    )
    assert (found["mechanism"], found["charged_rows"], found["claimed_delta"]) == ("piecewise", N, 0)
    low = run(
        capsys, losses, "--columns", "x", "--trust", "local", "--epsilon", "0.2", "--threshold", "6", "--id", "id"
    )
    assert low["mechanism"] == "duchi"
    own = run(
        capsys,
        losses,
        *("--columns", "x", "--trust", "central", "--epsilon", "4", "--threshold", "4", "--holder", "who"),
        *("--unit", "holder"),
    )
    assert (own["rows"], own["charged_rows"], own["unit"]) == (40, 40, "holder")
    assert own["neighbours"] == "replace all records of one holder"


def test_what_a_threshold_cuts_is_told_of_clear_runs_alone(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([float(line.split(",")[2]) for line in losses.read_text().splitlines()[1:]])
    words = ("records", str(losses), "--columns", "x", "--threshold", "3", "--state", str(losses.parent / "state"))
    assert main([*words, "--trust", "clear"]) == 0
    assert f"would cut {(x > 3).sum()} records" in capsys.readouterr().out
    assert main([*words, *CENTRAL]) == 0
    shown = capsys.readouterr()
    assert "would cut" not in shown.out + shown.err
    assert "tail index" not in shown.out + shown.err


def test_a_tail_without_a_mean_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fires.csv"
    acres = ((np.arange(5000) + 0.5) / 5000) ** (-1 / 0.6)
    path.write_text("acres\n" + "\n".join(map(repr, acres.tolist())), encoding="utf-8")
    (told,) = run(capsys, path, "--columns", "acres", "--trust", "clear")["warnings"]
    assert told.startswith(
        "no-mean: acres: tail index 0.60 ± 0.04 (Hill, 250 largest) of values, below 1: such a law has no mean"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trust", "central", "--epsilon", "1", "--threshold", "3"), "--id: expected a column of ids"),
        ((*CENTRAL,), "--threshold: expected a bound known beforehand"),
        ((*CENTRAL, "--tail", "0.5"), "--threshold: expected"),
        ((*CENTRAL, "--threshold", "-1"), "--threshold: expected a number"),
        ((*CENTRAL, "--threshold", "3", "--shape", "round"), "--shape"),
        ((*CENTRAL, "--threshold", "3", "--seed", "1"), "--seed"),
        ((*CENTRAL, "--threshold", "3", "--coins", "addressed"), "--coins addressed: protects nobody"),
        ((*CENTRAL, "--threshold", "3", "--scale", "x"), "--scale: expected NAME=NUMBER"),
        ((*CENTRAL, "--threshold", "3", "--scale", "y=2"), "expected centres and scales of numeric columns"),
        ((*CENTRAL, "--threshold", "3", "--missing", "guess"), "missing"),
        (
            ("--trust", "local", "--epsilon", "1", "--threshold", "3", "--id", "id", "--mechanism", "laplace"),
            "--mechanism: expected one of duchi, piecewise, hybrid, discrete-laplace, duchi-cube, whose draws",
        ),
        (
            ("--trust", "local", "--epsilon", "1", "--threshold", "3", "--id", "id", "--delta", "1e-5"),
            "--delta: the claim of piecewise has none",
        ),
        (
            (*CENTRAL, "--threshold", "3", "--estimator", "algorithm-1"),
            "--threshold: this estimator has no such option",
        ),
        ((*CENTRAL, "--threshold", "mse"), "--threshold: expected a bound known beforehand"),
        ((*CENTRAL, "--tail", "2", "--moment", "4"), "--tail: expected v in (0, 1], got 2"),
        ((*CENTRAL, "--threshold", "3", "--rounds", "5"), "--rounds: this estimator has no such option"),
        ((*CENTRAL, "--threshold", "3", "--missing", "drop"), "--missing: expected one of"),
        (("--trust", "clear", "--epsilon", "1"), "a clear estimate makes no claim"),
        (("--trust", "clear", "--unit", "holder"), "--holder: expected a column of holders"),
        (("--trust", "clear", "--model", "linear"), "--response: expected one"),
        (("--trust", "clear", "--model", "linear", "--response", "y"), "--step: expected a number"),
    ],
)
def test_wrong_use_is_told_before_anybody_pays(
    losses: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert said in refused(capsys, losses, "--columns", "x", *words)


def test_a_cell_that_does_not_read_is_named_on_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "losses.csv"
    path.write_text('id,x\na,1\nb,"1,234"\n', encoding="utf-8")
    said = refused(capsys, path, "--columns", "x", *CENTRAL, "--threshold", "3")
    assert "losses.csv, line 3, column x: expected a number without separators of thousands, got '1,234'" in said
    assert "found none" in refused(capsys, tmp_path / "none.csv", "--columns", "x", *CENTRAL)


def test_rounds_of_the_theorems_need_constants_that_no_file_says(
    losses: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theory = ("--columns", "x", "--model", "linear", "--response", "y", "--rounds", "theory", "--step", "theory")
    words = ("records", str(losses), *theory, *CENTRAL, "--bound", "2", "--state", str(losses.parent / "state"))
    bounds, said = ("--tail", "0.5", "--moment", "4"), ("--curvature", "1", "--smoothness", "2")
    assert main([*words, *bounds]) == 2
    assert "expected --curvature and --smoothness" in capsys.readouterr().err
    assert main([*words, *bounds, *said]) == 0
    assert "Charged: 400 records" in capsys.readouterr().out


CHOICES: list[tuple[str, ...]] = [
    ("--threshold", "private"),
    ("--threshold", "histogram"),
    ("--estimator", "algorithm-3", "--tail", "0.5", "--moment", "4"),
    ("--aggregate", "trimmed-mean", "--trim", "0.1", "--threshold", "4"),
    ("--estimator", "hard-thresholding", "--sparsity", "1", "--threshold", "4"),
    ("--estimator", "hard-thresholding", "--sparsity", "1", "--threshold", "4", "--mechanism", "peeling-pure"),
]


@pytest.mark.parametrize("words", CHOICES, ids=str)
def test_a_curator_chooses_with_the_systems_coins(
    losses: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    first, second = (run(capsys, losses, "--columns", "x,y", *CENTRAL, *words) for _ in range(2))
    assert first["coins"] == "os" and first["guarantee"].startswith("Guarantee: ")
    assert first.pop("charged_rows") > second.pop("charged_rows") == 0
    assert first == second
    state = losses.parent / "state"
    assert main(["ledger", "show", str(state / CURATOR), "--json"]) == 0
    (together,) = json.loads(capsys.readouterr().out)["together"]
    assert (together["unit"], together["epsilon added"]) == ("record", "2")
    spent = [(entry.epsilon, entry.delta) for entry in read_entries(state / LEDGER) if entry.labels == N]
    groups = read_releases(state / CURATOR)[0].request.mechanism == "gaussian-classical"  # a row is in one
    assert groups or sum(epsilon for epsilon, _ in spent if epsilon is not None) == 2


def test_addressed_coins_simulate_what_is_not_exact(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    addressed = ("--public-data", "--coins", "addressed", "--seed", "5", "--columns", "x")
    for more in (
        ("--trust", "central", "--epsilon", "2", "--estimator", "algorithm-3", "--tail", "0.5", "--moment", "4"),
        ("--trust", "central", "--epsilon", "2", "--estimator", "algorithm-3", "--threshold", "4"),
        ("--trust", "central", "--epsilon", "2", "--threshold", "private"),
        ("--trust", "local", "--epsilon", "2", "--mechanism", "laplace", "--threshold", "5"),
    ):
        first, second = (run(capsys, losses, *addressed, *more) for _ in range(2))
        assert first == second
        assert first["guarantee"].startswith("Guarantee: none, coins are addressed")
        assert first["charged_rows"] == 0


@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.HOLDER])
def test_exact_answers_are_those_of_another_implementation(losses: Path, unit: Unit) -> None:
    columns = RecordColumns(("x",), "linear", unit, "y", "id", "who", intercept=True)
    linear = flat(read_record_table(losses, False, columns))
    assert linear.responses is not None
    assert linear.weights.sum() == pytest.approx(1)
    fitted = LinearRegression(fit_intercept=False).fit(linear.features, linear.responses, linear.weights)
    found = minimiser("linear", linear)
    assert found == pytest.approx(fitted.coef_, rel=1e-9)
    least = loss("linear", linear, found)
    assert all(loss("linear", linear, found + step) > least for step in 0.01 * np.eye(2))
    logistic = flat(read_record_table(losses, False, replace(columns, model="logistic", response="z=yes")))
    model = LogisticRegression(C=1 / 0.1, fit_intercept=False, tol=1e-12, max_iter=1000)
    model.fit(logistic.features, logistic.responses, logistic.weights)
    assert minimiser("logistic", logistic, ridge=0.1) == pytest.approx(model.coef_[0], abs=1e-5)


def test_there_is_no_exact_answer_where_records_leave_it_open() -> None:
    twice, weights = np.ones((4, 2)), np.full(4, 0.25)
    with pytest.raises(EstimationError, match="linearly dependent"):
        minimiser("linear", Flat(twice, np.arange(4.0), weights))


def test_tail_indices_of_exact_quantiles() -> None:
    for index in (0.7, 1.5, 3.0):
        values = ((np.arange(100_000) + 0.5) / 100_000) ** (-1 / index)
        found = tail_index(values * np.where(np.arange(100_000) % 2, 1, -1))
        assert found is not None
        assert found.index == pytest.approx(index, rel=0.01)
        assert found.no_mean == (index < 1)
    assert tail_index(np.ones(100)) is None
    assert tail_index(np.arange(8.0)) is None


def test_bounds_and_noise_are_told(losses: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They follow from what was asked, so that everybody may know them."""
    central = run(capsys, losses, "--columns", "x", *CENTRAL, "--threshold", "4")["accuracy"]
    noise = analytic_noise_multiplier(Decimal(2), Decimal("1e-5")) * 2 * 4 / N
    assert central == f"Bounded at 4 a coordinate; noise of standard deviation {noise:.3g} in each mean"
    local = ("--trust", "local", "--epsilon", "2", "--id", "id", "--mechanism", "duchi", "--threshold", "4")
    growth = math.exp(2)
    most = 4 * (growth + 1) / (growth - 1) / math.sqrt(N)  # of +-kB at 0
    told = f"Bounded at 4 a coordinate; noise of standard deviation at most {most:.3g} in each mean"
    assert run(capsys, losses, "--columns", "x", *local)["accuracy"] == told
    assert run(capsys, losses, "--columns", "x", "--trust", "clear")["accuracy"] is None
