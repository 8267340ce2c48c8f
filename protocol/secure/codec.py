"""Questions and answers of a session <-> bytes. Strict: what is not canonical, complete and in range is a WireError."""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from protocol import halftruth_pb2 as wire
from protocol.codec_parts import parse
from protocol.errors import refused
from protocol.secure.messages import (
    DIGEST,
    MOST_MEMBERS,
    MOST_SIGNATURE,
    MOST_TASKS,
    NODE_KEY,
    PARCEL,
    PUBLIC,
    SHARE,
    Agenda,
    Consent,
    Entry,
    Parcel,
    Reveal,
    SessionAsk,
    SessionReply,
    Stage,
    agenda_message,
    entry_message,
)

# The fields that a stage has, beside session, stage and agenda; each of them has to be there.
ASKED: dict[Stage, frozenset[str]] = {
    Stage.KEYS: frozenset({"tasks"}),
    Stage.SHARES: frozenset({"roster"}),
    Stage.INPUT: frozenset({"tasks", "ticket", "parcels", "joined"}),
    Stage.CONSENT: frozenset({"ticket", "joined", "survivors"}),
    Stage.OPENING: frozenset({"ticket", "parcels", "joined", "survivors", "statements", "consents"}),
}
ANSWERED: dict[Stage, frozenset[str]] = {
    Stage.KEYS: frozenset({"entry"}),
    Stage.SHARES: frozenset({"ticket", "commitment", "parcels"}),
    Stage.CONSENT: frozenset({"signature"}),
    Stage.OPENING: frozenset({"reveals"}),
}


def encode_ask(ask: SessionAsk) -> bytes:
    """A question's canonical bytes."""
    return wire.SessionAsk(
        session=ask.session,
        stage=int(ask.stage),
        agenda=agenda_message(ask.agenda),
        tasks=ask.tasks,
        roster=[entry_message(entry) for entry in ask.roster],
        ticket=ask.ticket,
        parcels=[_parcel(parcel) for parcel in ask.parcels],
        joined=wire.Members(members=ask.joined) if ask.joined else None,
        survivors=wire.Members(members=ask.survivors) if ask.survivors else None,
        statements=[wire.Consent(member=item.member, signature=item.signature) for item in ask.statements],
        consents=[wire.Consent(member=item.member, signature=item.signature) for item in ask.consents],
    ).SerializeToString(deterministic=True)


def decode_ask(raw: bytes) -> SessionAsk:
    """Read a question. Raises WireError naming what does not fit."""
    message = parse(wire.SessionAsk(), raw, "question of a session")
    with refused("question of a session"):
        stage = Stage(message.stage)
        _check_fields(message, ASKED[stage], stage)
        agenda = Agenda(tuple(message.agenda.tasks), tuple(message.agenda.least))
        _check_agenda(agenda, message.session)
        if message.tasks and tuple(hashlib.sha256(task).digest() for task in message.tasks) != agenda.tasks:
            raise ValueError("expected the tasks of the agenda, got others")
        return SessionAsk(
            message.session,
            stage,
            agenda,
            tuple(message.tasks),
            tuple(_read_entry(entry, len(agenda.tasks)) for entry in message.roster),
            message.ticket,
            _read_parcels(message.parcels),
            _members(message, "joined"),
            _members(message, "survivors"),
            _read_consents(message.statements),
            _read_consents(message.consents),
        )


def encode_session_reply(reply: SessionReply) -> bytes:
    """An answer's canonical bytes."""
    return wire.SessionReply(
        session=reply.session,
        stage=int(reply.stage),
        entry=None if reply.entry is None else entry_message(reply.entry),
        ticket=reply.ticket,
        commitment=reply.commitment,
        parcels=[_parcel(parcel) for parcel in reply.parcels],
        signature=reply.signature,
        reveals=[
            wire.Reveal(member=item.member, mask=item.mask, place=item.place, share=item.share)
            for item in reply.reveals
        ],
    ).SerializeToString(deterministic=True)


