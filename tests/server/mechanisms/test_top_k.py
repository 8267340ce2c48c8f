"""One-shot Gumbel top-k: its exact law on tiny cases, and what it costs in Renyi divergence."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.integrate import quad

from protocol.coins import Address, Stream, words
from server.mechanisms.top_k import one_shot, one_shot_cost, shared_scales

SCORES = (0.0, 0.5, 1.2, 1.3)


def sequential(scores: tuple[float, ...], sparsity: int, scale: float = 1.0) -> dict[tuple[int, ...], float]:
    """s exponential mechanisms one after the other."""
    weights, law = [math.exp(score / scale) for score in scores], {}
    for order in permutations(range(len(scores)), sparsity):
        left, total = sum(weights), 1.0
        for place in order:
            total, left = total * weights[place] / left, left - weights[place]
        law[order] = total
    return law


def test_one_shot_is_sequential_in_law() -> None:
    """The two largest of four noisy scores by quadrature: first above t, second at t, the rest below."""

    def below(t: float, score: float) -> float:
        return math.exp(-math.exp(-(t - score)))

    for (first, second), p in sequential(SCORES, 2).items():

        def density(t: float, first: int = first, second: int = second) -> float:
            rest = math.prod(below(t, score) for i, score in enumerate(SCORES) if i not in (first, second))
            here = math.exp(-(t - SCORES[second])) * below(t, SCORES[second])
            return here * -math.expm1(-math.exp(-(t - SCORES[first]))) * rest

        assert quad(density, -6, 45, limit=400, epsabs=1e-12)[0] == pytest.approx(p, rel=1e-9)


def test_the_code_follows_that_law() -> None:
    """6000 draws, six standard deviations for each of twelve orders: a false alarm in 10^7."""
    runs, seen = 6000, dict.fromkeys(permutations(range(4), 2), 0)
    drawn = words(Address(5, Stream.CURATOR), 0, runs * 8).reshape(runs, 2, 4)
    vector = np.array(SCORES) * np.array([1, -1, 1, -1]) * 2
    for run in range(runs):
        first, second = one_shot(vector, 2, 2.0, drawn[run]).support.tolist()
        seen[first, second] += 1
    for order, p in sequential(SCORES, 2).items():
        assert abs(seen[order] - runs * p) < 6 * math.sqrt(runs * p * (1 - p))


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_renyi_divergence_of_selections_stays_below_the_cost(scale: float) -> None:
    """All neighbours of three score vectors at distance 1, orders alpha from 1.01 to 64."""
    half = one_shot_cost(2, scale, 1e9).rho
    worst = 0.0
    for scores in ((0.0, 0.0, 0.0, 0.0), SCORES, (5.0, 4.0, 0.0, 0.0)):
        before = sequential(scores, 2, scale)
        for move in product((-1, 1), repeat=4):
            after = sequential(tuple(s + m for s, m in zip(scores, move, strict=True)), 2, scale)
            for alpha in (1.01, 2, 4, 16, 64):
                total = math.fsum(after[order] * (before[order] / after[order]) ** alpha for order in before)
                worst = max(worst, math.log(total) / (alpha - 1) / alpha)
    assert half / 4 < worst <= half


def test_values_have_gaussian_noise_of_their_own_scale() -> None:
    """Variance at 4000 values: its own standard deviation is 2.2 %, six of them are 14 %."""
    drawn = words(Address(6, Stream.CURATOR), 0, 8000).reshape(2, 4000)
    found = one_shot(np.zeros(4000), 4000, 1.0, drawn, value_scale=3.0)
    assert float(found.values.var()) == pytest.approx(9, rel=0.14)


def test_no_noise_ties_and_nonsense() -> None:
    drawn = words(Address(6, Stream.CURATOR), 0, 8).reshape(2, 4)
    assert one_shot(np.array([1.0, -2, 2, 2]), 3, 0.0, drawn).support.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="scale"):
        one_shot(np.zeros(4), 1, 1.0, drawn, value_scale=-1.0)
    with pytest.raises(ValueError, match="scales"):
        one_shot_cost(1, 1.0, 0.0)


def test_shares_of_rho() -> None:
    claim = (Decimal(1), Decimal("1e-5"))
    half, same = shared_scales(*claim, 5, Fraction(1, 2))
    assert half == same == pytest.approx(12.792, abs=5.1e-4)
    more, less = shared_scales(*claim, 5, Fraction(3, 4))
    assert more < half < less
    assert one_shot_cost(5, more, less).rho <= one_shot_cost(5, half).rho * (1 + 1e-11)
    with pytest.raises(ValueError, match="share"):
        shared_scales(*claim, 5, Fraction(1))
