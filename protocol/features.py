"""Public features: what client and server both compute, row by row, with the same bits.

Rows are projected (Q), weighted, and truncated to the task's grid, in that order. Both sides use the truncated rows in
all formulas, so rounding is no bias. Every value of a row depends on that row alone.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream, normal, words
from protocol.grid import truncate
from protocol.problem import Problem

Floats = NDArray[np.float64]
LARGEST_NORMAL = 8.3  # |normal(word)| <= 8.21 for every 64-bit word: the inverse map's argument is at least 2^-53
_LONG = 128  # times as many rows as columns
MOST_IN_PAIRS = 512  # rows of one labeler whose pairs are all looked at; bounds of more take them one by one


def project(x: Floats) -> Floats:
    """u = Q^T x for the Helmert basis Q of the vectors that sum to zero; shape (n, d) -> (n, d - 1).

    Column j of Q holds j entries 1/sqrt(j(j+1)), then -j/sqrt(j(j+1)), so u_j is a scaled difference of a running sum
    and the next entry. Plain elementwise arithmetic: a row's bits do not depend on its neighbours.

    >>> bool(abs(project(np.ones((1, 4)))).max() < 1e-15)
    True
    """
    factors, lengths = _helmert(x.shape[1] - 1)
    if len(x) > _LONG * x.shape[1]:  # few columns, one by one: to the same bits
        reduced, running = np.empty((len(x), len(factors))), np.zeros(len(x))
        for j in range(1, x.shape[1]):
            running += x[:, j - 1]
            reduced[:, j - 1] = (running - j * x[:, j]) * (1.0 / lengths[j - 1])
        return reduced
    reduced = np.cumsum(x[:, :-1], axis=1)
    reduced += 0.0  # no negative zero: sums begin at 0
    reduced -= factors * x[:, 1:]
    reduced *= 1.0 / lengths
    return reduced


def lift(u: Floats) -> Floats:
    """theta = Q u, the inverse of `project` on vectors that sum to zero; shape (..., p) -> (..., p + 1)."""
    j, lengths = _helmert(u.shape[-1])
    scaled = u / lengths
    suffix = np.cumsum(scaled[..., ::-1], axis=-1)[..., ::-1]
    theta = np.zeros((*u.shape[:-1], u.shape[-1] + 1))
    theta[..., :-1] = suffix
    theta[..., 1:] -= j * scaled
    return theta


@lru_cache
def _helmert(p: int) -> tuple[NDArray[np.int64], Floats]:
    """j = 1, ..., p and sqrt(j (j + 1)), of all columns of Q."""
    j = np.arange(1, p + 1)
    return j, np.sqrt(j * (j + 1.0))


def coordinates(problem: Problem, theta: Floats) -> Floats:
    """Reduced coordinates u of a full parameter theta."""
    return project(theta[None, :])[0] if problem.sum_zero else theta.copy()


def full(problem: Problem, u: Floats) -> Floats:
    """The full parameter theta of reduced coordinates u, shape (..., p) -> (..., d)."""
    return lift(u) if problem.sum_zero else u.copy()


def differences(problem: Problem, address: Address, start: int, stop: int) -> Floats:
    """x = phi(second) - phi(first) of rows start, ..., stop - 1; shape (rows, dimension).

    Drawn features take fixed positions of the sequence: d words a row ("gaussian": x is sqrt(2) times standard
    normal, or sqrt(2 scale) times by coordinate) or 2 d words a row ("sphere": two points, each a normalised vector of
    normals).
    """
    d, count = problem.dimension, stop - start
    if problem.features == "gaussian":
        drawn = normal(words(address, start * d, count * d)).reshape(count, d)
        return drawn * (np.sqrt(2.0 * _scales(problem)) if problem.scales else math.sqrt(2))
    if problem.features == "sphere":
        points = normal(words(address, start * 2 * d, count * 2 * d)).reshape(count, 2, d)
        length = np.zeros((count, 2))
        for j in range(d):  # a plain loop: one order of addition on every machine
            length += points[:, :, j] ** 2
        points /= np.sqrt(length)[:, :, None]
        return np.ascontiguousarray(points[:, 1] - points[:, 0])
    assert problem.design is not None
    chosen = problem.design[start:stop]
    if len(chosen) != count:
        raise ValueError(f"expected rows below {len(problem.design)}, got rows {start}..{stop - 1}")
    if problem.features == "values":
        return chosen.astype(np.float64)
    x = np.zeros((count, d))
    x[np.arange(count), chosen[:, 1]] += 1.0
    x[np.arange(count), chosen[:, 0]] -= 1.0
    return x


def reduced_rows(problem: Problem, seed: int, n: int, repetition: int, start: int, stop: int) -> Floats:
    """Rows of Q^T x (or x) before weighting and truncation, shape (rows, p)."""
    x = differences(problem, Address(seed, Stream.PROBLEM, n, repetition), start, stop)
    return project(x) if problem.sum_zero else x


def norms(rows: Floats) -> Floats:
    """Euclidean norm of each row, by a plain loop over coordinates."""
    total = np.zeros(len(rows))
    for j in range(rows.shape[1]):
        total += rows[:, j] ** 2
    return np.sqrt(total)


@dataclass(frozen=True)
class Rounded:
    """Rows v_i = trunc(w_i Q^T x_i) on a grid, with their public weights w_i = min(1, radius / ||Q^T x_i||)."""

    rows: Floats
    weights: Floats | None


def rounded(rows: Floats, exponent: int, radius: float | None) -> Rounded:
    """Weight and truncate reduced rows; without a radius all weights are 1 and are left out."""
    if radius is None:
        return Rounded(truncate(rows, exponent), None)
    with np.errstate(divide="ignore"):
        return weighted(rows, exponent, np.minimum(1.0, radius / norms(rows)))


def weighted(rows: Floats, exponent: int, weights: Floats) -> Rounded:
    """Rows times public weights in (0, 1], truncated."""
    return Rounded(truncate(rows * weights[:, None], exponent), weights)


def group_norm(rows: Floats) -> float:
    """A bound on how far the labels of these rows together can move sum_i y_i v_i, in memory linear in their number.

    sqrt(sum_ij |v_i . v_j|) up to `MOST_IN_PAIRS` rows, sqrt(sum_a (sum_i |v_ia|)^2) beyond: the first is at most the
    second, and that at most the sum of the norms. The same bits on every machine; not rounded up.
    Source: derived, see docs/PRIVACY.md.
    """
    if len(rows) > MOST_IN_PAIRS:
        reach = [math.fsum(np.abs(column).tolist()) for column in rows.T]
        return math.sqrt(math.fsum(value * value for value in reach))
    gram = np.zeros((len(rows), len(rows)))
    for column in rows.T:
        gram += column[:, None] * column
    return math.sqrt(math.fsum(np.abs(gram).ravel()))


def group_weights(rows: Floats, groups: NDArray[np.int32], radius: float) -> Floats:
    """min(1, radius / group_norm) for each row (n, p), one weight for all rows of a group (n,)."""
    weights = np.ones(len(rows))
    for members in split_groups(groups):
        length = group_norm(rows[members])
        weights[members] = min(1.0, radius / length) if length else 1.0
    return weights


def split_groups(groups: NDArray[np.int32]) -> list[NDArray[np.intp]]:
    """Positions of each group's rows, in order; groups by rising number."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def row_bound(problem: Problem, radius: float | None, shaped: bool = False) -> float:
    """A bound on every coordinate of every row, from public facts only; never from labels.

    Rows of choices are those of all of them, relative to the first. Rows that went through a map (`shaped`) are bounded
    by their radius alone.
    """
    if shaped and radius is not None:
        bound = radius
    elif problem.features == "gaussian":
        bound = LARGEST_NORMAL * math.sqrt((2 if problem.kind == "pairwise" else 4) * float(_scales(problem).sum()))
    elif problem.features == "sphere":
        bound = 2.0
    elif problem.features == "items":
        bound = math.sqrt(2)
    else:
        bound = float(norms(_given_rows(problem)).max()) or 1.0
    # A little above: projection and weighting round, and norms of 2^20 coordinates by up to 6e-11.
    return min(bound, radius if radius is not None else math.inf) * (1 + 1e-9)


