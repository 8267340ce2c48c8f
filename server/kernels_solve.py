"""Compiled linear algebra for (p, p) systems, in plain loops so that no BLAS thread count can change a bit."""

import math

import numpy as np

from server.kernels import Array, compiled

PANEL = 8  # columns of a factor that are made together
ROUNDING = 1e-12  # a pivot below this share of its diagonal entry is rounding, not information


@compiled
def subtract(row: Array, factor: float, other: Array) -> None:
    """row -= factor * other, as far as `other` goes."""
    for j in range(other.size):
        row[j] -= factor * other[j]


@compiled
def cholesky(matrix: Array, shift: float, least: float, factor: Array) -> bool:
    """Write the lower factor of matrix + shift I; False where a pivot is below `least` times its diagonal entry."""
    p = matrix.shape[0]
    columns, held = np.zeros((p, p)), np.empty((PANEL, p))  # the factor's columns as lines, and those at work
    for start in range(0, p, PANEL):
        end = min(start + PANEL, p)
        for j in range(start, end):
            for i in range(j, p):
                held[j - start, i] = matrix[i, j]
            held[j - start, j] += shift
        for k in range(start):  # every entry loses its products in the order of k: the panel only shares their loads
            for j in range(start, end):
                subtract(held[j - start, j:], columns[k, j], columns[k, j:])
        for j in range(start, end):
            row = held[j - start]
            for k in range(start, j):
                subtract(row[j:], columns[k, j], columns[k, j:])
            total = row[j]
            if not least * (matrix[j, j] + shift) < total < np.inf:
                return False
            columns[j, j] = math.sqrt(total)
            for i in range(j + 1, p):
                columns[j, i] = row[i] / columns[j, j]
    for i in range(p):
        for j in range(i + 1):
            factor[i, j] = columns[j, i]
    return True


@compiled
def solve_lower(factor: Array, right: Array, x: Array) -> None:
    """Write the solution of factor x = right."""
    for i in range(x.size):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * x[k]
        x[i] = total / factor[i, i]


@compiled
def solve_upper(factor: Array, x: Array) -> None:
    """Overwrite x by the solution of factor' solution = x."""
    for i in range(x.size - 1, -1, -1):
        x[i] /= factor[i, i]
        for k in range(i):
            x[k] -= factor[i, k] * x[i]


@compiled
def is_definite(matrix: Array, least: float) -> bool:
    """Whether the matrix is positive definite with pivots of at least `least` times their diagonal entries."""
    return cholesky(matrix, 0.0, least, np.zeros(matrix.shape))


@compiled
def inverse(matrix: Array, shift: float) -> tuple[Array, bool]:
    """Inverse of matrix + shift I and True, or zeros and False where it is not safely positive definite."""
    p = matrix.shape[0]
    factor, result = np.zeros((p, p)), np.zeros((p, p))
    if not cholesky(matrix, shift, ROUNDING, factor):
        return result, False
    for i in range(p):  # the lower triangle of factor^-1, all columns at once
        row = result[i, : i + 1]
        row[i] = 1.0
        for k in range(i):
            subtract(row, factor[i, k], result[k, : k + 1])
        for j in range(i + 1):
            row[j] /= factor[i, i]
    for k in range(p - 1, -1, -1):  # times factor'^-1 from the left
        row = result[k, : k + 1]
        for i in range(p - 1, k, -1):
            subtract(row, factor[i, k], result[i, : k + 1])
        for j in range(k + 1):
            row[j] /= factor[k, k]
    for j in range(p):
        for k in range(j):
            result[k, j] = result[j, k]
    return result, True


@compiled
def leverage(curvature: Array, shift: float, reach: Array) -> float:
    """(sum_j reach_j sqrt((M^-1)_jj))^2, M = curvature + shift I; infinite where M is not safely positive definite."""
    inverted, definite = inverse(curvature, shift)
    root = 0.0
    for j in range(reach.size):
        root += reach[j] * math.sqrt(inverted[j, j])
    return root * root if definite else np.inf


@compiled
def dot(x: Array, y: Array) -> float:
    """Inner product, summed in order."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@compiled
def norm(x: Array) -> float:
    """Euclidean length."""
    return math.sqrt(dot(x, x))


@compiled
def project_on_ball(u: Array, bound: float) -> None:
    """Overwrite u by the nearest point of |u| <= bound."""
    length = norm(u)
    if length > bound:
        for j in range(u.size):
            u[j] *= bound / length


@compiled
def minimise_on_ball(matrix: Array, linear: Array, bound: float, v: Array) -> tuple[float, bool]:
    """Write argmin v' matrix v / 2 - linear . v over |v| <= bound; the ball's multiplier, and whether it exists.

    matrix (p, p) positive semi-definite. Without a ball (bound = inf) a singular matrix has no unique minimiser: False.
    With one, a singular matrix gets a shift of 1e-10 of its mean diagonal: nearly the minimiser of least norm.
    Source: Newton's method on 1/|v(shift)|, monotone from a shift too small (More and Sorensen 1983, algorithm 3.2).
    """
    p = v.size
    factor, scratch = np.zeros((p, p)), np.zeros(p)
    shift, length = 0.0, np.inf
    if not cholesky(matrix, shift, ROUNDING, factor):
        mean = 0.0
        for j in range(p):
            mean += matrix[j, j] / p
        if bound == np.inf or not mean < np.inf:
            return shift, False
        shift = 1e-10 * mean if mean > 0.0 else norm(linear) / bound
        if shift == 0.0 or not cholesky(matrix, shift, ROUNDING, factor):
            return shift, shift == 0.0
    for _ in range(200):
        solve_lower(factor, linear, v)
        solve_upper(factor, v)
        length = norm(v)
        if length <= bound * (1.0 + 1e-14 * max(1.0, p / 10)):  # rounding of a length grows with p
            break
        solve_lower(factor, v, scratch)
        rate = norm(scratch) / length
        shift += (length - bound) / (bound * rate * rate)
        if not cholesky(matrix, shift, ROUNDING, factor):
            return shift, False
    project_on_ball(v, bound)
    return shift, bool(length < np.inf)


@compiled
def ball_step(matrix: Array, gradient: Array, u: Array, bound: float) -> tuple[Array, float, float, bool]:
    """Minimiser v of the quadratic model at u over the ball, the multiplier, the decrement -gradient . (v - u), exists.

    The model is gradient . (v - u) + (v - u)' matrix (v - u) / 2.
    """
    linear, v = np.zeros(u.size), np.zeros(u.size)
    for j in range(u.size):
        linear[j] = dot(matrix[j], u) - gradient[j]
    shift, exists = minimise_on_ball(matrix, linear, bound, v)
    decrement = 0.0
    for j in range(u.size):
        decrement -= gradient[j] * (v[j] - u[j])
    return v, shift, decrement, exists
