"""Shaped noise: a public linear map under which features have second moments I, from public features alone.

The map travels in a task as doubles, so client and server apply the same one. No claim rests on it: how far a label
moves a sum is taken from the integer rows that it made.
"""

import math

import numpy as np
from numpy.typing import NDArray

from protocol.features import project, reduced_rows
from protocol.problem import DRAWN, Problem

Floats = NDArray[np.float64]
SHAPED, CLIPPED = "gaussian-statistic-shaped", "gaussian-statistic-clipped"
ANISOTROPIC = 4.0  # lambda_max / lambda_min beyond which noise is shaped by default
LARGEST_ENTRY = 1e100  # of a map: squares of larger numbers overflow
SINGULAR = 1e-9
MOST_COORDINATES = 512  # a map costs p^2 operations a row
_BLOCK = 4096


def second_moments(problem: Problem, n: int) -> Floats:
    """Sigma = E[x x^T] of reduced differences under the drawn law, or the mean over the first n given rows; (p, p)."""
    if problem.features in DRAWN:
        scales = [float(scale) for scale in problem.scales] or [1.0] * problem.dimension
        own = np.diag([2.0 * scale / (problem.dimension if problem.features == "sphere" else 1) for scale in scales])
        return project(project(own).T) if problem.sum_zero else own
    total = np.zeros((problem.reduced_dimension, problem.reduced_dimension))
    for start in range(0, n, _BLOCK):
        columns = np.ascontiguousarray(reduced_rows(problem, 0, n, 0, start, min(n, start + _BLOCK)).T)
        for j, column in enumerate(columns):
            total[j] += (column * columns).sum(axis=1)
    total /= n
    moments: Floats = 0.5 * (total + total.T)
    return moments


def shaping(problem: Problem, n: int) -> Floats:
    """The map M = L^-1 for Sigma = L L^T, lower triangular, (p, p): M Sigma M^T = I.

    Raises ValueError where Sigma is singular to working precision, or has more than `MOST_COORDINATES` rows.
    """
    _check_size(problem)
    moments = second_moments(problem, n)
    if not _condition(moments) < 1 / SINGULAR:
        raise ValueError("expected features that span the space where noise is shaped: leave the mechanism out")
    return triangular_inverse(_cholesky(moments))


def default_mechanism(problem: Problem) -> str:
    """The central mechanism of a study that names none: shaped where features are anisotropic, else clipped.

    Shaped where lambda_max / lambda_min of `second_moments` (over all given rows) is above 4 and not beyond 1e9.
    """
    small = problem.reduced_dimension <= MOST_COORDINATES
    if problem.kind != "pairwise" or not small:
        return CLIPPED
    moments = second_moments(problem, 0 if problem.design is None else len(problem.design))
    return SHAPED if ANISOTROPIC < _condition(moments) < 1 / SINGULAR else CLIPPED


def mapped(rows: Floats, matrix: Floats) -> Floats:
    """M r for each row r, shape (n, p): plain elementwise arithmetic, so a row's bits depend on that row alone.

    Raises ValueError for a map of another shape, and for rows that overflow.

    >>> mapped(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [3.0, 1.0]])).tolist()
    [[1.0, 5.0]]
    """
    if matrix.shape != (rows.shape[1], rows.shape[1]):
        raise ValueError(f"expected a map of shape {(rows.shape[1],) * 2}, got {matrix.shape}")
    result = np.zeros_like(rows)
    for value, column in zip(rows.T, matrix.T, strict=True):
        result += value[:, None] * column
    if not np.isfinite(result).all():
        raise ValueError("expected rows that a map leaves finite, got NaN or inf")
    return result


def triangular_inverse(lower: Floats) -> Floats:
    """The inverse of a lower triangular matrix, by forward substitution. Raises ValueError where there is none.

    >>> triangular_inverse(np.array([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    if not lower.diagonal().all() or np.triu(lower, 1).any():
        raise ValueError("expected a lower triangular matrix without zeros on its diagonal, got another")
    rest = np.eye(len(lower))
    for j in range(len(lower)):
        rest[j] /= lower[j, j]
        rest[j + 1 :] -= lower[j + 1 :, j, None] * rest[j]
    return rest


def _cholesky(moments: Floats) -> Floats:
    """L with L L^T = moments, elementwise and column by column."""
    rest, lower = moments.copy(), np.zeros_like(moments)
    for j in range(len(rest)):
        lower[j:, j] = rest[j:, j] / math.sqrt(rest[j, j])
        rest[j + 1 :, j + 1 :] -= lower[j + 1 :, j, None] * lower[j + 1 :, j]
    return lower


def _condition(moments: Floats) -> float:
    values = np.linalg.eigvalsh(moments)
    return float(values[-1] / values[0]) if values[0] > 0.0 else math.inf


def _check_size(problem: Problem) -> None:
    if problem.kind != "pairwise" or problem.reduced_dimension > MOST_COORDINATES:
        raise ValueError(
            f"expected pairs in at most {MOST_COORDINATES} coordinates where noise is shaped, got kind "
            f"{problem.kind!r} and {problem.reduced_dimension}"
        )
