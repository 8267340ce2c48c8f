"""Scales of selections against the printed table, and claims that hold, or are refused."""

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.coins import Address, Stream, words
from server.mechanisms.loss_distributions import peeling_epsilon, peeling_scale
from server.mechanisms.selections import SELECTIONS
from server.mechanisms.zcdp import zcdp_delta_bound

FIVE = Decimal("1e-5")
# epsilon, s, scales: printed, Cai, zCDP, loss distributions, pure, Gumbel = Gaussian; true levels of the printed one by
# zCDP, loss distributions, pure; that of Cai by zCDP
TABLE_C = (
    ("0.5", 5, 85.839, 52.565, 38.336, 29.502, 30.000, 24.246, 0.2094, 0.1652, 0.1747, 0.3555),
    ("0.5", 20, 171.677, 105.130, 76.672, 67.912, 120.000, 48.491, 0.2094, 0.1845, 0.3495, 0.3555),
    ("0.5", 100, 383.882, 235.079, 171.443, 157.488, 600.000, 108.430, 0.2094, 0.1941, 0.7815, 0.3555),
    ("1.0", 5, 42.919, 26.283, 20.226, 14.893, 15.000, 12.792, 0.4426, 0.3404, 0.3495, 0.7524),
    ("1.0", 20, 85.839, 52.565, 40.451, 35.843, 60.000, 25.584, 0.4426, 0.3890, 0.6990, 0.7524),
    ("1.0", 100, 191.941, 117.539, 90.452, 83.162, 300.000, 57.207, 0.4426, 0.4056, 1.5630, 0.7524),
    ("4.0", 5, 10.730, 6.571, 5.788, 3.748, 3.750, 3.661, 2.0032, 1.3915, 1.3980, 3.4641),
    ("4.0", 20, 21.460, 13.141, 11.576, 10.202, 15.000, 7.321, 2.0032, 1.7516, 2.7959, 3.4641),
    ("4.0", 100, 47.985, 29.385, 25.884, 23.924, 75.000, 16.370, 2.0032, 1.8279, 6.2519, 3.4641),
)
COLUMNS = {
    "peeling-paper": 2,
    "peeling-cai": 3,
    "peeling-zcdp": 4,
    "peeling-pure": 6,
    "permute-and-flip": 6,
    "gumbel-gaussian": 7,
}


@pytest.mark.parametrize("row", TABLE_C)
def test_table_of_scales(row: tuple[str | float, ...]) -> None:
    level, s = Decimal(str(row[0])), int(row[1])
    for name, column in COLUMNS.items():
        assert SELECTIONS[name].noise_scale(level, FIVE, s) == pytest.approx(row[column], abs=5.1e-4), name
    paper, cai = SELECTIONS["peeling-paper"], SELECTIONS["peeling-cai"]
    scale = paper.noise_scale(level, FIVE, s)
    assert paper.computed_epsilon(FIVE, s, scale) == pytest.approx(min(float(row[8]), float(row[10])), abs=5.1e-5)
    assert paper.cost(s, scale).pure == pytest.approx(row[10], abs=5.1e-5)
    # By zCDP alone: it is also worth no less than the smaller of both.
    assert zcdp_delta_bound(paper.cost(s, scale).rho, float(row[8]) + 5.1e-5) <= 1e-5
    assert zcdp_delta_bound(cai.cost(s, cai.formula(level, FIVE, s)).rho, float(row[11]) + 5.1e-5) <= 1e-5


@pytest.mark.usefixtures("accountant")
@pytest.mark.parametrize("row", [TABLE_C[index] for index in (0, 3, 4, 6)])
def test_loss_distributions_agree_with_the_table(row: tuple[str | float, ...]) -> None:
    level, s, paper = Decimal(str(row[0])), int(row[1]), SELECTIONS["peeling-paper"]
    scale = paper.noise_scale(level, FIVE, s)
    found = peeling_epsilon(FIVE, s, scale)
    assert found == pytest.approx(row[9], abs=1.1e-4)
    assert found <= paper.computed_epsilon(FIVE, s, scale)
    assert peeling_scale(level, FIVE, s, float(row[4])) == pytest.approx(row[5], rel=1e-3)
    with pytest.raises(ValueError, match="scale"):
        peeling_scale(level, FIVE, s, 0.5 * float(row[5]))


@settings(max_examples=30)
@given(
    st.sampled_from(sorted(SELECTIONS)),
    st.sampled_from(["0.01", "0.5", "1", "4", "30"]),
    st.sampled_from(["1e-3", "1e-5", "1e-12"]),
    st.integers(1, 300),
)
def test_a_scale_that_is_given_keeps_the_claim(name: str, epsilon: str, delta: str, s: int) -> None:
    selection, level, limit = SELECTIONS[name], Decimal(epsilon), Decimal(delta)
    try:
        scale = selection.noise_scale(level, limit, s)
    except ValueError:
        assert name in {"peeling-paper", "peeling-cai"} and level >= 4
        return
    assert selection.computed_epsilon(limit, s, scale) <= float(level)
    more = selection.noise_scale(level, limit, s + 1)
    assert more > scale
    assert selection.noise_scale(level / 2, limit, s) > scale
    assert selection.computed_epsilon(limit, s, 2 * scale) <= selection.computed_epsilon(limit, s, scale)


def test_printed_scales_are_refused_where_no_proof_is_known() -> None:
    """5.64 log(1/delta) and 0.418 log(1/delta), by the simple conversion; the tight one proves a little more."""
    for name, good, bad in (("peeling-paper", 5.64, 6.3), ("peeling-cai", 0.418, 0.9)):
        selection, log = SELECTIONS[name], math.log(1e5)
        selection.noise_scale(Decimal(str(round(good * log, 3))), FIVE, 300)
        with pytest.raises(ValueError, match=name):
            selection.noise_scale(Decimal(str(round(bad * log, 3))), FIVE, 300)


def test_the_paper_is_pure_for_few_coordinates() -> None:
    """3 s a <= epsilon for s <= 3.55 log(1/delta): forty at delta = 10^-5."""
    paper = SELECTIONS["peeling-paper"]
    assert paper.cost(40, paper.noise_scale(Decimal(1), FIVE, 40)).pure <= 1
    assert paper.cost(41, paper.noise_scale(Decimal(1), FIVE, 41)).pure > 1


def test_all_can_be_asked_the_same_way() -> None:
    vector = np.array([0.0, 300.0, -500.0, 1.0])
    for name, selection in SELECTIONS.items():
        rows = selection.word_rows(2)
        drawn = words(Address(3, Stream.CURATOR), 0, rows * 4).reshape(rows, 4)
        found = selection.select(vector, 2, 1.0, drawn)
        assert found.support.tolist() == [2, 1], name
        assert abs(found.vector(4) - [0, 300, -500, 0]).max() < 20, name
