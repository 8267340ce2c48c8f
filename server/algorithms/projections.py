"""Projections on what theta may be: each onto a closed convex set, one row a repetition."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def on_ball(theta: Floats, radius: float) -> Floats:
    """The nearest point of |theta| <= radius."""
    length = np.sqrt((theta * theta).sum(axis=1, keepdims=True))
    scaled: Floats = theta * np.minimum(1.0, radius / np.maximum(length, 1e-300))
    return scaled


def on_box(theta: Floats, radius: float) -> Floats:
    """The nearest point of |theta_j| <= radius."""
    return np.clip(theta, -radius, radius)


def on_simplex(theta: Floats, radius: float = 1.0) -> Floats:
    """The nearest point of theta >= 0, sum_j theta_j = radius.

    Source: Duchi, Shalev-Shwartz, Singer, Chandra 2008, Figure 1.

    >>> on_simplex(np.array([[1.0, 1.0], [3.0, 0.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    ordered = -np.sort(-theta, axis=1)
    excess = np.cumsum(ordered, axis=1) - radius
    counts = np.arange(1, theta.shape[1] + 1)
    kept = (ordered - excess / counts > 0).sum(axis=1)
    shift = np.take_along_axis(excess, kept[:, None] - 1, axis=1) / kept[:, None]
    projected: Floats = np.maximum(theta - shift, 0.0)
    return projected


def on_sum_zero(theta: Floats, radius: float) -> Floats:
    """The nearest point of sum_j theta_j = 0, |theta| <= radius: a hyperplane through the ball's centre."""
    return on_ball(theta - theta.mean(axis=1, keepdims=True), radius)


def anywhere(theta: Floats, radius: float) -> Floats:
    """theta itself."""
    return theta


PROJECTIONS: dict[str, Callable[[Floats, float], Floats]] = {
    "ball": on_ball,
    "box": on_box,
    "none": anywhere,
    "simplex": on_simplex,
    "sum-zero": on_sum_zero,
}
