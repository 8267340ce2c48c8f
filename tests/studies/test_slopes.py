"""Slopes of errors in n: exact power laws, and the exponents of theory as measured."""

import sys
from pathlib import Path

import pytest

from protocol.trust import Trust
from studies.folder import Folder
from studies.heavy_runs import LAWS, of_tail
from studies.load import load
from studies.report.view import View
from studies.run import run
from studies.slopes import fit, main, markdown, slopes

TOML = Path(__file__).parents[2] / "studies" / "toml"


def measured(tail: str, out: Path, *overrides: str) -> View:
    run(load(TOML / "heavy-slopes.toml", [*of_tail(tail), *overrides]), out, jobs=1)
    return View.open(Folder(out))


def test_power_laws_are_found_exactly() -> None:
    counts = [100, 300, 1000]
    slope, se = fit(counts, [n**-0.3 for n in counts], [0.1 * n**-0.3 for n in counts])
    assert slope == pytest.approx(-0.3)
    assert se == pytest.approx(0.1 / 1.629, rel=1e-2)  # relative error / root of the sum of squares of log n


def test_imprecise_means_count_less() -> None:
    sure, _ = fit([10, 100, 1000], [1.0, 0.1, 0.1], [0.01, 0.001, 10.0])
    assert sure == pytest.approx(-1, abs=1e-3)


def test_a_small_study(tmp_path: Path) -> None:
    """Within 6 standard errors of what theory and the law's own bias say: 4 looks, 8e-9."""
    view = measured("0.5", tmp_path / "out", "grid.n=[100, 1000, 10000]", "study.repetitions=20")
    found = slopes(view)
    assert [one.trust for one in found] == [Trust.CENTRAL] * 2 + [Trust.LOCAL] * 2
    for one in found:
        assert one.expected == pytest.approx(-1 / 3 if one.trust is Trust.CENTRAL else -1 / 6)
        assert one.own == pytest.approx(one.expected * 1.2)
        assert one.own - 6 * one.se < one.slope < one.expected + 6 * one.se
    lines = list(markdown([view]))
    assert len(lines) == 6 and lines[2].startswith("| 0.5 | 1 | central/gaussian-classical/algorithm-1 | -0.")


def test_other_studies_have_no_slopes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ["study.repetitions=2", "grid.n=[50, 60]", "grid.epsilon=[1.0]"]
    run(load(TOML / "heavy-mean.toml", small), tmp_path / "out", jobs=1)
    with pytest.raises(ValueError, match="expected at least 3 n"):
        slopes(View.open(Folder(tmp_path / "out")))
    (tmp_path / "slopes-0.2").mkdir()
    (tmp_path / "slopes-0.2" / "study.json").write_text("{}", "utf-8")
    monkeypatch.setattr(sys, "argv", ["slopes", str(tmp_path)])
    assert main() == 2
    assert "studies.slopes:" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("tail", list(LAWS))
def test_exponents_of_theory(tail: str, tmp_path: Path) -> None:
    """Between theory's exponent and that of the law's own bias, to 6 standard errors: 12 looks, 2e-8."""
    for one in slopes(measured(tail, tmp_path / "out")):
        assert one.own - 6 * one.se < one.slope < one.expected + 6 * one.se, one
