"""Subset selection: report k of K choices, the label among them more often than not; as integers."""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property

from protocol.channel import TOTAL, log_up
from protocol.choice_pairs import BITS
from protocol.decimals import epsilon as checked_epsilon

_PLACES = 60


@dataclass(frozen=True)
class SubsetChannel:
    """A random set of `subset` out of `choices`: the label is in it with probability hit / 2^63, the rest are others.

    The others are the first steps of a shuffle of the choices but the label; step j is a draw below K - 1 - j from 56
    bits, where each value has floor or ceil(2^56 / (K - 1 - j)) of them. So P(S | y) is, up to these roundings,
    hit / 2^63 / C(K-1, k-1) for y in S, and (1 - hit / 2^63) / C(K-1, k) otherwise.

    Guarantee: `level`-local differential privacy of one label; neighbours: replace the label.
    Raises ValueError for numbers out of range. Source: Ye, Barg 2018, equation (13); roundings: derived, see
    docs/PRIVACY.md.
    """

    choices: int
    subset: int
    hit: int

    def __post_init__(self) -> None:
        if not (self.choices >= 2 and 1 <= self.subset < self.choices and 1 <= self.hit < TOTAL):
            raise ValueError(f"expected 1 <= subset < choices and 1 <= hit < 2^63, got {self}")

    @cached_property
    def level(self) -> Decimal:
        """The privacy level of the executed law, rounded up, all roundings of draws counted against it."""
        inside, outside = extremes(self.choices, self.subset)
        miss = TOTAL - self.hit
        ratios = (
            self.hit * inside[1] / (miss * outside[0]),
            miss * outside[1] / (self.hit * inside[0]),
            inside[1] / inside[0],
            outside[1] / outside[0],
        )
        return log_up(max(ratios))


def extremes(choices: int, subset: int) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """(least, largest) probability of a set of subset - 1 others, and of one of `subset` others, given how many.

    A set is reached by (its size)! orders of draws, each of a product of counts over 2^56.
    """
    found = []
    for size in (subset - 1, subset):
        least = largest = Fraction(math.factorial(size))
        for step in range(size):
            left = choices - 1 - step
            least *= Fraction((1 << BITS) // left, 1 << BITS)
            largest *= Fraction(-(-(1 << BITS) // left), 1 << BITS)
        found.append((least, largest))
    return found[0], found[1]


def subset_selection(epsilon: Decimal, choices: int) -> SubsetChannel:
    """Subset selection with the size that makes de-biased labels least variable, at a level of at most epsilon.

    k minimises (k e^epsilon + K - k)^2 / (k (K - k)), about K / (e^epsilon + 1); hit is the largest integer with
    P(S | y in S) <= e^epsilon P(S | y not in S) for every S, roundings included: about
    2^63 k e^epsilon / (k e^epsilon + K - k). With k = 1 this is K-ary randomised response.

    Guarantee: epsilon-label-LDP; unit: one label; neighbours: replace one label.
    Raises ValueError for epsilon < 1e-9 or choices < 2. Source: Ye, Barg 2018; Wang et al. 2016.

    >>> subset_selection(Decimal(1), 10).subset, subset_selection(Decimal(4), 10).subset
    (3, 1)
    """
    checked_epsilon(epsilon)
    if choices < 2:
        raise ValueError(f"expected at least 2 choices, got {choices}")
    with localcontext(Context(prec=_PLACES)) as context:
        growth = context.next_minus(min(epsilon, Decimal(100)).exp())  # beyond, the table is the smallest already
        scores = [(k * growth + choices - k) ** 2 / (k * (choices - k)) for k in range(1, choices)]
    subset = 1 + scores.index(min(scores))
    inside, outside = extremes(choices, subset)
    odds = Fraction(growth) * outside[0] / inside[1]
    hit = min(math.floor(TOTAL * odds / (1 + odds)), TOTAL - 1)
    return SubsetChannel(choices, subset, hit)
