"""A private choice of threshold: exact levels by enumeration, the trap without a base measure, printed errors."""

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from protocol.coins import Address, Floats, Stream, normal, uniform, words
from server.mechanisms.exact_selection import exponential_choice
from server.mechanisms.gaussian import analytic_noise_multiplier
from server.mechanisms.threshold_choice import (
    DECAY,
    choice_costs,
    choose_threshold,
    counts_above,
    simulate_threshold,
    threshold_grid,
    usual_target,
)

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


def test_the_level_is_kept_by_all_small_data_sets() -> None:
    """Three records of five sizes, all neighbours: losses and their range stay within the level."""
    thresholds, level, target = threshold_grid(0, 3), Decimal("1.5"), 1.0
    law = {}
    for data in product((0.0, 1.2, 1.9, 2.5, 9.0), repeat=3):
        costs = choice_costs(counts_above(np.array(data), thresholds), target, level)
        weights = [math.exp(-float(cost)) for cost in costs]
        law[data] = [weight / sum(weights) for weight in weights]
    worst = spread = 0.0
    for data, before in law.items():
        for place, size in product(range(3), (0.0, 1.2, 1.9, 2.5, 9.0)):
            after = law[(*data[:place], size, *data[place + 1 :])]
            losses = [math.log(p / q) for p, q in zip(before, after, strict=True)]
            worst, spread = max(worst, *map(abs, losses)), max(spread, max(losses) - min(losses))
    assert 0.5 < worst <= 1.5 + 1e-12
    assert spread <= 1.5 + 1e-12


def test_exact_and_simulated_choices_have_one_law() -> None:
    """4000 choices each, six standard deviations: a false alarm in 10^7."""
    thresholds, runs = threshold_grid(0, 4), 4000
    costs = choice_costs(np.array([30, 12, 6, 1, 0]), 5.5, LEVEL)
    weights = np.array([math.exp(-float(cost)) for cost in costs])
    law = runs * weights / weights.sum()
    randbits = random.Random(4).getrandbits
    exact = [choose_threshold(thresholds, costs, randbits) for _ in range(runs)]
    drawn = words(Address(8, Stream.CURATOR), 0, 5 * runs).reshape(runs, 5)
    simulated = [simulate_threshold(thresholds, costs, row) for row in drawn]
    for found in (exact, simulated):
        seen = np.array([found.count(threshold) for threshold in thresholds])
        assert (np.abs(seen - law) <= 6 * np.sqrt(law * (1 - law / runs))).all()


def test_costs_are_exact() -> None:
    costs = choice_costs(np.array([7, 3, 0]), 2.5, Decimal("0.4"))
    assert costs == [Fraction(9, 10), Fraction(1, 10) + DECAY, Fraction(1, 2) + 2 * DECAY]


def errors(repetitions: int, decay: Fraction) -> Iterator[float]:
    """|error| of a clipped mean of 10^4 values of Pareto(1.6), epsilon = 1: 0.4 for the threshold, 0.6 for the mean."""
    n, thresholds = 10_000, threshold_grid()
    multiplier = analytic_noise_multiplier(REST, FIVE)
    target = usual_target(multiplier, LEVEL)
    for repetition in range(repetitions):
        x: Floats = uniform(words(Address(21, Stream.LABELS, n, repetition), 0, n)) ** (-1 / 1.6)
        costs = choice_costs(counts_above(x, thresholds), target, LEVEL, decay)
        coins = words(Address(21, Stream.CURATOR, n, repetition), 0, len(thresholds) + 1)
        cut = simulate_threshold(thresholds, costs, coins[:-1])
        noise = 2 * cut * multiplier / n * float(normal(coins[-1:])[0])
        yield abs(float(np.minimum(x, cut).mean()) + noise - 1.6 / 0.6)


def test_errors_of_the_printed_table() -> None:
    """0.157 with a standard error of 0.005 over 200 repetitions there; within four joint standard errors here."""
    found = list(errors(150, DECAY))
    error = float(np.std(found)) / math.sqrt(len(found))
    assert abs(float(np.mean(found)) - 0.157) <= 4 * math.hypot(error, 0.005)


def test_without_a_base_measure_the_mean_error_is_absurd() -> None:
    found = list(errors(60, Fraction(0)))
    assert float(np.mean(found)) > 20 and float(np.median(found)) < 2


def test_what_is_needed_for_real_coins_is_exact() -> None:
    """Costs are fractions, so the choice with integer coins has the law that the level is proved for."""
    costs = choice_costs(np.array([4, 0]), usual_target(3.0, LEVEL), LEVEL)
    assert all(isinstance(cost, Fraction) for cost in costs)
    assert exponential_choice(costs, random.Random(1).getrandbits) in (0, 1)


def test_targets_and_nonsense() -> None:
    assert usual_target(5.0, LEVEL) == pytest.approx(7 + 2 * math.log(10) / 0.4)
    thresholds, drawn = threshold_grid(0, 1), words(Address(8, Stream.CURATOR), 0, 3)
    costs = choice_costs(np.array([1, 0]), 1.0, LEVEL)
    for call in (
        lambda: usual_target(0.0, LEVEL),
        lambda: usual_target(1.0, LEVEL, failure=1.0),
        lambda: choice_costs(np.array([1]), math.nan, LEVEL),
        lambda: choice_costs(np.array([1]), 1.0, LEVEL, Fraction(-1)),
        lambda: choice_costs(np.array([1]), 1.0, Decimal(0)),
        lambda: simulate_threshold(thresholds, costs, drawn),
        lambda: simulate_threshold(thresholds, costs[:1], drawn[:1]),
        lambda: choose_threshold(thresholds, costs[:1], random.Random(1).getrandbits),
    ):
        with pytest.raises(ValueError, match="expected"):
            call()
