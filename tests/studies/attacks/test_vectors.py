"""Attacks on vector reports, and how far they move aggregators against the table of an independent prototype.

Two fixed runs are compared cell by cell: at most max(1, cells / 1000) means beyond 4 joint standard errors, none
beyond 6. The seed was chosen before the first look. Where an error has no variance, a mean says nothing: left out.
"""

import csv
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from server.aggregators import AGGREGATORS
from studies.attacks.vector_errors import ATTACKS, LIARS, NOISES, Cell, cells, play
from studies.attacks.vectors import VECTOR_ATTACKS, Aim, collusion, flipped_labels, inside, small_shift

DATA = Path(__file__).parents[1] / "data" / "robust_errors.csv"
HEAVY = "student-t(1.5)"
HOLDERS = np.random.default_rng(4).standard_normal((30, 4))
TRUTH = np.array([0.5, -2.0, 0.0, 1.0])

# The prototype cut groups in one public order, the same in all repetitions.
ORDER = np.random.default_rng(0).permutation(50)


def no_variance(noise: str, attack: str, aggregator: str) -> bool:
    """Errors whose tail is that of one report, t with 1.5 degrees of freedom.

    With nobody lying four aggregators are the mean. Gross outliers use up a trimmed mean's cuts at their end, and
    small shifts are as large as the honest standard deviation, which has no variance either. Multi-Krum may keep all
    honest reports.
    """
    if noise != HEAVY:
        return False
    always = aggregator in ("mean", "multi-krum")
    return always or {"trimmed-mean": attack != "sign-flip", "median-of-means": attack == "none"}.get(aggregator, False)


@cache
def expected() -> dict[tuple[str, str, int, str], tuple[float, float]]:
    """Mean and standard error by noise, attack, number of liars and aggregator."""
    with DATA.open(encoding="utf-8") as lines:
        next(lines)
        return {
            (row["noise"], row["attack"], int(row["liars"]), row["aggregator"]): (
                float(row["mean"]),
                float(row["standard_error"]),
            )
            for row in csv.DictReader(lines)
        }


def deviations(cell: Cell) -> list[float]:
    """Joint standard errors between both runs; the table is rounded to 0.01."""
    found = []
    for name, errors in cell.errors.items():
        if not no_variance(cell.noise, cell.attack, name):
            mean, error = expected()[cell.noise, cell.attack, cell.liars, name]
            own = float(errors.std(ddof=1)) / math.sqrt(len(errors))
            found.append(abs(float(errors.mean()) - mean) / math.sqrt(own**2 + error**2 + 0.01**2 / 12.0))
    return found


def test_a_few_cells_of_the_table() -> None:
    chosen = [("normal", "sign-flip", 12), ("normal", "small-shift", 20), (HEAVY, "gross-outlier", 5)]
    found = [one for cell in chosen for one in deviations(play(*cell, order=ORDER))]
    assert len(found) == 21
    assert max(found) < 4.0


@pytest.mark.slow
def test_the_whole_table() -> None:
    found = [
        one
        for noise in NOISES
        for attack, liars in [("none", 0), *((attack, liars) for attack in ATTACKS for liars in LIARS)]
        for one in deviations(play(noise, attack, liars, order=ORDER))
    ]
    assert len(expected()) == 240 and len(found) == 212
    assert sum(one > 4.0 for one in found) <= 1 and max(found) < 6.0


def test_the_table_has_every_cell_once() -> None:
    first = next(cells())
    assert (first.noise, first.attack, first.liars) == ("normal", "none", 0)
    assert set(first.errors) == set(AGGREGATORS)
    assert {key[:3] for key in expected()} == {
        (noise, attack, liars)
        for noise in NOISES
        for attack, liars in [("none", 0), *((attack, liars) for attack in ATTACKS for liars in LIARS)]
    }


@pytest.mark.parametrize("name", sorted(VECTOR_ATTACKS))
@pytest.mark.parametrize("liars", [0, 1, 7])
def test_attacks_say_one_finite_vector_a_liar(name: str, liars: int) -> None:
    own, honest = HOLDERS[:liars], HOLDERS[liars:]
    kept = HOLDERS.copy()
    said = VECTOR_ATTACKS[name](honest, own, Aim(TRUTH, 3.0))
    assert said.shape == own.shape and said.dtype == np.float64 and np.isfinite(said).all()
    if liars:
        said[0] = 9.0  # theirs to change: nobody else's reports move
    assert (kept == HOLDERS).all()


def test_what_attacks_say() -> None:
    own, honest, aim = HOLDERS[:3], HOLDERS[3:], Aim(TRUTH, 3.0)
    said = {name: attack(honest, own, aim) for name, attack in VECTOR_ATTACKS.items()}
    assert (said["none"] == own).all()
    assert (said["sign-flip"] == -5.0 * own).all()
    assert (said["gross-outlier"] == 1000.0).all()
    assert said["small-shift"][1] == pytest.approx(honest.mean(axis=0) - 1.5 * honest.std(axis=0), rel=1e-12)
    assert (said["collusion"] == [-3.0, 3.0, 3.0, -3.0]).all()
    assert (flipped_labels(np.array([1.0, -2.5])) == [-1.0, 2.5]).all()


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("bound", [0.1, 1.0, 3.0, math.inf])
def test_attacks_inside_the_legal_range_are_legal(norm: str, bound: float) -> None:
    """No check of the range finds them, to the last bit; collusion is at the end of the range, against the truth."""
    aim = Aim(TRUTH, bound, norm)

    def size(reports: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(reports).max(axis=1) if norm == "linf" else np.sqrt((reports**2).sum(axis=1))

    said = small_shift(HOLDERS[5:], HOLDERS[:5], aim)
    assert (size(said) <= bound).all()
    assert (size(inside(1e6 * HOLDERS, aim)) <= bound).all()
    assert (inside(1e-3 * HOLDERS, aim) == 1e-3 * HOLDERS).all()
    if math.isinf(bound):
        with pytest.raises(ValueError, match="use gross_outlier"):
            collusion(HOLDERS[5:], HOLDERS[:5], aim)
        return
    said = collusion(HOLDERS[5:], HOLDERS[:5], aim)
    assert size(said) == pytest.approx(bound, rel=1e-14) and (size(said) <= bound).all()
    other = inside(np.random.default_rng(5).standard_normal((200, 4)) * 10.0, aim)
    assert (other @ TRUTH >= said[0] @ TRUTH - 1e-12).all()


def test_what_is_no_aim_is_refused() -> None:
    for truth, bound, norm in [(TRUTH, 0.0, "linf"), (TRUTH, math.nan, "linf"), (TRUTH, 1.0, "l1")]:
        with pytest.raises(ValueError, match="expected"):
            Aim(truth, bound, norm)
    for wrong in (np.zeros((2, 2)), np.array([math.nan])):
        with pytest.raises(ValueError, match="finite truth"):
            Aim(wrong)
    with pytest.raises(ValueError, match="truth that is not 0"):
        collusion(HOLDERS, HOLDERS[:2], Aim(np.zeros(4), 1.0, "l2"))
    with pytest.raises(ValueError, match="hide among"):
        small_shift(HOLDERS[:0], HOLDERS, Aim(TRUTH))


def test_robust_rules_stand_gross_outliers_and_the_mean_does_not() -> None:
    errors = play("normal", "gross-outlier", 12).errors
    assert errors["mean"].min() > 700.0
    for name in set(AGGREGATORS) - {"mean"}:
        assert errors[name].max() < 10.0, name
