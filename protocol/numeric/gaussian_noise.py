"""Gaussian noise on a whole row of bounded norm. For simulations: its law is continuous."""

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from protocol.coins import normal
from protocol.gaussian import analytic_noise_multiplier
from protocol.numeric.channel import Floats, Kept, NumericChannel, Words, every
from protocol.numeric.grids import grid, on_grid, to_grid
from protocol.numeric.spheres import SLACK
from protocol.numeric.terms import Parameters, read


@dataclass(frozen=True)
class GaussianNoise(NumericChannel):
    """The row plus independent normal noise of one scale: MSE d stddev^2, whatever the row.

    Guarantee: (epsilon, delta) for the continuous law, by the exact profile at sensitivity 2 bound. Source: Balle,
    Wang 2018.
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
        """Finite and on the grid."""
        return every(on_grid(reports, self.grid))


def gaussian_noise(parameters: Parameters) -> GaussianNoise:
    """The smallest noise of the level asked for; parameters epsilon, delta, threshold (a Euclidean norm), dimension."""
    terms = read("gaussian", parameters, delta=True)
    sensitivity = 2 * terms.bound * (1 + SLACK)
    return GaussianNoise(
        terms, math.nextafter(sensitivity * analytic_noise_multiplier(terms.epsilon, terms.delta), math.inf)
    )
