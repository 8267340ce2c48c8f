"""Names of labels, 32 bytes each, in one block: as objects of their own they would take more than twice as much."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

SIZE = 32


@dataclass(frozen=True)
class Identities(Sequence[bytes]):
    """A sequence of names of `SIZE` bytes. Raises ValueError for a block that does not consist of such names."""

    block: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.block) % SIZE:
            raise ValueError(f"expected names of {SIZE} bytes, got {len(self.block)} bytes in all")

    @classmethod
    def of(cls, names: Iterable[bytes]) -> "Identities":
        """These names, in order.

        >>> Identities.of([bytes(32), b"x" * 32])[1] == b"x" * 32
        True
        """
        block = bytearray()
        for name in names:
            block += name
        return cls(bytes(block))

    def __len__(self) -> int:
        return len(self.block) // SIZE

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> "Identities": ...

    def __getitem__(self, place: int | slice) -> "bytes | Identities":
        if isinstance(place, slice):
            return self.at(np.arange(len(self))[place])
        start = range(len(self))[place] * SIZE
        return self.block[start : start + SIZE]

    def __iter__(self) -> Iterator[bytes]:
        return (self.block[start : start + SIZE] for start in range(0, len(self.block), SIZE))

    def at(self, places: NDArray[np.intp]) -> "Identities":
        """Some of them, by position."""
        return Identities(self.array()[places].tobytes())

    def array(self) -> NDArray[Any]:
        """All of them, shape (names,), to be sorted and compared: numpy cuts what it takes out of it at zeros."""
        return np.frombuffer(self.block, dtype=f"S{SIZE}")

    def first(self) -> NDArray[np.bool_]:
        """Whether a name is not among those before it, (names,).

        >>> Identities.of([bytes(32), b"x" * 32, bytes(32)]).first().tolist()
        [True, True, False]
        """
        found = np.zeros(len(self), dtype=np.bool_)
        found[np.unique(self.array(), return_index=True)[1]] = True
        return found
