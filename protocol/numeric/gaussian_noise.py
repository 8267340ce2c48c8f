"""Gaussian noise on a whole row of bounded norm. For simulations: its law is continuous."""

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from protocol.coins import LARGEST_NORMAL, normal
from protocol.gaussian import analytic_noise_multiplier
from protocol.numeric.channel import Floats, Kept, NumericChannel, Words, every
from protocol.numeric.grids import grid, on_grid, to_grid
from protocol.numeric.spheres import SLACK
from protocol.numeric.terms import ROUNDS, Parameters, read


@dataclass(frozen=True)
class GaussianNoise(NumericChannel):
    """The row plus independent normal noise of one scale: MSE d stddev^2, whatever the row.

    Guarantee: (epsilon, delta) for the continuous law, by the exact profile at sensitivity 2 bound; of all `rounds`
    together where there are several, whatever each asks for: T reports of deviation s sqrt(T) are one of s. Source:
    Balle, Wang 2018; Dong, Roth, Su 2022 (rounds).
    """

    stddev: float
    norm = "l2"

    @property
    def level(self) -> Decimal:
        """Epsilon; the exact delta there is at most `delta`."""
        return self.terms.epsilon

    @property
    def words(self) -> int:
        """One a coordinate."""
        return self.dimension

    @property
    def grid(self) -> float:
        """Reports are multiples of this power of two."""
        return grid(self.bound)

    def report(self, values: Floats, words: Words) -> Floats:
        """value + noise, to the nearest multiple of `grid`."""
        return to_grid(values + self.stddev * normal(words), self.grid)

    def mse(self, values: Floats) -> Floats:
        """d stddev^2."""
        return np.full(len(values), self.worst_mse)

    @property
    def worst_mse(self) -> float:
        """d stddev^2."""
        return self.dimension * self.stddev**2

    def legal(self, reports: Floats) -> Kept:
        """On the grid, and not further away than a machine's normal numbers go."""
        reach = self.bound + LARGEST_NORMAL * self.stddev
        return every(on_grid(reports, self.grid) & (np.abs(reports) <= reach * (1 + SLACK) + self.grid))


def gaussian_noise(parameters: Parameters) -> GaussianNoise:
    """The smallest noise of the level asked for, by epsilon, delta, threshold (a length), dimension, rounds (1)."""
    terms = read("gaussian", parameters, ROUNDS, delta=True)
    sensitivity = 2 * terms.bound * (1 + SLACK)
    once = math.nextafter(sensitivity * analytic_noise_multiplier(terms.epsilon, terms.delta), math.inf)
    if terms.rounds == 1:
        return GaussianNoise(terms, once)
    return GaussianNoise(terms, once * math.sqrt(terms.rounds) * (1 + 2.0**-50))
