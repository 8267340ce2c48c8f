"""Many comparisons of few pairs: estimators that need no more of them than how often each pair was asked and won.

So reports may come and go by blocks: what stays is two numbers a pair.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from protocol.features import project
from server.estimators.features import PairFeatures
from server.estimators.workspace import Reports
from server.kernels import Array
from server.kernels_pairs import Pairs

_ONE_BY_ONE = "expected reports one by one, got sums by pair: use debiased, or mle of clear ones"
Whole = NDArray[np.int64]


class _Counted(PairFeatures):
    """Pairs (k, 2) that stand for w comparisons each, of weight one; scales 1 / w."""

    def moment(self, values: Array) -> Array:
        """(1/k) sum w_i values_i x_i x_i'."""
        return super().moment(values * self.scales)


class PairSums(Reports):
    """Comparisons of `items` whose scores sum to zero, by pair: how many there were, and how many the second won.

    pairs (k, 2), int32; counts and wins (k,), int64, 0 <= wins <= counts; contrast = keep - flip and flip: the
    channel's, 1 and 0 for clear labels. Estimators that see labels through one sum (`mle`, `debiased`, `naive`) give
    what they give for all reports in memory, but for rounding.
    Guarantee: that of the reported labels; this is post-processing.
    Raises ValueError for arrays of another shape or dtype, for wins beyond counts, and without any comparison.
    """

    noise_stddev = 0.0

    def __init__(self, items: int, pairs: Pairs, counts: Whole, wins: Whole, contrast: float, flip: float) -> None:
        super().__init__()
        _check(items, pairs, counts, wins)
        if not (0.0 < contrast <= 1.0 and abs(contrast + 2.0 * flip - 1.0) <= 1e-15):
            raise ValueError(f"expected contrast = 1 - 2 flip > 0 at flip = {flip}, got {contrast}")
        self.contrast, self.flip = contrast, flip
        asked = counts > 0
        pairs, counts, wins = np.ascontiguousarray(pairs[asked]), counts[asked], wins[asked]
        self._total = int(counts.sum())
        self.features = _Counted(pairs, items, self._total / len(counts) / counts)
        sums, halves = np.zeros(items), wins - 0.5 * counts  # exact: half numbers
        np.add.at(sums, pairs[:, 1], halves)
        np.subtract.at(sums, pairs[:, 0], halves)
        self.half_sum = project(sums[None, :])[0]

    @property
    def count(self) -> int:
        """Number of comparisons."""
        return self._total

    def likelihood(self, observed: bool, u: Array) -> tuple[float, Array, Array]:
        """Raises ValueError: a likelihood of randomised labels needs each."""
        raise ValueError(_ONE_BY_ONE)

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """Raises ValueError."""
        raise ValueError(_ONE_BY_ONE)

    def head(self) -> Reports:
        """Raises ValueError."""
        raise ValueError(_ONE_BY_ONE)


def by_pair(design: Pairs, counts: Whole, wins: Whole) -> tuple[Pairs, Whole, Whole]:
    """Rows (n, 2) with their counts and wins (n,), summed over rows of the same pair: pairs (k, 2), counts, wins (k,).

    A pair that rows have in both orders is two.
    """
    keys = design[:, 0].astype(np.int64) << 32 | design[:, 1]
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    sums = [np.zeros(len(first), dtype=np.int64) for _ in range(2)]
    for total, values in zip(sums, (counts, wins), strict=True):
        np.add.at(total, which, values)
    return design[first], sums[0], sums[1]


def _check(items: int, pairs: Pairs, counts: Whole, wins: Whole) -> None:
    shape = (len(pairs),)
    if pairs.dtype != np.int32 or pairs.shape != (*shape, 2):
        raise ValueError(f"expected int32 pairs of shape (k, 2), got {pairs.dtype} {pairs.shape}")
    for name, values in (("counts", counts), ("wins", wins)):
        if values.dtype != np.int64 or values.shape != shape:
            raise ValueError(f"expected int64 {name} of shape {shape}, got {values.dtype} {values.shape}")
    if not counts.any() or counts.min() < 0 or (wins < 0).any() or (wins > counts).any():
        raise ValueError("expected at least one comparison, and 0 <= wins <= counts of each pair")
    if pairs.min() < 0 or pairs.max() >= items or (pairs[:, 0] == pairs[:, 1]).any():
        raise ValueError(f"expected pairs of different items in 0..{items - 1}, got {pairs.min()}..{pairs.max()}")
