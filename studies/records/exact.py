"""What nobody's privacy protects: the exact minimiser over a file's records, and its loss."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from client.sources.record_table import RecordTable
from server.estimators.newton import EstimationError

Floats = NDArray[np.float64]


class Flat(NamedTuple):
    """All records of a table, features (records, d) and responses, with weights that count every row once."""

    features: Floats
    responses: Floats | None
    weights: Floats


def flat(table: RecordTable) -> Flat:
    """Records without their padding; those of a holder of k records weigh 1/k each, as its mean gradient does."""
    features, responses, counts = table.held.reveal()
    rows, most, dimension = features.shape
    own = np.full(rows, most) if counts is None else counts
    kept = np.arange(most) < own[:, None]
    weights = np.repeat(1.0 / (own * rows), own)
    return Flat(features[kept].reshape(-1, dimension), None if responses is None else responses[kept], weights)


def minimiser(model: str, records: Flat, ridge: float = 0.0) -> Floats:
    """The point of least mean loss plus ridge |point|^2 / 2, shape (d,). Raises EstimationError where there is none."""
    x, y, w = records
    if y is None:
        return np.asarray((w[:, None] * x).sum(axis=0) / (1 + ridge))
    if model == "linear":
        gram = (w[:, None] * x).T @ x + ridge * np.eye(x.shape[1])
        if not ridge and np.linalg.matrix_rank(gram) < len(gram):
            raise EstimationError("expected features that are not linearly dependent, or a ridge")
        return np.asarray(np.linalg.solve(gram, (w * y) @ x))

    def step(point: Floats) -> tuple[float, Floats]:
        return loss(model, records, point, ridge), (w * (expit(x @ point) - y)) @ x + ridge * point

    found = minimize(step, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9})
    if not (found.success and np.isfinite(found.x).all()):
        raise EstimationError("expected a minimiser of the logistic loss, found none: classes separate; add a ridge")
    return np.asarray(found.x)


def loss(model: str, records: Flat, point: Floats, ridge: float = 0.0) -> float:
    """The mean loss over rows at a point, as `protocol.problem.Problem` defines it, plus ridge |point|^2 / 2."""
    x, y, w = records
    extra = ridge * math.fsum(point * point) / 2
    if y is None:
        gap = x - point
        return math.fsum(w * (gap * gap).sum(axis=1)) / 2 + extra
    z = x @ point
    each = (z - y) ** 2 / 2 if model == "linear" else np.logaddexp(0.0, z) - y * z
    return math.fsum(w * each) + extra
