"""Selections whose law is exact: rational scores, integer coins, no logarithm. These may be used with real coins.

`randbits(k)` gives k fair bits as an integer. Running times depend on scores; nothing else does.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from server.mechanisms.discrete_gaussian import bernoulli_exp, uniform_below


def exponential_choice(costs: Sequence[Fraction], randbits: Callable[[int], int]) -> int:
    """Index j with probability proportional to exp(-costs[j]), exactly; at most len(costs) proposals on average.

    Guarantee: with costs[j] = base_j + score_j epsilon / 2, base public and scores moving by at most 1 between
    neighbours: epsilon, and epsilon^2 / 8-zCDP (a range bounded by epsilon). Raises ValueError for no costs.
    Source: McSherry, Talwar 2007; sampling as Canonne, Kamath, Steinke 2020; Cesar, Rogers 2021.
    """
    least = _least(costs)

    def below(limit: int) -> int:
        return uniform_below(limit, randbits)

    while True:
        place = below(len(costs))
        excess = costs[place] - least
        if bernoulli_exp(excess.numerator, excess.denominator, below):
            return place


def choose_support(
    sizes: Sequence[Fraction],
    sparsity: int,
    level: Fraction,
    change: Fraction,
    randbits: Callable[[int], int],
) -> list[int]:
    """s indices of large sizes, one after the other, each at `level`: cost = -size level / (2 change).

    Guarantee: s level, or what s times the zCDP of `exponential_choice` is worth; unit and neighbours are those of
    `change`, which bounds how far each size moves. Raises ValueError for what is not positive, or s above the number of
    sizes.
    Source: Durfee, Rogers 2019.
    """
    if not (level > 0 and change > 0 and 1 <= sparsity <= len(sizes)):
        raise ValueError(
            f"expected level, change > 0 and 1 <= sparsity <= {len(sizes)}, got {level}, {change}, {sparsity}"
        )
    left, chosen = list(range(len(sizes))), []
    for _ in range(sparsity):
        place = exponential_choice([-sizes[index] * level / (2 * change) for index in left], randbits)
        chosen.append(left.pop(place))
    return chosen


def _least(costs: Sequence[Fraction]) -> Fraction:
    if not costs:
        raise ValueError("expected at least one cost, got none")
    return min(costs)
