"""Coins of an audit: addressed, so that it can be repeated; each use takes those that nobody took before."""

import zlib
from dataclasses import dataclass, field

from client.draws import AddressedDraws
from protocol.coins import Address, Stream, Words, words

_CHUNK = 1 << 12


@dataclass
class AuditCoins:
    """The coins of one subject of an audit, by a seed and the subject's name."""

    seed: int
    name: str
    _place: int = field(default=0, init=False)
    _calls: int = field(default=0, init=False)
    _left: list[int] = field(default_factory=list, init=False, repr=False)

    @property
    def place(self) -> int:
        """What tells the subject's coins from others', below 2^32."""
        return zlib.crc32(self.name.encode())

    def words(self, rows: int, width: int) -> Words:
        """The next words, shape (rows, width)."""
        found = words(Address(self.seed, Stream.AUDIT, self.place), self._place, rows * width)
        self._place += rows * width
        return found.reshape(rows, width)

    def draws(self) -> AddressedDraws:
        """Coins for rows of a client, others at every call."""
        return AddressedDraws(self.seed, self.place, self.call())

    def call(self) -> int:
        """A number that no call before had."""
        self._calls += 1
        return self._calls

    def randbits(self, count: int) -> int:
        """A uniform integer below 2^count, as of `secrets.randbits`."""
        if self._left and count <= 64:
            return self._left.pop() >> 64 - count
        value = 0
        while count > 0:
            if not self._left:
                self._left = self.words(1, _CHUNK)[0].tolist()
            taken = min(count, 64)
            value = value << taken | self._left.pop() >> 64 - taken
            count -= taken
        return value
