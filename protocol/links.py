"""Models of pairs: P(y = 1 | z) = F(z), z = theta . x, F the distribution function of a symmetric law.

Symmetric means F(-z) = 1 - F(z). Every function takes and returns arrays of one shape, and keeps its digits in both
tails: probabilities are never made by subtracting from one.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtr

Floats = NDArray[np.float64]


class Link(ABC):
    """A symmetric distribution function F with density f.

    Source: Chowdhury, Zhou, Natarajan 2024, Section 2, which asks for F(-z) = 1 - F(z), and for bounds of a strictly
    log-concave F.
    """

    @abstractmethod
    def cdf(self, z: Floats) -> Floats:
        """F(z)."""

    @abstractmethod
    def log_cdf(self, z: Floats) -> Floats:
        """log F(z)."""

    @abstractmethod
    def density(self, z: Floats) -> Floats:
        """f(z) = F'(z)."""

    @abstractmethod
    def tilt(self, z: Floats) -> Floats:
        """f'(z) / f(z)."""

    @abstractmethod
    def primitive(self, z: Floats) -> Floats:
        """The integral of F - 1/2 from 0 to z: even, convex and 0 at 0."""

    def hazard(self, z: Floats) -> Floats:
        """lambda(z) = f(z) / F(z), the derivative of log F."""
        rate: Floats = self.density(z) / self.cdf(z)
        return rate

    def bend(self, z: Floats) -> Floats:
        """-(log F)''(z) = lambda (lambda - f'/f); positive where F is strictly log-concave."""
        rate = self.hazard(z)
        return rate * (rate - self.tilt(z))

    def variance(self, z: Floats) -> Floats:
        """F (1 - F), the variance of a label."""
        return self.cdf(z) * self.cdf(-z)

    def information(self, z: Floats) -> Floats:
        """f^2 / (F (1 - F)) = lambda(z) lambda(-z), what a label says about z."""
        return self.hazard(z) * self.hazard(-z)

    def drift(self, reach: float) -> float:
        """A bound, at least 1, on |f'/f| over |z| <= reach: how fast the curvature of a loss of `primitive` changes."""
        return 1.0


class Logistic(Link):
    """F = sigma, the model of Bradley, Terry and Luce."""

    def cdf(self, z: Floats) -> Floats:
        """1 / (1 + e^-z)."""
        return np.asarray(expit(z))

    def log_cdf(self, z: Floats) -> Floats:
        """-log(1 + e^-z)."""
        return np.asarray(log_expit(z))

    def density(self, z: Floats) -> Floats:
        """sigma(z) sigma(-z)."""
        return self.cdf(z) * self.cdf(-z)

    def tilt(self, z: Floats) -> Floats:
        """1 - 2 sigma."""
        return -np.tanh(0.5 * z)

    def primitive(self, z: Floats) -> Floats:
        """log cosh(z / 2)."""
        size = np.abs(z)
        return 0.5 * size + np.log1p(np.exp(-size)) - math.log(2.0)

    def hazard(self, z: Floats) -> Floats:
        """sigma(-z)."""
        return self.cdf(-z)

    def bend(self, z: Floats) -> Floats:
        """The density."""
        return self.density(z)

    def variance(self, z: Floats) -> Floats:
        """The density."""
        return self.density(z)

    def information(self, z: Floats) -> Floats:
        """The density."""
        return self.density(z)


class Probit(Link):
    """F = Phi, the standard normal law: Thurstone's model."""

    def cdf(self, z: Floats) -> Floats:
        """Phi(z)."""
        return np.asarray(ndtr(z))

    def log_cdf(self, z: Floats) -> Floats:
        """log Phi(z)."""
        return np.asarray(log_ndtr(z))

    def density(self, z: Floats) -> Floats:
        """e^(-z^2 / 2) / sqrt(2 pi)."""
        return np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    def tilt(self, z: Floats) -> Floats:
        """-z."""
        return -z

    def primitive(self, z: Floats) -> Floats:
        """z (Phi(z) - 1/2) + phi(z) - phi(0)."""
        return z * (self.cdf(z) - 0.5) + np.expm1(-0.5 * z * z) / math.sqrt(2 * math.pi)

    def hazard(self, z: Floats) -> Floats:
        """phi / Phi, from erfcx(x) = e^(x^2) erfc(x): exp(log phi - log Phi) loses its digits in the lower tail."""
        return np.asarray(math.sqrt(2 / math.pi) / erfcx(-z / math.sqrt(2)))

    def bend(self, z: Floats) -> Floats:
        """lambda (z + lambda); far below, where the sum cancels, its expansion 1 - 1/z^2 + 6/z^4 - 50/z^6."""
        square = np.maximum(z * z, 1.0)
        rate = self.hazard(z)
        far = 1.0 - (1.0 - (6.0 - 50.0 / square) / square) / square
        return np.asarray(np.where(z < -200.0, far, rate * (z + rate)))

    def drift(self, reach: float) -> float:
        """max(1, reach)."""
        return max(1.0, reach)


class Laplace(Link):
    """F(z) = e^z / 2 for z < 0: tails as heavy as the logistic ones, a density with a corner at 0.

    log F is linear below 0: log-concave, not strictly, so the bounds that need a positive curvature say nothing.
    """

    def cdf(self, z: Floats) -> Floats:
        """e^z / 2, and 1 - e^-z / 2 from 0 on."""
        half = self.density(z)
        return np.asarray(np.where(z < 0, half, 1.0 - half))

    def log_cdf(self, z: Floats) -> Floats:
        """z - log 2, and log(1 - e^-z / 2) from 0 on."""
        return np.asarray(np.where(z < 0, z - math.log(2.0), np.log1p(-self.density(z))))

    def density(self, z: Floats) -> Floats:
        """e^-|z| / 2."""
        return 0.5 * np.exp(-np.abs(z))

    def tilt(self, z: Floats) -> Floats:
        """-sign(z)."""
        return -np.sign(z)

    def primitive(self, z: Floats) -> Floats:
        """(|z| + e^-|z| - 1) / 2."""
        size = np.abs(z)
        return 0.5 * (size + np.expm1(-size))

    def hazard(self, z: Floats) -> Floats:
        """1, and e^-z / (2 - e^-z) from 0 on."""
        half = self.density(z)
        return np.asarray(np.where(z < 0, 1.0, half / (1.0 - half)))


class Cauchy(Link):
    """F(z) = 1/2 + arctan(z) / pi: surprises at every distance. Not log-concave: its log-loss is not convex."""

    def cdf(self, z: Floats) -> Floats:
        """1/2 + arctan(z) / pi, as the angle of (-z, 1)."""
        return np.arctan2(1.0, -z) / math.pi

    def log_cdf(self, z: Floats) -> Floats:
        """log F(z)."""
        tail = self.cdf(-np.abs(z))
        return np.asarray(np.where(z < 0, np.log(tail), np.log1p(-tail)))

    def density(self, z: Floats) -> Floats:
        """1 / (pi (1 + z^2))."""
        return 1.0 / (math.pi * (1.0 + z * z))

    def tilt(self, z: Floats) -> Floats:
        """-2 z / (1 + z^2)."""
        return -2.0 * z / (1.0 + z * z)

    def primitive(self, z: Floats) -> Floats:
        """(z arctan z - log(1 + z^2) / 2) / pi."""
        return (z * np.arctan(z) - 0.5 * np.log1p(z * z)) / math.pi


# Models of pairs by name. Another symmetric law is a class and a line here.
LINKS: dict[str, Link] = {"btl": Logistic(), "thurstone": Probit(), "laplace": Laplace(), "cauchy": Cauchy()}