def decode_session_reply(raw: bytes) -> SessionReply:
    """Read an answer. Raises WireError naming what does not fit."""
    message = parse(wire.SessionReply(), raw, "answer of a session")
    with refused("answer of a session"):
        stage = Stage(message.stage)
        if stage not in ANSWERED or len(message.session) != DIGEST:
            raise ValueError("expected a session of 32 bytes, and a stage that is answered so")
        _check_fields(message, ANSWERED[stage], stage)
        if stage is Stage.SHARES and len(message.commitment) != DIGEST:
            raise ValueError(f"expected a commitment of {DIGEST} bytes, got {len(message.commitment)}")
        return SessionReply(
            message.session,
            stage,
            _read_entry(message.entry, None) if message.HasField("entry") else None,
            message.ticket,
            message.commitment,
            _read_parcels(message.parcels),
            _signature(message.signature),
            _read_reveals(message.reveals),
        )


def _check_fields(message: wire.SessionAsk | wire.SessionReply, expected: frozenset[str], stage: Stage) -> None:
    there = {item.name for item, _ in message.ListFields()} - {"session", "stage", "agenda"}
    if there != expected:
        raise ValueError(f"expected {sorted(expected)} at stage {stage.name}, got {sorted(there)}")


def _check_agenda(agenda: Agenda, session: bytes) -> None:
    if not 1 <= len(agenda.tasks) <= MOST_TASKS or len(set(agenda.tasks)) != len(agenda.tasks):
        raise ValueError(f"expected 1 to {MOST_TASKS} different tasks, got {len(agenda.tasks)}")
    if any(len(task) != DIGEST for task in agenda.tasks) or len(agenda.least) != len(agenda.tasks):
        raise ValueError("expected ids of 32 bytes, and a least number of rows for each task")
    if not all(agenda.least) or session != agenda.session:
        raise ValueError("expected at least 1 row for each task, and the session that the agenda says")


def _read_entry(message: wire.Entry, tasks: int | None) -> Entry:
    entry = Entry(message.key, message.channel, message.mask, tuple(message.rows), _signature(message.signature))
    if len(entry.key) != NODE_KEY or len(entry.channel) != PUBLIC or len(entry.mask) != PUBLIC or not entry.signature:
        raise ValueError("expected a node key of 49 bytes, two keys of 32, and a signature")
    if not entry.rows or len(entry.rows) > MOST_TASKS or not all(0 < count < 1 << 32 for count in entry.rows):
        raise ValueError("expected 1 <= rows < 2^32 for each task")
    if tasks is not None and len(entry.rows) != tasks:
        raise ValueError(f"expected rows for {tasks} tasks, got those for {len(entry.rows)}")
    return entry


def _parcel(parcel: Parcel) -> wire.Parcel:
    return wire.Parcel(other=parcel.other, content=parcel.content)


def _read_parcels(messages: Sequence[wire.Parcel]) -> tuple[Parcel, ...]:
    _increasing([item.other for item in messages])
    if any(len(item.content) != PARCEL for item in messages):
        raise ValueError(f"expected parcels of {PARCEL} bytes")
    return tuple(Parcel(item.other, item.content) for item in messages)


def _read_consents(messages: Sequence[wire.Consent]) -> tuple[Consent, ...]:
    _increasing([item.member for item in messages])
    return tuple(Consent(item.member, _signature(item.signature)) for item in messages)


def _read_reveals(messages: Sequence[wire.Reveal]) -> tuple[Reveal, ...]:
    _increasing([item.member for item in messages])
    if any(len(item.share) != SHARE or not 1 <= item.place <= MOST_MEMBERS for item in messages):
        raise ValueError(f"expected shares of {SHARE} bytes, each with its place")
    return tuple(Reveal(item.member, item.mask, item.place, item.share) for item in messages)


def _signature(raw: bytes) -> bytes:
    if len(raw) > MOST_SIGNATURE:
        raise ValueError(f"expected a signature of at most {MOST_SIGNATURE} bytes, got {len(raw)}")
    return raw


def _members(message: wire.SessionAsk, name: Literal["joined", "survivors"]) -> tuple[int, ...]:
    """A list of members that has some where it is there."""
    found = _increasing(getattr(message, name).members)
    if message.HasField(name) and not found:
        raise ValueError(f"expected members in {name}, got none")
    return found


def _increasing(numbers: Sequence[int]) -> tuple[int, ...]:
    """Members' numbers, each once. Raises ValueError."""
    found = tuple(numbers)
    if any(one >= other for one, other in pairwise(found)) or (found and found[-1] >= MOST_MEMBERS):
        raise ValueError("expected increasing numbers of members")
    return found
