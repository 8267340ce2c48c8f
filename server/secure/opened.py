"""The end of a session: masks come off the sum of those who stayed, and off nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from protocol.secure.graph import terms
from protocol.secure.masks import Residues, added, centred, residues_of, sign_of
from protocol.secure.messages import Reveal, commitment
from server.collect import Collected
from server.evidence import Heard
from server.secure.masks import NotOpened, Place, keystream, mask_key, pair_key, secret_of, self_key

if TYPE_CHECKING:
    from server.secure.stages import Session

Key = tuple[int, bytes]  # what a mask is a keystream of, and whether it is to be taken away (-1) or added (1)


class Shares:
    """Shares that were revealed, by whose secret they are of."""

    def __init__(self) -> None:
        self._found: dict[int, list[Place]] = {}

    def put(self, reveal: Reveal) -> None:
        """One more."""
        self._found.setdefault(reveal.member, []).append((reveal.place, reveal.share))

    def of(self, member: int) -> list[Place]:
        """All of a member's."""
        return self._found.get(member, [])


def opened(session: Session) -> list[Heard]:
    """What each task's sum is, of those who stayed; where it cannot be opened, nothing, and why."""
    heard = [_nothing(session) for _ in session.tasks]
    if not session.failed:
        try:
            keys = _keys(session)
            heard = [_sum(session, place, keys) for place in range(len(session.tasks))]
        except NotOpened as error:
            session.failed = str(error)
            heard = [_nothing(session) for _ in session.tasks]
    found = zip(session.tasks, session.agenda.tasks, heard, strict=True)
    return [Heard(task, name, _noted(session, collected)) for task, name, collected in found]


def _keys(session: Session) -> list[Key]:
    """The keys of all masks on the sum: survivors' own, and those that survivors share with who dropped out."""
    name, there = session.agenda.session, set(session.survivors)
    keys = list[Key]()
    for member in session.joined:
        if member in there:
            said = session.given[member].commitment
            seed = _secret(session, member, partial(_commits, name, said))
            keys.append((-1, self_key(seed, name)))
            continue
        own = mask_key(_secret(session, member, partial(_makes, name, session.roster[member].mask)), name)
        keys += [
            (-sign_of(other, member), pair_key(own, session.roster[other].mask, name, member, other))
            for other in session.near(member)
            if other in there
        ]
    return keys


def _commits(session: bytes, said: bytes, seed: bytes) -> bool:
    return commitment(session, seed) == said


def _makes(session: bytes, public: bytes, seed: bytes) -> bool:
    return mask_key(seed, session).public_key().public_bytes_raw() == public


def _secret(session: Session, member: int, right: Callable[[bytes], bool]) -> bytes:
    """One of a member's secrets. Raises NotOpened naming whose it is."""
    try:
        return secret_of(session.shares.of(member), terms(len(session.roster)).threshold, right)
    except NotOpened as error:
        raise NotOpened(f"{session.names[member]}: {error}") from None


def _sum(session: Session, place: int, keys: list[Key]) -> Collected:
    """The sum of one task, modulo M and as the integer next to 0, in units of the task's grid."""
    assert session.inputs is not None
    task, collected = session.tasks[place], session.inputs.collected[place]
    total: Residues | None = collected.residues
    assert total is not None
    for sign, key in keys:
        total = added(
            total, residues_of(keystream(key, place, total.size), total.shape, task.modulus), sign, task.modulus
        )
    sums = np.ldexp(centred(total, task.modulus).astype(np.float64), task.exponent or 0)
    return replace(collected, residues=total, sums=sums)


def _nothing(session: Session) -> Collected:
    none = np.zeros(0, dtype=np.int64)
    return Collected(none, None, None, (), None, frozenset(), Counter(), ())


def _noted(session: Session, collected: Collected) -> Collected:
    """The same with whoever refused or was left out at any stage."""
    faults = [*session.faults, *(session.inputs.faults if session.inputs else ())]
    words = [str(fault) for fault in faults]
    if session.failed:
        words.insert(0, session.failed)
    return replace(
        collected,
        refusals=session.refusals,
        refusing={code: frozenset(names) for code, names in session.refusing.items()},
        rejected=(*collected.rejected, *words),
        blamed=collected.blamed | {fault.sender for fault in faults if fault.sender},
    )
