"""Bounds from counts, exact ratios of finite laws, guesses about canaries: against other ways to the same number."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

from protocol.gaussian import gaussian_mu
from studies.audit.bound import (
    ceiling,
    delta_bound,
    epsilon_bound,
    largest_chance,
    least_chance,
    normal_bound,
    normal_epsilon,
    normal_would_find,
    would_find,
)
from studies.audit.canary import chance_of_guesses, epsilon_of_guesses, guessed
from studies.audit.exact import Axis, NotExact, enumerated, largest_ratio


@pytest.mark.parametrize(("hits", "draws"), [(0, 10), (1, 10), (7, 10), (10, 10), (431, 1000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-9])
def test_limits_are_those_of_clopper_and_pearson(hits: int, draws: int, alpha: float) -> None:
    for side, own in (("greater", least_chance), ("less", largest_chance)):
        limits = binomtest(hits, draws, alternative=side).proportion_ci(1 - alpha, "exact")
        found = float(own(np.array([float(hits)]), np.array([float(draws)]), alpha)[0])
        assert found == pytest.approx(limits.low if side == "greater" else limits.high, rel=1e-6)


@pytest.mark.parametrize("chance", [0.003, 0.2, 0.5, 0.97])
def test_limits_fail_no_more_often_than_they_say(chance: float) -> None:
    """Exactly, over all numbers of hits."""
    hits, draws, alpha = np.arange(61.0), np.full(61, 60.0), 0.05
    weights = binom.pmf(hits, 60, chance)
    assert weights[least_chance(hits, draws, alpha) > chance].sum() <= alpha
    assert weights[largest_chance(hits, draws, alpha) < chance].sum() <= alpha


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_a_sound_mechanism_is_refuted_no_more_often_than_stated(epsilon: float, delta: float) -> None:
    """Randomised response at the claimed level: over all pairs of numbers of hits, exactly."""
    draws, alpha = 40, 0.05
    q = (1 - delta) / (1 + math.exp(epsilon))
    p = math.exp(epsilon) * q + delta
    hits = np.arange(draws + 1)
    weights = np.outer(binom.pmf(hits, draws, p), binom.pmf(hits, draws, q))
    broken = [[epsilon_bound(int(a), int(b), draws, delta, alpha) > epsilon for b in hits] for a in hits]
    assert weights[np.array(broken)].sum() <= alpha


def test_what_would_be_found_is_found_as_often_as_stated() -> None:
    draws, alpha = 2000, 1e-6
    level = would_find(draws, 1.0, 0.0, alpha)
    p = math.exp(level) / (1 + math.exp(level))
    hits = np.arange(draws + 1)
    first, second = binom.pmf(hits, draws, p), binom.pmf(hits, draws, 1 - p)
    few, many = (int(np.flatnonzero(np.cumsum(law) >= share)[0]) for law, share in ((first, 0.005), (second, 0.995)))
    assert epsilon_bound(few, many, draws, 0.0, alpha) > 1.0
    assert first[few:].sum() * second[: many + 1].sum() >= 0.98
    assert 1 < level < 2 < ceiling(draws, 0.0, alpha) < math.log(draws)
    assert would_find(100, 8.0, 0.0, 1e-6) == math.inf


def test_delta_is_bounded_exactly_where_epsilon_is() -> None:
    for hits, others in ((900, 100), (500, 480), (1000, 0)):
        for epsilon, delta in ((0.5, 0.0), (1.0, 0.01), (2.0, 0.3)):
            beyond = epsilon_bound(hits, others, 1000, delta, 0.01) > epsilon
            assert beyond == (delta_bound(hits, others, 1000, epsilon, 0.01) > delta)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("delta", ["1e-5", "0.05"])
def test_normal_laws_are_refuted_no_more_often_than_stated(epsilon: str, delta: str) -> None:
    """Gaussian noise at exactly its claim, at the point between: over all pairs of numbers of hits, exactly."""
    draws, alpha, claimed, limit = 30, 0.05, float(epsilon), float(delta)
    half = gaussian_mu(Decimal(epsilon), Decimal(delta)) / 2
    hits = np.arange(draws + 1)
    weights = np.outer(binom.pmf(hits, draws, norm.cdf(half)), binom.pmf(hits, draws, norm.cdf(-half)))
    broken = [[normal_bound(int(a), int(b), draws, limit, alpha) > claimed for b in hits] for a in hits]
    assert weights[np.array(broken)].sum() <= alpha
    assert normal_epsilon(2 * half, limit) == pytest.approx(claimed, abs=2e-6)


def test_normal_laws_are_told_by_fewer_draws_than_rare_outputs() -> None:
    """At delta = 1e-5 a Gaussian's ratios near e^epsilon are in tails that no such sample reaches."""
    level, draws = normal_would_find(100_000, 1.0, 1e-5, 1e-3), 100_000
    assert 1 < level < 1.2
    half = gaussian_mu(Decimal(1), Decimal("1e-5")) / 2
    hits, others = round(draws * norm.cdf(half)), round(draws * norm.cdf(-half))
    assert 0.8 < normal_bound(hits, others, draws, 1e-5, 1e-3) < 1
    assert epsilon_bound(hits, others, draws, 1e-5, 1e-3) < 0.3
    assert normal_epsilon(1e-12, 1e-5) == 0.0 == normal_bound(5, 9, 10, 1e-5, 1e-3)


