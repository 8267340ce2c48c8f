"""What a member will need again of a roster, sealed for itself: it keeps a secret for each session, and no rosters."""

import struct
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from client.secure.keys import SessionKeys, Unsealed, opened, sealed
from client.secure.membership import SessionRefused
from protocol.secure.messages import DIGEST, PUBLIC

HEAD = struct.Struct(f"<{DIGEST}s{DIGEST}sIIIII")  # roster, pins, members, its number, tasks, holders, neighbours
Counts = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Ticket:
    """A checked roster as one member sees it: `rows` (members, tasks), `places` of keys among those that it pins.

    `channels` are keys of the holders of its shares, and `masks` of those with whom it shares masks: by their numbers,
    its own among them.
    """

    roster: bytes
    pins: bytes
    me: int
    rows: Counts = field(repr=False)
    places: Counts = field(repr=False)
    channels: dict[int, bytes] = field(repr=False)
    masks: dict[int, bytes] = field(repr=False)

    @property
    def members(self) -> int:
        """How many there are."""
        return len(self.places)

    def seal(self, keys: SessionKeys, session: bytes) -> bytes:
        """For the member itself, in this session."""
        counts = (self.members, self.me, self.rows.shape[1], len(self.channels), len(self.masks))
        numbers = np.array([*self.channels, *self.masks], dtype="<u4")
        public = b"".join([*self.channels.values(), *self.masks.values()])
        arrays = self.rows.astype("<u4").tobytes() + self.places.astype("<u4").tobytes() + numbers.tobytes()
        return sealed(keys.ticket_key, HEAD.pack(self.roster, self.pins, *counts) + arrays + public, session)

    @classmethod
    def open(cls, raw: bytes, keys: SessionKeys, session: bytes) -> Self:
        """The ticket that this member sealed. Raises SessionRefused for any other bytes."""
        try:
            content = opened(keys.ticket_key, raw, session)
        except Unsealed:
            raise SessionRefused("expected the ticket that this member gave, got another") from None
        roster, pins, members, me, tasks, holders, others = HEAD.unpack_from(content)
        sizes = (members * tasks, members, holders + others)
        numbers = np.frombuffer(content, dtype="<u4", count=sum(sizes), offset=HEAD.size)
        rows, places, found = np.split(numbers.astype(np.uint32), np.cumsum(sizes)[:2])
        start = HEAD.size + 4 * sum(sizes)
        public = [content[at : at + PUBLIC] for at in range(start, len(content), PUBLIC)]
        named = list(zip(found.tolist(), public, strict=True))
        return cls(roster, pins, me, rows.reshape(members, tasks), places, dict(named[:holders]), dict(named[holders:]))
