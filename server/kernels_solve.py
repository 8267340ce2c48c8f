"""Compiled linear algebra for (p, p) systems, in plain loops so that no BLAS thread count can change a bit."""

import math

import numpy as np

from server.kernels import Array, compiled

ROUNDING = 1e-12  # a pivot below this share of its diagonal entry is rounding, not information


@compiled
def cholesky(matrix: Array, shift: float, least: float, factor: Array) -> bool:
    """Write the lower factor of matrix + shift I; False where a pivot is below `least` times its diagonal entry."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            total = matrix[i, j]
            if i == j:
                total += shift
            floor = least * total
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = total / factor[j, j]
            elif total > floor and total < np.inf:
                factor[i, i] = math.sqrt(total)
            else:
                return False
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
    factor, result, unit = np.zeros((p, p)), np.zeros((p, p)), np.zeros(p)
    if not cholesky(matrix, shift, ROUNDING, factor):
        return result, False
    for j in range(p):  # the solution's part from j on: the rest is known from earlier columns
        row = result[j, j:]
        unit[j] = 1.0
        solve_lower(factor[j:, j:], unit[j:], row)
        solve_upper(factor[j:, j:], row)
        unit[j] = 0.0
        for k in range(j):
            result[j, k] = result[k, j]
    return result, True


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
        if length <= bound * (1.0 + 1e-14):
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
