"""The worst parameter of a region and a ball at once, exactly, by a dual of one variable."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq

from server.kernels import Array
from server.policies.region import Region

_OUTSIDE = 1e-9


@dataclass(frozen=True, eq=False)
class Worst:
    """min of w . u and where it is taken, (p,)."""

    value: float
    u: Array = field(repr=False)


def lowest_in_ball(region: Region, bound: float, w: Array) -> Worst:
    """min of w . u over the points u of a region with ||u|| <= bound.

    For t >= 0 both constraints imply (u - c)' P (u - c) + t ||u||^2 <= radius^2 + t bound^2, an ellipsoid again, whose
    minimum g(t) is a formula: never above the one looked for. By strong duality max_t g(t) is the minimum. g rises
    while its minimiser u(t) lies outside the ball and falls after, so the best t is 0, or infinity (the ball alone),
    or the root of ||u(t)|| = bound.

    Raises ValueError for bound <= 0, and for a centre outside the ball, since the two may then have no point in common.
    Source: derived, see docs/POLICIES.md.
    """
    if not bound > 0.0:
        raise ValueError(f"expected bound > 0, got {bound}")
    if math.sqrt(float((region.centre**2).sum())) > bound * (1.0 + _OUTSIDE):
        raise ValueError(f"expected a region whose centre lies in the ball of radius {bound}, got one outside")
    length = math.sqrt(float((w**2).sum()))
    if length == 0.0:
        return Worst(0.0, region.centre)
    dual = _Dual(region, bound, region.along_axes(w))
    at = dual.point(0.0)
    if dual.outside(at) > 0.0:
        if region.holds(alone := -bound / length * w):
            return Worst(-bound * length, alone)
        at = dual.point(dual.root())
    return Worst(float((dual.w * at).sum()), (region.axes[1] * at).sum(axis=1))


class _Dual:
    """Everything in coordinates along the region's axes."""

    def __init__(self, region: Region, bound: float, w: Array) -> None:
        self.w, self._bound, self._radius = w, bound, region.radius
        self._sizes = region.axes[0]
        self._centre = region.along_axes(region.centre)

    def point(self, t: float) -> Array:
        """u(t), where w . u is least on the ellipsoid of t."""
        scale = self._sizes + t
        middle = self._sizes * self._centre / scale
        slack = self._bound**2 - float((self._sizes * self._centre**2 / scale).sum())  # >= 0 for a centre in the ball
        square = self._radius**2 + t * max(slack, 0.0)
        step = self.w / scale
        result: Array = middle - math.sqrt(square / float((self.w * step).sum())) * step
        return result

    def outside(self, point: Array) -> float:
        """||u||^2 - bound^2."""
        return float((point**2).sum()) - self._bound**2

    def root(self) -> float:
        """The t at which u(t) reaches the ball; at t = 0 it lies outside."""
        high = float(self._sizes[-1])
        while self.outside(self.point(high)) > 0.0:
            high *= 8.0
            if not np.isfinite(high):
                return 1e300
        low = min(float(self._sizes[0]), high) / 8.0
        while self.outside(self.point(low)) <= 0.0 and low > 0.0:
            high, low = low, low / 8.0
        found: float = brentq(lambda t: self.outside(self.point(t)), low, high, xtol=1e-300, rtol=1e-14, maxiter=500)
        return found
