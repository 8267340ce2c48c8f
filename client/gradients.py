"""What a record says of point: the gradient of its loss, in plain loops, so that its bits depend on it alone."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from client.records import Records

Floats = NDArray[np.float64]


def gradients(model: str, records: Records, point: Floats, centre: Floats | None = None) -> Floats:
    """The mean gradient of each row's records at point (d,), less the centre (d,) if there is one; shape (rows, d).

    mean: point - x; linear: (point . x - y) x; logistic: (sigma(point . x) - y) x. What overflows is infinite or NaN,
    and is bounded with the rest.

    Source: Tao, Wu, Cheng, Wang 2022, Section 3; the models' losses.
    """
    features, responses, counts = records.reveal()
    rows, most, dimension = features.shape
    gradient_of = GRADIENTS[model]
    own = np.full(rows, most, dtype=np.int64) if counts is None else counts
    total = np.zeros((rows, dimension))
    with np.errstate(over="ignore", invalid="ignore"):
        for index in range(most):
            x = features[:, index]
            y = None if responses is None else responses[:, index]
            each = gradient_of(x, y, point)
            total += np.where((index < own)[:, None], each, 0.0) if counts is not None else each
        found = total / own[:, None] if most > 1 else total
        return found if centre is None else found - centre


def _mean(x: Floats, y: Floats | None, point: Floats) -> Floats:
    return point - x


def _linear(x: Floats, y: Floats | None, point: Floats) -> Floats:
    assert y is not None
    gradient: Floats = (_product(x, point) - y)[:, None] * x
    return gradient


def _logistic(x: Floats, y: Floats | None, point: Floats) -> Floats:
    assert y is not None
    gradient: Floats = (expit(_product(x, point)) - y)[:, None] * x
    return gradient


def _product(x: Floats, point: Floats) -> Floats:
    z = np.zeros(len(x))
    for column, factor in zip(x.T, point, strict=True):
        z += column * factor
    return z


GRADIENTS: dict[str, Callable[[Floats, Floats | None, Floats], Floats]] = {
    "mean": _mean,
    "linear": _linear,
    "logistic": _logistic,
}
