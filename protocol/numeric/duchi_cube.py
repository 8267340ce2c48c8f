"""Duchi, Jordan and Wainwright's randomiser of a cube, in the form that keeps its level for even dimensions.

With ties <t, V> = 0 in both half-cubes, as first printed, the level for even d is log(e^epsilon + 1), not epsilon.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from protocol.channel import TOTAL, log_up
from protocol.numeric.channel import Floats, Kept, NumericChannel, Words, every
from protocol.numeric.sampling import coin, growth, leans
from protocol.numeric.terms import Parameters, read

TIE_BITS = 40  # all draws tie with probability 2^-40 at most
MOST_OF_CUBE = 4096  # dimensions: binomial coefficients are exact integers, and grow


@dataclass(frozen=True)
class DuchiCube(NumericChannel):
    """size V' in {-size, size}^d: V_j = 1 with probability (1 + x_j / bound) / 2, then a corner near or far from V.

    With probability p = hit / 2^63 a corner t with <t, V> > 0, else any corner of the cube, uniform each. The first of
    `draws` corners that is no tie, turned towards V, is the former; if all tie (probability r), a tie is sent. With N
    corners on V's side, C ties and S = sum of t_1 V_1 over the former: size = bound N / (p (1 - r) S). MSE:
    d size^2 - |x|^2. Bias: at most 2^-52 bound a coordinate.

    Guarantee: log(1 + max(p (1 - r) 2^d / ((1 - p) N), p r 2^d / ((1 - p) C))), exactly what is executed.
    Source: Duchi, Jordan, Wainwright 2018, section 4.2.3; ties as in Wang et al. 2019, Algorithm 3.
    """

    hit: int
    live = True

    @cached_property
    def level(self) -> Decimal:
        """Of the integers, rounded up."""
        p, sides = Fraction(self.hit, TOTAL), half_cube(self.dimension)
        return log_up(1 + p / (1 - p) * max(sides.odds))

    @property
    def integers(self) -> tuple[int, ...]:
        """hit and the number of draws."""
        return self.hit, half_cube(self.dimension).draws

    @property
    def chunks(self) -> int:
        """Words of one corner, a bit a coordinate."""
        return -(-self.dimension // 64)

    @property
    def words(self) -> int:
        """One a coordinate for V, one for the side, then the draws of corners."""
        return self.dimension + 1 + half_cube(self.dimension).draws * self.chunks

    @cached_property
    def size(self) -> float:
        """The size of a reported coordinate."""
        sides = half_cube(self.dimension)
        p = Fraction(self.hit, TOTAL)
        return float(Fraction(self.bound) * sides.near / (p * (1 - sides.left) * sides.pull))

    def report(self, values: Floats, words: Words) -> Floats:
        """Corners relative to V are random bits: 1 where they agree."""
        d, draws = self.dimension, half_cube(self.dimension).draws
        corner = np.where(leans(words[:, :d], values / self.bound, 2.0**62), 1.0, -1.0)
        near = coin(words[:, d]) < np.uint64(self.hit)
        bits = words[:, d + 1 :].reshape(len(words), draws, self.chunks).astype("<u8")
        agree = np.unpackbits(bits.view(np.uint8), axis=2, count=d, bitorder="little")
        sums = 2 * agree.sum(axis=2, dtype=np.int64) - d
        rows = np.arange(len(words))
        drawn = np.where(near, (sums != 0).argmax(axis=1), 0)  # 0 as well where all tie
        turned = near & (sums[rows, drawn] < 0)
        signs = np.where(agree[rows, drawn] != turned[:, None], self.size, -self.size)
        reports: Floats = corner * signs
        return reports

    def mse(self, values: Floats) -> Floats:
        """d size^2 - |x|^2."""
        total = np.full(len(values), self.worst_mse)
        for column in values.T:
            total -= column * column
        return total

    @property
    def worst_mse(self) -> float:
        """At the centre."""
        return self.dimension * self.size**2

    def legal(self, reports: Floats) -> Kept:
        """Exactly size or -size in every coordinate."""
        return every(np.abs(reports) == self.size)


@dataclass(frozen=True)
class HalfCube:
    """Counts of corners: `near` with <t, V> > 0, `ties` with 0, `pull` = sum of t_1 V_1 over the near ones."""

    dimension: int

    @cached_property
    def ties(self) -> int:
        """C(d, d / 2), or none in an odd dimension."""
        d = self.dimension
        return 0 if d % 2 else math.comb(d, d // 2)

    @cached_property
    def near(self) -> int:
        """(2^d - ties) / 2."""
        return ((1 << self.dimension) - self.ties) // 2

    @cached_property
    def pull(self) -> int:
        """C(d - 1, floor(d / 2)), in either case."""
        return math.comb(self.dimension - 1, self.dimension // 2)

    @cached_property
    def draws(self) -> int:
        """How many corners are drawn: until ties are rarer than 2^-40."""
        if not self.ties:
            return 1
        return math.ceil(TIE_BITS / -math.log2(self.ties / (1 << self.dimension)))

    @cached_property
    def left(self) -> Fraction:
        """r, the probability that all draws tie."""
        return Fraction(self.ties, 1 << self.dimension) ** self.draws

    @cached_property
    def odds(self) -> tuple[Fraction, ...]:
        """How much likelier than 2^-d a near corner, or a tie, is under the former draw."""
        whole = 1 << self.dimension
        near = (1 - self.left) * Fraction(whole, self.near)
        return (near, self.left * Fraction(whole, self.ties)) if self.ties else (near,)


@lru_cache(maxsize=64)
def half_cube(dimension: int) -> HalfCube:
    """The counts of a dimension, kept."""
    return HalfCube(dimension)


def duchi_cube(parameters: Parameters) -> DuchiCube:
    """The largest hit whose level is at most epsilon; parameters epsilon, threshold (of each |x_j|), dimension.

    Guarantee: epsilon-local differential privacy of one row; neighbours: replace the row. Raises ValueError as `read`
    does, and for more than 4096 dimensions.
    """
    terms = read("duchi-cube", parameters)
    if terms.dimension > MOST_OF_CUBE:
        raise ValueError(f"expected dimension <= {MOST_OF_CUBE} of duchi-cube, got {terms.dimension}")
    odds = (growth(terms.epsilon) - 1) / max(half_cube(terms.dimension).odds)
    return DuchiCube(terms, min(int(TOTAL * odds / (1 + odds)), TOTAL - 1))