def _scales(problem: Problem) -> Floats:
    """Variances of the coordinates of drawn phi, shape (dimension,)."""
    return np.array([float(scale) for scale in problem.scales]) if problem.scales else np.ones(problem.dimension)


def _given_rows(problem: Problem) -> Floats:
    """x of features given by value, shape (rows, dimension): of choices phi_k - phi_0, all in one axis."""
    assert problem.design is not None
    x = problem.design.astype(np.float64)
    if problem.kind == "pairwise":
        return x
    x -= x[:, :1].copy()
    if problem.sizes is not None:
        x[np.arange(problem.choices) >= problem.sizes[:, None]] = 0.0
    return x.reshape(-1, problem.dimension)


def default_radius(problem: Problem, n: int) -> float:
    """The default clipping radius sqrt(tr Sigma) of reduced rows, Sigma = E[x x^T].

    Gaussian: sqrt(2 p), times the root of the mean scale. Sphere: sqrt(2 p / d). Given features: the root mean square
    norm of the first n rows.
    """
    p, d = problem.reduced_dimension, problem.dimension
    if problem.features == "gaussian":  # each coordinate keeps 1 - 1/d of its variance where sums are zero
        return math.sqrt(2 * float(_scales(problem).sum()) * p / d)
    if problem.features == "sphere":
        return math.sqrt(2 * p / d)
    if problem.features == "items":
        return math.sqrt(2)
    rows = reduced_rows(problem, 0, n, 0, 0, n)
    return math.sqrt(math.fsum(norms(rows) ** 2) / n) or 1.0
