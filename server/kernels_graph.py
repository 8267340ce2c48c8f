"""Compiled passes over comparisons of many items, without a second derivative of all pairs of them.

The comparisons are a graph: a product with the Hessian costs some operations a row, and conjugate gradients need few of
them. Vectors are by item, (d,), and sum to zero.
"""

import numpy as np

from server.kernels import TILE, Array, compiled
from server.kernels_pairs import Pairs, add_by_item, cumulant_tile
from server.kernels_solve import dot


@compiled
def graph_cumulant(pairs: Pairs, scales: Array, theta: Array) -> tuple[float, Array, Array]:
    """`server.kernels_pairs.pair_cumulant` with, in place of the Hessian, every row's part h_i of it, (n,).

    The Hessian is sum_i h_i x_i x_i', x_i = e_second - e_first.
    """
    d, n = theta.size, len(pairs)
    gradient, low, parts, value = np.zeros(d), np.zeros(d), np.empty(n), 0.0
    z, slope, curvature = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first, second = np.empty(TILE), np.empty(TILE)
    for start in range(0, n, TILE):
        count = min(TILE, n - start)
        scale = scales[start : start + count]
        value = cumulant_tile(pairs, start, count, scale, theta, z, slope, curvature, first, second, value)
        for i in range(count):
            parts[start + i] = curvature[i] / n
        add_by_item(pairs, start, count, slope, gradient, low)
    return value / n, (gradient + low) / n, parts


@compiled
def groups(pairs: Pairs, items: int) -> int:
    """How many groups of items the comparisons leave that no comparison joins.

    Source: Tarjan, van Leeuwen 1984, union by index with path halving.
    """
    above, count = np.arange(items), items
    for i in range(len(pairs)):
        a, b = pairs[i, 0], pairs[i, 1]
        while above[a] != a:
            above[a] = above[above[a]]
            a = above[a]
        while above[b] != b:
            above[b] = above[above[b]]
            b = above[b]
        if a != b:
            above[max(a, b)] = min(a, b)
            count -= 1
    return count


@compiled
def graph_product(pairs: Pairs, parts: Array, shift: float, v: Array, product: Array) -> None:
    """Write sum_i parts_i x_i (x_i . v) + shift v."""
    for j in range(v.size):
        product[j] = shift * v[j]
    for i in range(parts.size):
        a, b = pairs[i, 0], pairs[i, 1]
        flow = parts[i] * (v[b] - v[a])
        product[a] -= flow
        product[b] += flow


@compiled
def graph_solve(pairs: Pairs, parts: Array, shift: float, right: Array, share: float, x: Array) -> int:
    """Go on from x towards (sum_i parts_i x_i x_i' + shift I) x = right; x is overwritten, and the steps come back.

    Ends where the residual, in the norm of the inverse diagonal, is `share` of what it was, or after 2 d + 50 steps.
    Source: Hestenes and Stiefel 1952, preconditioned by the diagonal between projections on sums of zero.
    """
    d = x.size
    product, scale, residual = np.empty(d), np.full(d, shift), np.empty(d)
    for i in range(parts.size):
        scale[pairs[i, 0]] += parts[i]
        scale[pairs[i, 1]] += parts[i]
    graph_product(pairs, parts, shift, x, product)
    for j in range(d):
        residual[j] = right[j] - product[j]
    towards = np.zeros(d)
    size = _precondition(residual, scale, towards)
    least, direction = size * share * share, towards.copy()
    for step in range(2 * d + 50):
        graph_product(pairs, parts, shift, direction, product)
        bend = dot(direction, product)
        if not (size > least and bend > 0.0):
            return step
        rate = size / bend
        for j in range(d):
            x[j] += rate * direction[j]
            residual[j] -= rate * product[j]
        before = size
        size = _precondition(residual, scale, towards)
        for j in range(d):
            direction[j] = towards[j] + (size / before) * direction[j]
    return 2 * d + 50


@compiled
def _precondition(residual: Array, scale: Array, towards: Array) -> float:
    """Write the residual over the diagonal, moved to a sum of zero.

    Returns residual . towards, the square of the residual's norm.
    """
    total = 0.0
    for j in range(residual.size):
        towards[j] = residual[j] / scale[j] if scale[j] > 0.0 else 0.0
        total += towards[j]
    for j in range(residual.size):
        towards[j] -= total / residual.size
    return dot(residual, towards)
