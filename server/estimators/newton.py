"""Newton's method and Fisher scoring on a ball, with Armijo's line search: one loop for every likelihood here."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from server.kernels import Array
from server.kernels_solve import ball_step, leverage, norm

# (value, gradient, positive semi-definite curvature) at u
Objective = Callable[[Array], tuple[float, Array, Array]]
# (value, gradient) at u
Slope = Callable[[Array], tuple[float, Array]]

_ARMIJO = 1e-4
_ROUNDING = 1e-14  # noise of a mean over rows, relative: smaller differences of values say nothing
GRADIENT_ROUNDING = 1e-15  # the same for a gradient, relative to the largest feature
SMALLEST_STEP = 2.0**-40
_NOTHING = 1e-20  # a decrement that no difference of values can show
_CHORD = (1e-6, 1e-3)  # of decrements: so near, a gradient with the last curvature mends the most; nearer, Newton ends
_PATIENCE = 3  # steps of that kind: the curvature is too small to trust, and more steps will not mend it


class EstimationError(ValueError):
    """The data do not determine an estimate: says why, and what to change."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where `descend` ended: u (p,), with the curvature (p, p) one last step before it.

    iterations: steps taken; decrement: a bound on what is left, or the last one where it did not converge.
    """

    u: Array
    curvature: Array
    hit_boundary: bool
    iterations: int
    decrement: float
    converged: bool


def descend(
    objective: Objective,
    start: Array,
    bound: float,
    reach: Array,
    tolerance: float,
    exact: bool,
    limit: int = 100,
    drift: Callable[[float], float] | None = None,
    slope: Slope | None = None,
    nearby: Array | None = None,
) -> Minimum:
    """Minimise over ||u|| <= bound from a feasible start.

    Each step goes to the minimiser v of the quadratic model on the ball, or backtracks towards u. It ends with a full
    step where the decrement d = -G.(v - u) is at most `tolerance` and the model is trusted that far: trust =
    4 d leverage <= 1, leverage = (sum_j reach_j sqrt((M^-1)_jj))^2 >= max_i x_i' M^-1 x_i, reach_j = max_i |x_ij|.
    For a logistic loss this proves that a minimiser exists nearby (a loss that only tends to its infimum never passes)
    and that the full step leaves a decrement of at most trust d: so with `exact`, the curvature of a logistic loss,
    that product is what has to be small. `drift` (w), for other losses, bounds how fast the logarithm of a row's
    curvature changes over |z| <= w; the logistic loss has 1. It multiplies distances, so trust counts drift^2 times.
    With `slope`, a cheaper look, a step in sight of the end is followed by one that keeps the curvature, and the first
    step takes the curvature `nearby`, about that at the start, where it is given; the end itself is judged, and the
    curvature returned, at a fresh one.
    Raises EstimationError when bound is inf and no minimiser was found, and for numbers that overflow.
    Source: Newton's method with Armijo's line search. Proof: the Hessian changes by a factor of at most exp(r) over a
    step with max_i |x_i . step| = r, so the gradient left is at most (exp(r) - 1 - r) / r of the old one, in its norm
    (Bach 2010, proposition 2).
    """
    u, decrement, iteration, exists, idle, fresh = start, math.inf, 0, True, 0, slope is None or nearby is None
    value, gradient, curvature = objective(u) if slope is None or nearby is None else _held(slope, nearby)(u)
    for iteration in range(1, limit + 1):
        target, shift, decrement, exists = ball_step(curvature, gradient, u, bound)
        furthest = leverage(curvature, shift, reach)
        if drift is not None:  # a trusted step moves an index by at most 1/2
            furthest *= drift(float(reach @ np.abs(u)) + 0.5) ** 2
        trust = 4.0 * furthest * (max(decrement, 0.0) + GRADIENT_ROUNDING**2 * furthest)
        remains = decrement * trust if exact else decrement
        if fresh and exists and trust <= 1.0 and remains <= tolerance:
            return Minimum(target, curvature, on_boundary(target, bound), iteration, remains, converged=True)
        idle = idle + 1 if decrement <= _NOTHING else 0
        if not exists or idle > _PATIENCE or (math.isinf(bound) and GRADIENT_ROUNDING * furthest > 1.0):
            break
        fresh = slope is None or not (fresh and _CHORD[0] < decrement <= _CHORD[1])
        look = objective if slope is None or fresh else _held(slope, curvature)
        step, trial, gradient, curvature = line_search(look, u, target, value, decrement)
        if step <= SMALLEST_STEP:
            break
        u, value = u + step * (target - u), trial
    if math.isinf(bound):
        raise EstimationError(
            "expected labels that determine a minimiser, found none without a ball: the labels are separable, the "
            "features do not span the space, or the de-biased sum is out of reach; give a finite bound or a ridge"
        )
    if not exists:
        raise EstimationError("expected features and sums of moderate size, got an overflow: rescale the features")
    return Minimum(u, curvature, on_boundary(u, bound), iteration, decrement, converged=False)


def _held(slope: Slope, curvature: Array) -> Objective:
    """A loss whose curvature is taken to be what it was."""
    return lambda u: (*slope(u), curvature)


def line_search(
    objective: Objective, u: Array, target: Array, value: float, decrement: float
) -> tuple[float, float, Array, Array]:
    """The largest step 2^-k from u, of this value, towards the target that Armijo's rule accepts, with what is there.

    `SMALLEST_STEP` or less where it accepts none.
    """
    direction, step = target - u, 1.0
    enough = value + _ROUNDING * (1.0 + abs(value))
    trial, gradient, curvature = objective(target)
    while not trial <= enough - _ARMIJO * step * decrement and step > SMALLEST_STEP:
        step *= 0.5
        trial, gradient, curvature = objective(u + step * direction)
    return step, trial, gradient, curvature


def on_boundary(u: Array, bound: float) -> bool:
    """Whether u is on the ball's boundary, but for rounding."""
    return norm(u) >= bound * (1.0 - 1e-9)
