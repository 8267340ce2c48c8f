"""A byte-bounded cache of public features, which client and server of one process may share: no label is in it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from protocol.choice_features import reduced_blocks, rounded_blocks, row_sizes
from protocol.features import Floats, Rounded, reduced_rows, rounded
from protocol.problem import DRAWN, Problem
from protocol.shaping import mapped


class FeatureStore:
    """Reduced and rounded rows of public features, computed once and dropped least recently used first.

    `seed` is the study's public seed of drawn features; None serves given features only. Arrays that leave the store
    are read-only. `budget_bytes` bounds what is kept, never what can be asked. Not safe for several threads.
    """

    def __init__(self, seed: int | None, budget_bytes: int = 1 << 29) -> None:
        self._seed = seed
        self._budget = budget_bytes
        self._held: OrderedDict[Hashable, tuple[Rounded, int]] = OrderedDict()
        self._bytes = 0

    def reduced(self, problem: Problem, n: int, repetition: int, start: int, stop: int) -> Floats:
        """Rows Q^T x of start, ..., stop - 1, shape (rows, p); see `protocol.features.reduced_rows`.

        Of choices blocks of shape (rows, K, p): `protocol.choice_features.reduced_blocks`.
        Raises ValueError for rows outside 0..n-1, and for drawn features without a seed.
        """
        self._check(problem, n, start, stop)
        seed = 0 if self._seed is None else self._seed
        key = (*_place(problem, n, repetition), start, stop)
        compute = reduced_rows if problem.kind == "pairwise" else reduced_blocks
        return self._get(key, lambda: Rounded(compute(problem, seed, n, repetition, start, stop), None)).rows

    def rounded(
        self,
        problem: Problem,
        n: int,
        repetition: int,
        start: int,
        stop: int,
        exponent: int,
        radius: float | None,
        linear: Floats | None = None,
    ) -> Rounded:
        """Rows v_i = trunc(w_i Q^T x_i) in units of 2^exponent, with their weights; see `protocol.features.rounded`.

        With a map `linear` (p, p) those of M Q^T x_i.
        """
        key = (*_place(problem, n, repetition), start, stop, exponent, radius, linear is not None and linear.tobytes())

        def compute() -> Rounded:
            rows = self.reduced(problem, n, repetition, start, stop)
            if linear is not None:
                rows = mapped(rows, linear)
            if problem.kind == "pairwise":
                return rounded(rows, exponent, radius)
            return rounded_blocks(rows, row_sizes(problem, start, stop), exponent, radius)

        return self._get(key, compute)

    def _check(self, problem: Problem, n: int, start: int, stop: int) -> None:
        if not 0 <= start < stop <= n:
            raise ValueError(f"expected rows 0 <= start < stop <= {n}, got {start}..{stop}")
        if self._seed is None and problem.features in DRAWN:
            raise ValueError(f"expected a seed for drawn features {problem.features!r}, got None")

    def _get(self, key: Hashable, compute: Callable[[], Rounded]) -> Rounded:
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key][0]
        value = compute()
        size = 0
        for array in (value.rows, value.weights):
            if array is not None:
                array.flags.writeable = False
                size += array.nbytes
        if size <= self._budget:
            self._held[key] = (value, size)
            self._bytes += size
        while self._bytes > self._budget:
            self._bytes -= self._held.popitem(last=False)[1][1]
        return value


def _place(problem: Problem, n: int, repetition: int) -> tuple[Hashable, ...]:
    """Given features are the same in every repetition."""
    return (problem.digest, n, repetition) if problem.features in DRAWN else (problem.digest,)
