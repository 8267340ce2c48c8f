"""Raw labels, wrapped so that they do not end up in a log, a traceback, a pickle or a message by accident."""

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray


class Labels:
    """Raw labels of some rows, in the order in which the rows were asked for; uint8, shape (rows,).

    Printing hides the content; pickling, copying and iterating are refused. `reveal` is the one way to the values.
    """

    __slots__ = ("_values",)

    def __init__(self, values: NDArray[np.uint8]) -> None:
        if values.dtype != np.uint8 or values.ndim != 1:
            raise ValueError(f"expected uint8 labels of one axis, got {values.dtype} with {values.ndim} axes")
        self._values = values.copy()
        self._values.flags.writeable = False

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Labels({len(self)} rows, content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("labels stay in the process that read them: expected no pickling and no copying")

    def reveal(self) -> NDArray[np.uint8]:
        """The values, read-only. Every call of this is a place to review."""
        return self._values
