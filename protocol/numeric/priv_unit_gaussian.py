"""PrivUnit's Gaussian form: no sphere, nearly as good in high dimensions. For simulations: its law is continuous."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from protocol.coins import LARGEST_NORMAL
from protocol.numeric.caps import Cap
from protocol.numeric.channel import Floats, Kept, every
from protocol.numeric.spheres import SLACK
from protocol.numeric.terms import Parameters, read


@dataclass(frozen=True)
class PrivUnitGaussian(Cap):
    """V normal with variance 1 / d a coordinate, its part along u in or out of the upper tail as the coin says.

    With t = -Phi^{-1}(cap): m = phi(t) / sqrt(d) (p - cap) / (cap (1 - cap)), and
    E|V|^2 = 1 + t phi(t) (p / cap - (1 - p) / (1 - cap)) / d.

    Source: Asi, Feldman, Talwar 2022, section 4.
    """

    @classmethod
    def slope(cls, dimension: int, cap: float) -> float:
        """phi(t) / sqrt(d)."""
        return _density(-float(ndtri(cap))) / math.sqrt(dimension)

    @classmethod
    def square(cls, dimension: int, cap: float, p: float) -> float:
        """E|V|^2 as in the class."""
        t = -float(ndtri(cap))
        return 1 + t * _density(t) * (p - cap) / (cap * (1 - cap)) / dimension

    def vectors(self, u: Floats, tails: Floats, across: Floats) -> Floats:
        """V_1 u plus the normal numbers across, over sqrt(d)."""
        along = np.where(tails < 0.5, -ndtri(np.minimum(tails, 0.5)), ndtri(np.minimum(1 - tails, 0.5)))
        found: Floats = (along[:, None] * u + across) / math.sqrt(self.dimension)
        return found

    def legal(self, reports: Floats) -> Kept:
        """Not further away than a machine's normal numbers go: along u at most -Phi^{-1}(cap 2^-53)."""
        along = max(LARGEST_NORMAL, -float(ndtri(self.cap * 2.0**-53)))
        reach = along / math.sqrt(self.dimension) + LARGEST_NORMAL
        return every(np.abs(reports) <= reach * (self.bound / self.m) * (1 + SLACK))


def _density(t: float) -> float:
    return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def priv_unit_gaussian(parameters: Parameters) -> PrivUnitGaussian:
    """The Gaussian form with the best split; parameters epsilon, threshold (a Euclidean norm), dimension."""
    return PrivUnitGaussian.of(read("priv-unit-gaussian", parameters))
