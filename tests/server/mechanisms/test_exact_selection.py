"""Exact selections against their laws, and those laws against neighbours."""

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import pytest

from server.mechanisms.exact_choices import Chooser
from server.mechanisms.exact_selection import choose_support, exponential_choice

RUNS = 8000
COSTS = [Fraction(13, 10), Fraction(0), Fraction(1, 2), Fraction(40)]


def softmax(costs: list[Fraction]) -> list[float]:
    weights = [math.exp(-float(cost)) for cost in costs]
    return [weight / sum(weights) for weight in weights]


def flipped(costs: list[Fraction]) -> list[float]:
    """P(each comes first), over all orders."""
    law, coins = [0.0] * len(costs), [math.exp(-float(cost - min(costs))) for cost in costs]
    for order in permutations(range(len(costs))):
        left = 1 / math.factorial(len(costs))
        for place in order:
            law[place] += left * coins[place]
            left *= 1 - coins[place]
    return law


def agrees(seen: Counter[int], law: list[float]) -> None:
    """Six standard deviations for each frequency: a false alarm in 10^8; what cannot happen does not."""
    for place, p in enumerate(law):
        assert abs(seen[place] - RUNS * p) <= 6 * math.sqrt(RUNS * p * (1 - p)) + 1e-6


@pytest.mark.parametrize("shift", [Fraction(0), Fraction(10**9, 7)])
def test_choices_follow_their_law(shift: Fraction) -> None:
    costs = [cost + shift for cost in COSTS]
    randbits = random.Random(1).getrandbits
    agrees(Counter(exponential_choice(costs, randbits) for _ in range(RUNS)), softmax(COSTS))


def test_geometric_noise_on_a_fine_grid_is_permute_and_flip() -> None:
    how = Chooser("permute-and-flip", 1, 1, 10**7, 1)
    scores, randbits = [int((40 - cost) * 10**7) for cost in COSTS], random.Random(1).getrandbits
    agrees(Counter(how.choose(scores, randbits)[0][0] for _ in range(RUNS)), flipped(COSTS))


def test_permute_and_flip_is_never_worse() -> None:
    for costs in (COSTS, [Fraction(0)] * 3, [Fraction(0), Fraction(1), Fraction(1)]):
        assert sum(flipped(costs)) == pytest.approx(1)
        means = [sum(p * float(cost) for p, cost in zip(law(costs), costs, strict=True)) for law in (flipped, softmax)]
        assert means[0] <= means[1] + 1e-12


@pytest.mark.parametrize("law", [softmax, flipped])
def test_levels_are_kept(law: object) -> None:
    """Scores that all move by at most 1, cost = -score epsilon / 2: no probability changes by more than e^epsilon."""
    assert callable(law)
    epsilon, worst, spread = Fraction(3, 2), 0.0, 0.0
    for scores in product((0, 1, 3), repeat=3):
        before = law([-score * epsilon / 2 for score in scores])
        for move in product((-1, 0, 1), repeat=3):
            after = law([-(score + shift) * epsilon / 2 for score, shift in zip(scores, move, strict=True)])
            losses = [math.log(p / q) for p, q in zip(before, after, strict=True)]
            worst, spread = max(worst, *map(abs, losses)), max(spread, max(losses) - min(losses))
    assert 0.6 * epsilon < worst <= epsilon + 1e-12
    if law is softmax:
        assert spread <= epsilon + 1e-12  # a bounded range, which permute-and-flip does not have
    else:
        assert spread > epsilon


def test_supports_are_chosen_without_return() -> None:
    sizes = [Fraction(size) for size in (3, 0, 9, 5)]
    randbits = random.Random(2).getrandbits
    assert choose_support(sizes, 3, Fraction(200), Fraction(1), randbits) == [2, 3, 0]
    assert sorted(choose_support(sizes, 4, Fraction(1, 100), Fraction(1), randbits)) == [0, 1, 2, 3]


def test_orders_of_two_are_sequential_in_law() -> None:
    """The same law as one-shot Gumbel noise, here with integer coins."""
    randbits, sizes = random.Random(3).getrandbits, [Fraction(0), Fraction(1), Fraction(2)]
    seen = Counter(
        order[0] * 3 + order[1]
        for order in (choose_support(sizes, 2, Fraction(2), Fraction(1), randbits) for _ in range(RUNS))
    )
    weights = [math.exp(size) for size in sizes]
    law = [
        0.0 if i == j else weights[i] / sum(weights) * weights[j] / (sum(weights) - weights[i])
        for i, j in product(range(3), repeat=2)
    ]
    agrees(seen, law)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="cost"):
        exponential_choice([], random.Random(1).getrandbits)
    one = Fraction(1)
    for level, change, sparsity in ((0 * one, one, 1), (one, 0 * one, 1), (one, one, 0), (one, one, 3)):
        with pytest.raises(ValueError, match="sparsity"):
            choose_support([one, one], sparsity, level, change, random.Random(1).getrandbits)
