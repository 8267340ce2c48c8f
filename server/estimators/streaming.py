"""The same estimators over reports that do not fit in memory: passes over blocks, and O(p) numbers between them.

A source is a function that starts a new pass: it returns the blocks of all rows, in the same order each time. Rows are
cut anew into parts of whole tiles, so the bits are those of an estimate in memory, however the source cuts its blocks.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocol.terms import TIE
from server.estimators.base import Estimate, Evidence, Options, wins
from server.estimators.features import Features, Passes, sample_step
from server.estimators.minimiser import debiased, mle, naive
from server.estimators.randomized import one_step, rr_map, rr_mle
from server.estimators.row_sums import PartSums
from server.estimators.sgd import debiased_sgd, sgd
from server.estimators.workspace import PILOT, Reports, Workspace
from server.kernels import TILE, Array, add_moment, largest
from server.kernels_logistic import add_cumulant
from server.kernels_randomized import add_likelihood

_PART = 16 * TILE  # rows; the passes of a tile need no more


class Block(NamedTuple):
    """Some rows (m, p) in reduced coordinates, and what was reported about them (m,): 0, 1, or 2 for a tie."""

    rows: NDArray[np.float64]
    symbols: NDArray[np.uint8]


Source = Callable[[], Iterable[Block]]

STREAMING: dict[str, Callable[[Reports, Options], Estimate]] = {
    "mle": mle,
    "sgd": sgd,
    "debiased-sgd": debiased_sgd,
    "debiased": debiased,
    "one-step": one_step,
    "rr-mle": rr_mle,
    "rr-map": rr_map,
    "naive": naive,
}


def estimate(name: str, source: Source, contrast: float, flip: float, options: Options, third: float = 0.0) -> Estimate:
    """One estimate of `STREAMING` from a source of blocks; for several of one release make one `Stream` of it.

    contrast = keep - flip and flip: the channel's, 1 and 0 for clear labels; third where ties are randomised: see
    `Evidence`. Passes: two to look at the rows (their
    number, sum of reports and second moments; a sample of them), then as many as the estimator takes: one for sgd with
    a step (two for a pilot or an average), about three for `debiased` and two more for `one-step`.
    Guarantee: that of the reported labels; this is post-processing.
    Raises ValueError for a name that is none, and what `Stream` and the estimator raise.
    """
    if name not in STREAMING:
        raise ValueError(f"expected an estimator out of {sorted(STREAMING)}, got {name!r}")
    return STREAMING[name](Stream(source, contrast, flip, third), options)


class Stream(Reports):
    """A release behind a source, as estimators see it; holds O(p^2) numbers, a sample of rows and one part at a time.

    Sums of reports are exact where rows lie on a grid (as those of a task do); else they round like those in memory.
    Raises ValueError for blocks of a wrong shape, dtype or value, for no rows, and for a pass of another length.
    """

    def __init__(self, source: Source, contrast: float, flip: float, third: float = 0.0) -> None:
        super().__init__()
        self._source = source
        self._count: int | None = None
        self.contrast, self.flip, self.third, self.noise_stddev = contrast, flip, third, 0.0
        first = next(self._parts(), None)
        if first is None:
            raise ValueError("expected a source of at least one row, got none")
        start = slice(0, min(PILOT, len(first[1])))
        rows, symbols = first[0][start].copy(), first[1][start]
        half_sum = 0.5 * ((2.0 * wins(symbols) - 1.0) @ rows)
        law = (contrast, flip, 0.0)
        self._head = Evidence(rows, None, symbols, half_sum, *law, third=third)  # checks the channel
        self.half_sum, self.features = self._look()

    def likelihood(self, observed: bool, u: Array) -> tuple[float, Array, Array]:
        """By parts, in order."""
        if self.third:
            raise ValueError("expected reports without ties, got randomised ones: use debiased")
        sums, law = PartSums(len(u), len(u)), (self.contrast, self.flip, observed)
        for rows, symbols in self._parts():
            signs = 2.0 * wins(symbols) - 1.0
            if not signs.all():
                raise ValueError("expected reports without ties, got clear ones: use mle")
            sums.add(len(rows), partial(add_likelihood, rows, signs, *law, u))
        return sums.mean()

    def score_variance(self, u: Array, hessian: Array) -> Array:
        """Of randomised ties by what was reported, in one pass more."""
        if not self.third:
            return super().score_variance(u, hessian)
        sums = PartSums(0, len(hessian))
        for rows, symbols in self._parts():
            squares = np.where(symbols == TIE, 0.0, 0.25 / self.contrast**2)
            sums.add(len(rows), partial(_add_weighted, rows, squares - 0.25))
        own: Array = self.features.score_variance(u, hessian, 0.0) + sums.mean()[2]
        return own

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """By parts, in order."""
        for rows, symbols in self._parts():
            yield np.ascontiguousarray(rows.T), wins(symbols)

    def head(self) -> Workspace:
        """The first reports, at most 1000, in memory."""
        return Workspace(self._head)

    def _rows(self) -> Iterator[Array]:
        for rows, _ in self._parts():
            yield rows

    def _look(self) -> tuple[Array, Passes]:
        """The pass that counts rows and sums reports."""
        count, p = 0, self._head.rows.shape[1]
        half_sum, reach, sums = np.zeros(p), np.zeros(p), PartSums(0, p)
        for rows, symbols in self._parts():
            half_sum += (wins(symbols) - 0.5) @ rows
            reach = np.maximum(reach, largest(rows, np.empty(0)))
            sums.add(len(rows), partial(_add_squares, rows))
            count += len(symbols)
        self._count = count
        return half_sum, _StreamFeatures(self._rows, count, reach, sums.mean()[2])

    def _parts(self) -> Iterator[tuple[Array, NDArray[np.uint8]]]:
        """One pass: rows (m, p) and symbols (m,), m the same for all parts but the last."""
        count = 0
        for rows, symbols in _aligned(self._source(), TIE if self.flip == 0.0 or self.third else 1):
            count += len(symbols)
            yield rows, symbols
        if self._count is not None and count != self._count:
            raise ValueError(f"expected {self._count} rows in every pass, got {count}")


class _StreamFeatures(Passes):
    """Rows behind a function that starts a pass over them."""

    def __init__(self, rows: Callable[[], Iterator[Array]], count: int, reach: Array, second_moment: Array) -> None:
        self._pass, self._shape = rows, (count, len(reach))
        self._reach, self._second_moment = reach, second_moment

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return self._shape

    @property
    def reach(self) -> Array:
        """max_i |x_ij|."""
        return self._reach

    @property
    def second_moment(self) -> Array:
        """From the first pass."""
        return self._second_moment

    @cached_property
    def sample(self) -> Features | None:
        """Evenly spaced rows, found in a pass."""
        step = sample_step(*self._shape)
        if not step:
            return None
        taken, done = [], 0
        for rows in self._pass():
            taken.append(rows[-done % step :: step].copy())
            done += len(rows)
        return Features.of(np.concatenate(taken), None)

    def cumulant(self, u: Array) -> tuple[float, Array, Array]:
        """By parts, in order."""
        return self._cumulant(u, len(u))

    def slope(self, u: Array) -> tuple[float, Array]:
        """By parts, in order; without a Hessian."""
        return self._cumulant(u, 0)[:2]

    def _cumulant(self, u: Array, side: int) -> tuple[float, Array, Array]:
        sums = PartSums(len(u), side)
        for rows in self._pass():
            sums.add(len(rows), partial(add_cumulant, rows, np.empty(0), u))
        return sums.mean()


def _add_squares(rows: Array, value: float, gradient: Array, moments: Array) -> float:
    return _add_weighted(rows, np.ones(len(rows)), value, gradient, moments)


def _add_weighted(rows: Array, weights: Array, value: float, _: Array, moments: Array) -> float:
    add_moment(rows, weights, moments)
    return value


def _aligned(blocks: Iterable[Block], most: int) -> Iterator[tuple[Array, NDArray[np.uint8]]]:
    """Blocks cut anew into parts of `_PART` rows, but for the last; parts share one buffer. Symbols up to `most`."""
    rows, symbols, filled = np.empty((0, 0)), np.empty(_PART, np.uint8), 0
    for block in blocks:
        if not rows.size:
            rows = np.empty((_PART, block.rows.shape[-1]))
        _check(block, rows.shape[1], most)
        start = 0
        while start < len(block.symbols):
            taken = min(_PART - filled, len(block.symbols) - start)
            rows[filled : filled + taken] = block.rows[start : start + taken]
            symbols[filled : filled + taken] = block.symbols[start : start + taken]
            filled, start = filled + taken, start + taken
            if filled == _PART:
                yield rows, symbols
                filled = 0
    if filled:
        yield rows[:filled], symbols[:filled]


def _check(block: Block, p: int, most: int) -> None:
    rows, symbols = block
    if rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] != p or p == 0:
        raise ValueError(f"expected blocks of float64 rows of shape (m, {p or 'p > 0'}), got {rows.dtype} {rows.shape}")
    if symbols.dtype != np.uint8 or symbols.shape != (len(rows),):
        raise ValueError(f"expected uint8 symbols of shape ({len(rows)},), got {symbols.dtype} {symbols.shape}")
    if symbols.size and symbols.max() > most:
        raise ValueError(f"expected symbols up to {most} (2 for ties), got {symbols.max()}")
    if not np.isfinite(rows).all():
        raise ValueError("expected finite rows, got NaN or inf")
