"""A private choice of threshold: the trap without a base measure, printed errors."""

import math
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol.coins import Address, Floats, Stream, Words, normal, uniform, words
from protocol.privacy import Unit
from server.choice_record import ChoiceRequest
from server.mechanisms.exact_choices import THRESHOLD
from server.mechanisms.gaussian import analytic_noise_multiplier
from server.mechanisms.threshold_choice import DECAY, counts_above, threshold_grid, usual_target
from server.simulated_choice import simulated_choice

LEVEL, REST, FIVE = Decimal("0.4"), Decimal("0.6"), Decimal("1e-5")


def test_the_grid_is_exact_powers() -> None:
    grid = threshold_grid(-4, 4)
    assert grid[::2].tolist() == [0.25, 0.5, 1, 2, 4]
    assert grid[1::2] == pytest.approx([2**-1.5, 2**-0.5, 2**0.5, 2**1.5], rel=1e-15)
    with pytest.raises(ValueError, match="first"):
        threshold_grid(2, 1)


def test_counts_are_strict_and_both_sided() -> None:
    values = np.array([-4.0, 1, 0.5, 4.1, 0])
    assert counts_above(values, np.array([0.0, 1, 4, 5])).tolist() == [4, 2, 1, 0]
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="finite"):
            counts_above(np.array([bad]), np.array([1.0]))


def cut(counts: NDArray[np.int64], target: float, coins: Words, decay: Decimal) -> float:
    """The threshold of the usual grid that a simulated curator takes."""
    thresholds, fine = threshold_grid(), 1 << 20
    scores = [fine * int(count) - round(fine * target) for count in counts]
    width, level = len(thresholds), LEVEL
    asked = ChoiceRequest(b"t", 0, (), 1, -20, fine, width, THRESHOLD, level, None, Unit.RECORD, decay=decay)
    return float(thresholds[simulated_choice(asked, scores, coins).places[0]])


def errors(repetitions: int, decay: Decimal) -> Iterator[float]:
    """|error| of a clipped mean of 10^4 values of Pareto(1.6), epsilon = 1: 0.4 for the threshold, 0.6 for the mean."""
    n, thresholds = 10_000, threshold_grid()
    multiplier = analytic_noise_multiplier(REST, FIVE)
    target = usual_target(multiplier, LEVEL)
    for repetition in range(repetitions):
        x: Floats = uniform(words(Address(21, Stream.LABELS, n, repetition), 0, n)) ** (-1 / 1.6)
        coins = words(Address(21, Stream.CURATOR, n, repetition), 0, len(thresholds) + 1)
        bound = cut(counts_above(x, thresholds), target, coins[:-1], decay)
        noise = 2 * bound * multiplier / n * float(normal(coins[-1:])[0])
        yield abs(float(np.minimum(x, bound).mean()) + noise - 1.6 / 0.6)


def test_errors_of_the_printed_table() -> None:
    """0.157 with a standard error of 0.005 over 200 repetitions there; within four joint standard errors here."""
    found = list(errors(150, DECAY))
    error = float(np.std(found)) / math.sqrt(len(found))
    assert abs(float(np.mean(found)) - 0.157) <= 4 * math.hypot(error, 0.005)


def test_without_a_base_measure_the_mean_error_is_absurd() -> None:
    found = list(errors(60, Decimal(0)))
    assert float(np.mean(found)) > 20 and float(np.median(found)) < 2


def test_targets_and_nonsense() -> None:
    assert usual_target(5.0, LEVEL) == pytest.approx(7 + 2 * math.log(10) / 0.4)
    for call in (
        lambda: usual_target(0.0, LEVEL),
        lambda: usual_target(1.0, LEVEL, failure=1.0),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()
