"""Newton's method where the comparisons of many items are a graph: steps by conjugate gradients, nothing (d, d)."""

import math

import numpy as np

from protocol.features import lift
from server.estimators.newton import (
    GRADIENT_ROUNDING,
    SMALLEST_STEP,
    EstimationError,
    Minimum,
    Objective,
    line_search,
    on_boundary,
)
from server.kernels import Array
from server.kernels_graph import graph_cumulant, graph_product, graph_solve, groups
from server.kernels_pairs import Pairs
from server.kernels_solve import dot, norm

MANY = 300  # items: fewer are quicker with their Hessian
_TOLERANCE = 1e-24  # of what is left of a decrement
_LIMIT = 100


def graph_minimum(
    pairs: Pairs, scales: Array, items: int, mean: Array, bound: float, ridge: float, start: Array | None = None
) -> Minimum:
    """argmin A(u) - mean . u + ridge ||u||^2 / 2 over ||u|| <= bound, from `start`, else from 0.

    pairs (n, 2), scales 1 / w_i (n,) or (0,), mean and start (items - 1,). A step solves the quadratic model to a share
    0.1 min(1, r) of its residual, r = max_i |x_i . step| of the step before: so the error squares as Newton's does. It
    ends with a full step of r <= 1/2 that leaves a decrement of at most 1e-24, and curvature above rounding.
    The curvature of the result is empty: a matrix of all pairs of items is what this saves.
    Comparisons have to join all items (`joins`). Raises EstimationError where bound is inf and no minimiser was found.
    Source: inexact Newton, Dembo, Eisenstat, Steihaug 1982; what a full step leaves: Bach 2010, proposition 2.
    """
    target = lift(mean)

    def objective(theta: Array) -> tuple[float, Array, Array]:
        value, gradient, parts = graph_cumulant(pairs, scales, theta)
        return value + 0.5 * ridge * dot(theta, theta) - dot(target, theta), gradient - target + ridge * theta, parts

    theta = np.zeros(items) if start is None else lift(start)
    return _descend(objective, pairs, theta, bound, ridge)


def joins(pairs: Pairs, items: int) -> bool:
    """Whether the comparisons join all items: in groups that nobody compared a step has no scale."""
    return groups(pairs, items) == 1


def _descend(objective: Objective, pairs: Pairs, theta: Array, bound: float, ridge: float) -> Minimum:
    value, gradient, parts = objective(theta)
    share, shift, decrement, iteration = 0.1, 0.0, math.inf, 0
    for iteration in range(1, _LIMIT + 1):
        aim, shift = _model_minimum((pairs, parts, ridge), theta, gradient, bound, shift, share)
        direction = aim - theta
        decrement, moved = -dot(gradient, direction), float(np.ptp(direction))
        if not math.isfinite(moved):
            break
        left = (0.5 * moved * math.exp(moved) + share) ** 2 * abs(decrement) if moved <= 0.5 else math.inf
        # Rounding of a gradient moves an item by that over its curvature: more than 1/2 is no minimum.
        if left <= _TOLERANCE and 0.5 * (_weakest(pairs, parts, theta.size) + ridge + shift) >= GRADIENT_ROUNDING:
            return Minimum(_reduced(aim), np.empty((0, 0)), on_boundary(aim, bound), iteration, left, True)
        step, trial, gradient, parts = line_search(objective, theta, aim, value, decrement)
        if step <= SMALLEST_STEP:
            break
        theta, value, share = theta + step * direction, trial, 0.1 * min(1.0, moved)
    if math.isinf(bound):
        raise EstimationError(
            "expected labels that determine a minimiser, found none without a ball: an item that only wins or loses, "
            "or a de-biased sum out of reach; give a finite bound or a ridge"
        )
    return Minimum(_reduced(theta), np.empty((0, 0)), on_boundary(theta, bound), iteration, decrement, False)


def _weakest(pairs: Pairs, parts: Array, items: int) -> float:
    """The least diagonal entry of the Hessian: the curvature of the item that answers say least about."""
    return float((np.bincount(pairs[:, 0], parts, items) + np.bincount(pairs[:, 1], parts, items)).min())


def _model_minimum(
    model: tuple[Pairs, Array, float], theta: Array, gradient: Array, bound: float, shift: float, share: float
) -> tuple[Array, float]:
    """The minimiser over the ball of the quadratic model at theta, and the ball's multiplier.

    Source: Newton's method on 1 / |v(shift)|: More and Sorensen 1983, algorithm 3.2.
    """
    pairs, parts, ridge = model
    step = np.zeros(theta.size)
    graph_solve(pairs, parts, ridge, -gradient, share, step)
    aim = theta + step
    if norm(aim) <= bound:
        return aim, 0.0
    linear, aim, rate = np.empty(theta.size), theta.copy(), np.zeros(theta.size)
    graph_product(pairs, parts, ridge, theta, linear)
    linear -= gradient
    for _ in range(50):
        graph_solve(pairs, parts, ridge + shift, linear, 0.1 * share, aim)
        length = norm(aim)
        if abs(length - bound) <= max(0.1 * share * norm(aim - theta), 1e-13 * bound):
            break
        graph_solve(pairs, parts, ridge + shift, aim, 0.1, rate)
        shift = max(0.0, shift + (length - bound) / bound * length**2 / dot(aim, rate))
    return aim * (bound / norm(aim)), shift


def _reduced(theta: Array) -> Array:
    """`protocol.features.project` of one vector."""
    j = np.arange(1.0, theta.size)
    reduced: Array = (np.cumsum(theta[:-1]) - j * theta[1:]) / np.sqrt(j * (j + 1.0))
    return reduced
