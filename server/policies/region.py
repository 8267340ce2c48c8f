"""Where the reward parameter lies: an ellipsoid around an estimate, computed from what is public or already private."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import chdtri

from server.kernels import Array
from server.policies.spread import Spread

# A share of radius^2: what the ball is let say about directions that the rows say nothing about.
BALL_SHARE = 0.01
_SINGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class Region:
    """{u: (u - centre)' P (u - centre) <= radius^2}: centre (p,), P = precision (p, p), positive definite, radius > 0.

    Raises ValueError for a wrong shape, values that are not finite, a singular precision, or a radius that is not > 0.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (9), where P is Sigma_D + lambda I.
    """

    centre: Array = field(repr=False)
    precision: Array = field(repr=False)
    radius: float

    def __post_init__(self) -> None:
        p = len(self.centre)
        if self.centre.shape != (p,) or self.precision.shape != (p, p):
            raise ValueError(f"expected a precision of shape {(p, p)}, got {self.precision.shape}")
        if not (np.isfinite(self.centre).all() and np.isfinite(self.precision).all()):
            raise ValueError("expected a finite centre and a finite precision, got NaN or inf")
        if not 0.0 < self.radius < math.inf:
            raise ValueError(f"expected a finite radius > 0, got {self.radius}")
        sizes = self.axes[0]
        if not sizes[0] > _SINGULAR * sizes[-1]:
            raise ValueError("expected a definite precision, got a singular one: the rows do not span the space")

    @cached_property
    def axes(self) -> tuple[Array, Array]:
        """Eigenvalues (p,) of the precision, rising, and their directions as columns (p, p)."""
        sizes, directions = np.linalg.eigh(self.precision)
        return sizes, directions

    def along_axes(self, w: Array) -> Array:
        """w (..., p) in coordinates along the axes; a plain loop, so that a row's bits do not depend on the others."""
        directions = self.axes[1]
        turned = np.zeros(w.shape)
        for j in range(len(directions)):
            turned += w[..., j, None] * directions[j]
        return turned

    def width(self, w: Array) -> Array:
        """radius ||P^(-1/2) w|| for w of shape (..., p): how far w . u can be from w . centre."""
        total = np.zeros(w.shape[:-1])
        for size, column in zip(self.axes[0], np.moveaxis(self.along_axes(w), -1, 0), strict=True):
            total += column**2 / size
        wide: Array = self.radius * np.sqrt(total)
        return wide

    def lowest(self, w: Array) -> Array:
        """min over the region of w . u = w . centre - radius ||P^(-1/2) w||, for w of shape (..., p)."""
        return inner(w, self.centre) - self.width(w)

    def holds(self, u: Array) -> bool:
        """Whether u (p,) lies in the region."""
        gap = self.along_axes(u - self.centre)
        return float((self.axes[0] * gap**2).sum()) <= self.radius**2


def wald_region(u: Array, spread: Spread, level: float, bound: float = math.inf, active: bool = False) -> Region:
    """A region around the estimate u that holds the parameter with probability `level`, to first order in n.

    With bread H, meat V: where the ball was inactive P = n H V^-1 H, the inverse of the covariance, and
    radius^2 = chi2_p(level). Where it was `active` the estimate is to first order the H-nearest point of the ball to
    the free one, and such a projection comes no further from any point of the ball in the norm of H: then P = n H and
    radius^2 = chi2_p(level) lambda_max(H^(-1/2) V H^(-1/2)), which is the same where V = H.
    With a ball ||u|| <= bound, lambda I is added to P and 4 lambda bound^2 = radius^2 / 100 to radius^2: all points of
    the ball that were in the region stay in it, and P is definite even where rows do not span the space.
    A ridge moves the centre; the radius does not know by how much.

    Raises ValueError for a level outside (0, 1), and for rows that do not span the space where there is no ball.
    Source: derived, see docs/POLICIES.md.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"expected a level in (0, 1), got {level}")
    square = float(chdtri(len(u), 1.0 - level))
    if active:
        precision = spread.count * spread.bread
        square *= _largest_ratio(spread.bread, spread.meat)
    else:
        precision = spread.count * _middle(spread.bread, spread.meat)
    if bound < math.inf:
        precision = precision + BALL_SHARE * square / (4.0 * bound**2) * np.eye(len(u))
        square *= 1.0 + BALL_SHARE
    return Region(u.copy(), precision, math.sqrt(square))


def inner(w: Array, u: Array) -> Array:
    """w . u for w of shape (..., p), by a plain loop over coordinates."""
    total = np.zeros(w.shape[:-1])
    for j in range(len(u)):
        total += w[..., j] * u[j]
    return total


def _middle(bread: Array, meat: Array) -> Array:
    """H V^-1 H, over the directions in which V is not zero (in the others H is not either)."""
    if bread is meat:
        return bread
    sizes, directions = np.linalg.eigh(meat)
    kept = sizes > _SINGULAR * sizes[-1]
    half = (bread @ directions[:, kept]) / np.sqrt(sizes[kept])
    result: Array = half @ half.T
    return result


def _largest_ratio(bread: Array, meat: Array) -> float:
    """lambda_max(H^(-1/2) V H^(-1/2)) over the directions in which H is not zero."""
    if bread is meat:
        return 1.0
    sizes, directions = np.linalg.eigh(bread)
    kept = sizes > _SINGULAR * sizes[-1]
    half = directions[:, kept] / np.sqrt(sizes[kept])
    return float(np.linalg.eigvalsh(half.T @ meat @ half)[-1])
