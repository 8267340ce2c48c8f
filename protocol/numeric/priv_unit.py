"""PrivUnit: a uniform direction in or out of a cap about the value's. For simulations: its law is continuous."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv

from protocol.numeric.caps import Cap
from protocol.numeric.channel import Floats, Kept
from protocol.numeric.spheres import directions, log_ratio, of_norm
from protocol.numeric.terms import Parameters, read


@dataclass(frozen=True)
class PrivUnit(Cap):
    """V uniform on the part of the sphere that the coin says; every report has norm bound / m.

    With V_1 the part along u and gamma the height of the cap: P(V_1 >= v) = I_{1 - v^2}((d - 1) / 2, 1 / 2) / 2 and
    m = c_d (1 - gamma^2)^((d - 1) / 2) / (d - 1) (p - cap) / (cap (1 - cap)), c_d as in `log_ratio`.

    Source: Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018, Algorithm 1; the split: Asi, Feldman, Talwar 2022.
    """

    @classmethod
    def slope(cls, dimension: int, cap: float) -> float:
        """c_d (1 - gamma^2)^((d - 1) / 2) / (d - 1)."""
        half = (dimension - 1) / 2
        return math.exp(log_ratio(dimension) + half * math.log(float(betaincinv(half, 0.5, 2 * cap)))) / (dimension - 1)

    @classmethod
    def square(cls, dimension: int, cap: float, p: float) -> float:
        """1."""
        return 1.0

    def vectors(self, u: Floats, tails: Floats, across: Floats) -> Floats:
        """V_1 u and the rest of the unit length across."""
        side = np.where(tails < 0.5, 1.0, -1.0)
        squared = betainccinv(0.5, (self.dimension - 1) / 2, 2 * np.minimum(tails, 1 - tails))
        found: Floats = (side * np.sqrt(squared))[:, None] * u + np.sqrt(1 - squared)[:, None] * directions(across)
        return found

    def legal(self, reports: Floats) -> Kept:
        """Of norm bound / m, to 1e-9 of it."""
        return of_norm(reports, self.bound / self.m)


def priv_unit(parameters: Parameters) -> PrivUnit:
    """PrivUnit with the best split; parameters epsilon, threshold (a Euclidean norm), dimension >= 2."""
    terms = read("priv-unit", parameters)
    if terms.dimension < 2:
        raise ValueError("expected dimension >= 2 of priv-unit, got 1: use piecewise")
    return PrivUnit.of(terms)
