"""A vote for the largest coordinate: its law written out with integers, its level, its mean, what is refused."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.numeric import numeric_channel
from protocol.numeric.unary import ONE, Unary

VOTES = [np.array([2.0, -1.0]), np.array([-2.0, 1.0]), np.array([1.0, 3.0]), np.array([0.5, -0.6])]


def channel(d: int, epsilon: str) -> Unary:
    named = {"epsilon": Decimal(epsilon), "threshold": Decimal(10), "dimension": Decimal(d)}
    found = numeric_channel("unary", named)
    assert isinstance(found, Unary)
    return found


def coins(made: Unary, bits: tuple[bool, ...], row: np.ndarray) -> np.ndarray:
    """Words that lead to these bits, each at the very edge of its interval."""
    vote = made.votes(row[None, :])[0]
    chances = [ONE // 2 if vote[j] == sign else made.other for sign in (1.0, -1.0) for j in range(made.dimension)]
    edges = [chance - 1 if bit else chance for bit, chance in zip(bits, chances, strict=True)]
    return np.array([[edge << 1 for edge in edges]], dtype=np.uint64)


def law(made: Unary, row: np.ndarray) -> dict[tuple[float, ...], Fraction]:
    """The probability of every report, by all outcomes of the bits."""
    vote, found = made.votes(row[None, :])[0], dict[tuple[float, ...], Fraction]()
    chances = [
        Fraction(1, 2) if vote[j] == sign else Fraction(made.other, ONE)
        for sign in (1.0, -1.0)
        for j in range(made.dimension)
    ]
    for bits in product([False, True], repeat=2 * made.dimension):
        chance = math.prod(p if bit else 1 - p for bit, p in zip(bits, chances, strict=True))
        report = tuple(made.report(row[None, :], coins(made, bits, row))[0].tolist())
        found[report] = found.get(report, Fraction(0)) + chance
    return found


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_level_mean_and_mse_by_the_whole_law(epsilon: str) -> None:
    made = channel(2, epsilon)
    laws = [law(made, row) for row in VOTES]
    worst = max(left[report] / right[report] for left in laws for right in laws for report in left)
    assert worst == Fraction(ONE - made.other, made.other)
    assert math.log(worst) <= float(made.level) * (1 + 1e-15)
    assert Decimal("0.999") * Decimal(epsilon) <= made.level <= Decimal(epsilon)
    for row, reports in zip(VOTES, laws, strict=True):
        vote = made.votes(row[None, :])[0]
        mean = sum((float(p) * np.array(report) for report, p in reports.items()), np.zeros(2))
        mse = sum(float(p) * float(((np.array(report) - vote) ** 2).sum()) for report, p in reports.items())
        assert mean == pytest.approx(vote, abs=1e-12)
        assert mse == pytest.approx(made.mse(row[None, :])[0], rel=1e-12)


@settings(max_examples=30)
@given(
    st.integers(1, 300), st.decimals(min_value=Decimal("0.001"), max_value=30, places=4).filter(lambda level: level > 0)
)
def test_levels_never_exceed_what_was_asked(d: int, epsilon: Decimal) -> None:
    made = channel(d, str(epsilon))
    assert Decimal("0.999") * epsilon <= made.level <= epsilon
    assert made.live


def test_votes_and_legal_reports() -> None:
    made = channel(3, "1")
    rows = np.array([[1.0, -1.0, 0.5], [0.0, 0.0, 0.0], [0.1, 0.2, -9.0]])
    assert made.votes(rows).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, -1]]
    drawn = np.random.Generator(np.random.Philox(5)).integers(0, 1 << 64, size=(3, made.words), dtype=np.uint64)
    reports = made.report(rows, drawn)
    assert made.legal(reports).all()
    for wrong in (np.nan, np.inf, 1.0, float(made.outputs[2]) * (1 + 1e-15)):
        spoiled = reports.copy()
        spoiled[1, 2] = wrong
        assert made.legal(spoiled).tolist() == [True, False, True]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="other < 2"):
        Unary(channel(2, "1").terms, 0)
    with pytest.raises(ValueError, match="parameters"):
        numeric_channel("unary", {"epsilon": Decimal(1), "threshold": Decimal(1)})
    with pytest.raises(ValueError, match="out of"):
        numeric_channel("nonary", {})
