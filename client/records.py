"""Raw records, wrapped so that they do not end up in a log, a traceback, a pickle or a message by accident."""

from typing import NoReturn, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Records:
    """Raw records of some rows, in the order in which the rows were asked for.

    Features of shape (rows, k, d) and responses of shape (rows, k), for k records a row; responses are None where the
    model has none. Rows with fewer records are padded, and `counts` (rows,) says how many are theirs.
    Printing hides the content; pickling, copying and iterating are refused. `reveal` is the one way to the values.
    """

    __slots__ = ("_counts", "_features", "_responses")

    def __init__(self, features: Floats, responses: Floats | None, counts: NDArray[np.int64] | None = None) -> None:
        if features.dtype != np.float64 or features.ndim != 3:
            raise ValueError(f"expected float64 features of three axes, got {features.dtype} with {features.ndim}")
        if responses is not None and responses.shape != features.shape[:2]:
            raise ValueError(f"expected responses of shape {features.shape[:2]}, got {responses.shape}")
        if counts is not None and counts.shape != features.shape[:1]:
            raise ValueError(f"expected one count a row, got shape {counts.shape}")
        self._features, self._responses, self._counts = features.view(), responses, counts
        self._features.flags.writeable = False

    def __len__(self) -> int:
        return len(self._features)

    def __repr__(self) -> str:
        return f"Records({len(self)} rows, content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("records stay in the process that read them: expected no pickling and no copying")

    def part(self, first: int, last: int) -> Self:
        """The rows first, ..., last - 1 of these, as many as there are."""
        rows = slice(first, last)
        responses = None if self._responses is None else self._responses[rows]
        return type(self)(self._features[rows], responses, None if self._counts is None else self._counts[rows])

    def reveal(self) -> tuple[Floats, Floats | None, NDArray[np.int64] | None]:
        """Features, responses and counts, read-only. Every call of this is a place to review."""
        return self._features, self._responses, self._counts
