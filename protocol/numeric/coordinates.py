"""A randomiser of one number, on k sampled coordinates of d: the rest of the row is zero."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.numeric.channel import Floats, Kept, NumericChannel, Words, every
from protocol.numeric.discrete_laplace import discrete_laplace
from protocol.numeric.duchi import duchi
from protocol.numeric.grids import grid, on_grid, to_grid
from protocol.numeric.hybrid import hybrid
from protocol.numeric.laplace import laplace
from protocol.numeric.piecewise import piecewise
from protocol.numeric.sampling import subset
from protocol.numeric.scalar import Scalar
from protocol.numeric.terms import COORDINATES, NumericTerms, Parameters, read

SCALARS: dict[str, Callable[[Decimal], Scalar]] = {
    "laplace": laplace,
    "duchi": duchi,
    "piecewise": piecewise,
    "hybrid": hybrid,
    "discrete-laplace": discrete_laplace,
}
_UP = Context(prec=60, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class Coordinates(NumericChannel):
    """k of d coordinates, uniform whatever the values, each randomised at epsilon / k and scaled by d / k; 0 elsewhere.

    The row's own words choose the coordinates; which they are is seen from the report. With k = d all are reported.
    Bias: the scalar's, plus at most k d 2^-63 of a value where k < d. MSE of a row x / bound:
    bound^2 sum_j (d / k) second_moment(x_j) - x_j^2.

    Guarantee: k times the scalar's level, by composition. Source: Wang et al. 2019, Algorithm 4.
    """

    scalar: Scalar

    @property
    def live(self) -> bool:  # type: ignore[override]
        """Whether the scalar's law is one of integers."""
        return self.scalar.live

    @property
    def integers(self) -> tuple[int, ...]:
        """The scalar's."""
        return self.scalar.integers

    @cached_property
    def level(self) -> Decimal:
        """k times the scalar's, rounded up."""
        return _UP.multiply(self.scalar.level, Decimal(self.terms.coordinates))

    @property
    def words(self) -> int:
        """One a chosen coordinate, where there is a choice, and the scalar's."""
        k = self.terms.coordinates
        return k * (self.scalar.words + (k < self.dimension))

    @property
    def unit(self) -> float:
        """What a scalar's report is multiplied by: bound d / k."""
        return self.bound * (self.dimension / self.terms.coordinates)

    @property
    def grid(self) -> float:
        """Reports from a continuum are multiples of this power of two."""
        return grid(self.unit)

    @cached_property
    def outputs(self) -> Floats | None:
        """All numbers that a sampled coordinate can report, rising; None: all multiples of `grid`."""
        return None if self.scalar.outputs is None else self.scalar.outputs * self.unit

    def report(self, values: Floats, words: Words) -> Floats:
        """Words of a row: the choice of coordinates, then each one's."""
        rows, k, each = np.arange(len(values)), self.terms.coordinates, self.scalar.words
        chosen: NDArray[np.int64] = np.broadcast_to(np.arange(k), (len(values), k))
        start = 0
        if k < self.dimension:
            chosen, start = subset(words[:, :k], self.dimension), k
        reports = np.zeros(values.shape)
        for place in range(k):
            own = words[:, start + place * each : start + (place + 1) * each]
            number = self.scalar.report(values[rows, chosen[:, place]] / self.bound, own) * self.unit
            reports[rows, chosen[:, place]] = to_grid(number, self.grid) if self.outputs is None else number
        return reports

    def mse(self, values: Floats) -> Floats:
        """As in the class."""
        scale, total = self.dimension / self.terms.coordinates, np.zeros(len(values))
        for column in values.T:
            t = column / self.bound
            total += scale * self.scalar.second_moment(t) - t * t
        return total * self.bound**2

    @cached_property
    def worst_mse(self) -> float:
        """Of a row whose coordinates are all the worst."""
        return self.bound**2 * self.dimension * self.scalar.worst(self.dimension / self.terms.coordinates)

    def legal(self, reports: Floats) -> Kept:
        """Outputs on exactly k coordinates, else zeros; from a continuum: on at most k, on the grid, within reach."""
        sent = reports != 0
        counts = sent.sum(axis=1)
        if self.outputs is None:
            near = np.abs(reports) <= self.scalar.reach * self.unit + self.grid
            few: Kept = every(on_grid(reports, self.grid) & near) & (counts <= self.terms.coordinates)
            return few
        place = np.searchsorted(self.outputs, reports).clip(max=len(self.outputs) - 1)
        known = self.outputs[place] == reports
        kept: Kept = every(known | ~sent) & (counts == self.terms.coordinates)
        return kept


@lru_cache(maxsize=256)
def usual_coordinates(name: str, epsilon: Decimal, dimension: int, mean_square: float | None = None) -> int:
    """The number of coordinates with the smallest worst MSE; the smallest one of equals.

    With `mean_square`, the mean of (x_j / bound)^2 over records and coordinates, as public or assumed: the smallest
    expected MSE (up to the grid, since second moments are affine in x_j^2). Where it is small, as with heavy tails and
    a threshold for many records, fewer coordinates are better.
    Searched up to 2 epsilon + 1: levels below 1/2 a coordinate only lose (variances grow like (k / epsilon)^2 there).

    >>> [usual_coordinates("hybrid", Decimal(e), 50) for e in (1, 4, 8, 16)]
    [1, 2, 4, 7]
    >>> [usual_coordinates("piecewise", Decimal(e), 50, 0.001) for e in (1, 4, 8, 16)]
    [1, 1, 1, 1]
    """
    if mean_square is not None and not 0 <= mean_square <= 1:
        raise ValueError(f"expected 0 <= mean_square <= 1, got {mean_square}")
    most = min(dimension, 2 * math.ceil(epsilon) + 1)
    terms = NumericTerms(name, epsilon, Decimal(1), dimension)

    def cost(k: int) -> float:
        channel = _of(replace(terms, coordinates=k))
        if mean_square is None:
            return channel.worst_mse
        return float(channel.mse(np.full((1, dimension), math.sqrt(mean_square)))[0])

    return min(range(1, most + 1), key=cost)


def builder(name: str) -> Callable[[Parameters], Coordinates]:
    """What makes channels of a scalar out of epsilon, threshold, dimension and perhaps coordinates.

    Without `coordinates` it is `usual_coordinates`. Raises ValueError as `read` does.
    """

    def build(parameters: Parameters) -> Coordinates:
        terms = read(name, parameters, COORDINATES)
        if not terms.coordinates:
            terms = replace(terms, coordinates=usual_coordinates(name, terms.epsilon, terms.dimension))
        return _of(terms)

    return build


def _of(terms: NumericTerms) -> Coordinates:
    return Coordinates(terms, SCALARS[terms.name](terms.share))
