"""The replica of a notebook's experiment: its borders, its two plots, and its numbers."""

import math
from pathlib import Path

import numpy as np
import pytest

from protocol.study import Cell
from studies.in_process import run_cell
from studies.load import load, tables
from studies.notebook import FLIPPED, NOISY, NOTHING, TITLE, TOML, ZERO, Line, draw, drawn_anew, main, measure, table

# An independent replica with fresh truths, 100 repetitions: (epsilon, n) -> plotted value of flipped labels, then the
# true errors of no privacy, of flipped labels, and of noise in every step.
REPLICA = {
    (0.1, 1000): (0.0925, 1.62, 2.93, 2.88),
    (0.1, 10000): (0.0287, 1.55, 2.87, 2.87),
    (1.0, 1000): (0.0814, 1.61, 2.58, 2.10),
    (1.0, 10000): (0.0233, 1.61, 2.33, 1.67),
}


def test_the_file_says_what_it_is_and_makes_no_claim_for_noise() -> None:
    loaded = load(TOML)
    assert loaded.study.name.startswith("notebook-replica")
    assert "NO PRIVACY CLAIM" in TOML.read_text("utf-8")
    assert float(loaded.study.problem.bound or 0) == pytest.approx(np.linalg.norm(loaded.theta), abs=1e-8)
    for outcome in run_cell(loaded.study, loaded.truth, Cell(1000, 0, 1), clients=2):
        noisy = outcome.arm.get("nominal") is not None
        assert (outcome.claim is None) == (outcome.arm.trust_name != "local")
        assert any("no-claim" in text for text in outcome.warnings) == noisy
        assert any("replica" in text for text in outcome.warnings) == (outcome.arm.estimator == "notebook-sgd")


def test_truths_are_drawn_anew_and_told_to_the_ball() -> None:
    one, other = (drawn_anew(tables(TOML), repetition) for repetition in (0, 1))
    assert not np.allclose(one.theta, other.theta)
    assert float(one.study.problem.bound or 0) == pytest.approx(np.linalg.norm(one.theta), rel=1e-12)
    assert abs(one.theta.sum()) > 0.1  # not centred


def test_both_plots_are_made_and_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["notebook", str(tmp_path), "--once", "--set", "study.repetitions=2", "--set", "grid.n=[1000, 2000]"]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 0
    assert len(list(tmp_path.glob("notebook_replica.*"))) == 2
    assert "plotted: error / sqrt(n)" in capsys.readouterr().out
    found = measure(tables(TOML, words[4:5] + words[6:7]), anew=True)
    figure = draw(found)
    assert "REPLICA" in TITLE and figure.get_suptitle() == TITLE
    assert [axes.get_ylabel() for axes in figure.axes] == ["error / √n", "error"]
    assert len(list(table(found))) == 2 + len(found)


@pytest.mark.slow
def test_the_table_of_an_independent_replica() -> None:
    """Two fixed runs of 100 truths each: no mean beyond 4 joint standard errors; spreads of both are alike."""
    found = measure(tables(TOML, ["grid.n=[1000, 10000]"]), anew=True)
    for (epsilon, n), (plotted, *errors) in REPLICA.items():
        lines = (Line(NOTHING, None), Line(FLIPPED, epsilon), Line(NOISY, epsilon))
        for line, expected in zip(lines, errors, strict=True):
            own = np.array(found[line, n])
            joint = math.sqrt(2) * own.std(ddof=1) / 10
            assert abs(own.mean() - expected) < 4 * joint + 0.005, (line, n, own.mean())
        assert float(np.mean(found[lines[1], n])) / math.sqrt(n) == pytest.approx(plotted, rel=0.25)
    for n in (1000, 10000):  # the true error does not fall; flipped labels are worse than the answer 0
        assert np.mean(found[Line(FLIPPED, 0.1), n]) > np.mean(found[Line(ZERO, None), n])
    assert np.mean(found[Line(NOTHING, None), 10000]) > 0.8 * np.mean(found[Line(NOTHING, None), 1000])
