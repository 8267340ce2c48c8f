"""A member's two secrets in parts: what each holder gets, sealed for it, and what it finds in what it gets."""

import struct
from dataclasses import dataclass, field

from Crypto.Protocol.SecretSharing import Shamir

from client.secure.keys import SessionKeys, Unsealed, opened, sealed
from client.secure.membership import SessionRefused
from client.secure.ticket import Ticket
from protocol.secure.messages import SHARE, Parcel

PLACE = struct.Struct("<I")


@dataclass(frozen=True)
class Share:
    """Of a member's secrets: where the polynomials were taken; of its own mask's seed, and of its mask key's."""

    place: int
    own: bytes = field(repr=False)
    mask: bytes = field(repr=False)


def parcels_for(ticket: Ticket, threshold: int, keys: SessionKeys) -> tuple[Parcel, ...]:
    """Both secrets in shares, any `threshold` of which are the secret and fewer nothing, one parcel a holder.

    Source: Shamir 1979, over GF(2^128), by pycryptodome.
    """
    count = len(ticket.channels)
    own, mask = (Shamir.split(threshold, count, seed, False) for seed in (keys.seed, keys.mask_seed))
    parcels = []
    for other, (place, first), (_, second) in zip(ticket.channels, own, mask, strict=True):
        content = PLACE.pack(place) + bytes(first) + bytes(second)
        key = keys.parcel_key(ticket.channels[other], ticket.me, other)
        parcels.append(Parcel(other, sealed(key, content, ticket.roster)))
    return tuple(parcels)


def shares_in(parcels: tuple[Parcel, ...], ticket: Ticket, keys: SessionKeys) -> dict[int, Share]:
    """What this member holds of others, by who they are; nothing of a parcel that does not open.

    One that was made badly keeps nobody from going on. Raises SessionRefused for a parcel of somebody else's.
    """
    found = {}
    for parcel in parcels:
        if parcel.other not in ticket.channels:
            raise SessionRefused("expected parcels of those whose shares it holds, got one of another member")
        key = keys.parcel_key(ticket.channels[parcel.other], parcel.other, ticket.me)
        try:
            content = opened(key, parcel.content, ticket.roster)
        except Unsealed:
            continue
        start, middle = PLACE.size, PLACE.size + SHARE
        found[parcel.other] = Share(PLACE.unpack_from(content)[0], content[start:middle], content[middle:])
    return found