# Finite laws

weights = st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(lambda found: sum(found) > 0)


@settings(max_examples=150)
@given(weights, weights, st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 2)]))
def test_the_largest_ratio_is_that_over_all_events(one: list[int], other: list[int], delta: Fraction) -> None:
    first, second = sum(one), sum(other)
    left = {place: weight * second for place, weight in enumerate(one)}
    right = {place: weight * first for place, weight in enumerate(other)}
    total, worst = first * second, Fraction(0)
    infinite = False
    for event in chain.from_iterable(combinations(range(4), size) for size in range(1, 5)):
        p, q = sum(left[place] for place in event), sum(right[place] for place in event)
        if q:
            worst = max(worst, (p - delta * total) / q)
        infinite |= q == 0 and p > delta * total
    found = largest_ratio(left, right, delta)
    assert found.growth == (None if infinite else worst)


def test_a_law_is_enumerated_with_its_weights() -> None:
    third = (1 << 64) // 3
    law = enumerated(lambda words: (words[:, :1] >= third) & (words[:, 1:] >= 5), [[Axis.cut([third]), Axis.cut([5])]])
    assert law[b"\0"] == (1 << 128) - law[b"\1"]
    assert law[b"\1"] == ((1 << 64) - third) * ((1 << 64) - 5)


def test_classes_that_are_too_wide_or_overlap_are_no_law() -> None:
    with pytest.raises(NotExact, match="one output"):
        enumerated(lambda words: words >= 7, [[Axis.cut([6])]])
    with pytest.raises(NotExact, match="cover"):
        enumerated(lambda words: words >= 7, [[Axis.cut([7])], [Axis.cut([7])]])


# Canaries


def test_the_example_of_the_paper() -> None:
    assert epsilon_of_guesses(1000, 100, 75, 1e-4, 0.05) == pytest.approx(0.673, abs=5e-4)


@pytest.mark.parametrize(("m", "r", "v", "delta"), [(1000, 100, 75, 1e-4), (50, 50, 40, 0.0), (200, 20, 20, 1e-3)])
def test_the_chance_of_guesses_is_that_of_the_printed_loop(m: int, r: int, v: int, delta: float) -> None:
    for epsilon in (0.0, 0.4, 1.5, 5.0):
        q, total, alpha = 1 / (1 + math.exp(-epsilon)), 0.0, 0.0
        for i in range(1, v + 1):
            total += float(binom.pmf(v - i, r, q))
            alpha = max(alpha, total / i)
        expected = min(1.0, float(binom.sf(v - 1, r, q)) + 2 * m * delta * alpha)
        assert chance_of_guesses(m, r, v, epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_guesses_of_nobody_say_nothing_and_perfect_ones_much() -> None:
    coins = np.arange(400) % 2 == 0
    assert guessed(coins, np.where(np.arange(400) % 4 < 2, 1.0, -1.0), 0.0, 1e-6).epsilon == 0
    assert guessed(coins, np.where(coins, 1.0, -1.0), 0.0, 1e-6).epsilon > 3
