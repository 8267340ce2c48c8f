"""How far one label moves a sum: exactly, at every scale, against all neighbours."""

import itertools

import numpy as np
import pytest

from protocol.features import rounded
from protocol.grid import to_integers
from server.mechanisms.sensitivity import largest_squared_norm


@pytest.mark.parametrize("radius", [None, 0.7])
@pytest.mark.parametrize("exponent", [-40, -3])
def test_no_neighbour_is_further_away_and_one_is_that_far(radius: float | None, exponent: int) -> None:
    rows = rounded(np.random.default_rng(1).normal(size=(5, 3)), exponent, radius).rows
    integers = to_integers(rows, exponent).tolist()
    moves = set()
    for labels in itertools.product((0, 1), repeat=5):
        for changed in range(5):
            other = [label ^ (row == changed) for row, label in enumerate(labels)]
            difference = [
                sum((b - a) * row[j] for a, b, row in zip(labels, other, integers, strict=True)) for j in range(3)
            ]
            moves.add(sum(value**2 for value in difference))
    assert max(moves) == largest_squared_norm(rows, exponent)


@pytest.mark.parametrize("exponent", [-930, -587, -200, 0, 200, 590])
def test_squares_that_doubles_cannot_hold_change_nothing(exponent: int) -> None:
    """At 2^-587 the four squares of the first row vanish one by one, and that of the second does not."""
    integers = np.random.default_rng(2).integers(-(1 << 49), 1 << 49, size=(200, 4))
    integers[0], integers[1] = int(0.70 * 2**50), [int(0.77 * 2**50), 0, 0, 0]
    exact = max(sum(value**2 for value in row) for row in integers.tolist())
    assert largest_squared_norm(integers * 2.0**exponent, exponent) == exact


def test_integers_decide_between_rows_that_doubles_do_not_tell_apart() -> None:
    near = np.array([[2.0**52, 1.0], [2.0**52, 3.0], [2.0**52, 2.0]])
    assert largest_squared_norm(near, 0) == (1 << 104) + 9
