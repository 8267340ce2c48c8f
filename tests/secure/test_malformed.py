"""Messages of a session that are cut, changed or made up: an error of the wire or a refusal, and never more."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.labeler import answer
from protocol.codec import decode_reply, encode_task, identity
from protocol.errors import WireError
from protocol.messages import Code, Refusal
from protocol.runconfig import read
from protocol.secure.codec import decode_ask, decode_session_reply, encode_ask, encode_session_reply
from protocol.secure.messages import (
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
)
from server.secure.session import securely
from studies.in_process import in_process

Make = Callable[..., Any]
NUMBERS = st.lists(st.integers(0, 1000), min_size=1, max_size=6, unique=True).map(sorted).map(tuple)


def fixed(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


ENTRIES = st.builds(
    Entry,
    fixed(NODE_KEY),
    fixed(PUBLIC),
    fixed(PUBLIC),
    st.tuples(st.integers(1, 1 << 31)),
    st.binary(min_size=1, max_size=104),
)
PARCELS = NUMBERS.flatmap(lambda to: st.tuples(*(st.builds(Parcel, st.just(one), fixed(PARCEL)) for one in to)))
CONSENTS = NUMBERS.flatmap(
    lambda of: st.tuples(*(st.builds(Consent, st.just(one), st.binary(max_size=104)) for one in of))
)
REVEALS = NUMBERS.flatmap(
    lambda of: st.tuples(
        *(st.builds(Reveal, st.just(one), st.booleans(), st.integers(1, 1000), fixed(SHARE)) for one in of)
    )
)
TICKET = st.binary(min_size=1, max_size=200)


@st.composite
def asks(draw: st.DrawFn) -> SessionAsk:
    """Questions of every stage."""
    tasks = (b"task " + draw(st.binary(max_size=20)),)
    agenda = Agenda((identity(tasks[0]),), (draw(st.integers(1, 1000)),))
    stage = draw(st.sampled_from(Stage))
    bare = SessionAsk(agenda.session, stage, agenda)
    lists = {"ticket": draw(TICKET), "joined": draw(NUMBERS)}
    fields: dict[Stage, dict[str, Any]] = {
        Stage.KEYS: {"tasks": tasks},
        Stage.SHARES: {"roster": draw(st.tuples(ENTRIES, ENTRIES))},
        Stage.INPUT: {**lists, "tasks": tasks, "parcels": draw(PARCELS)},
        Stage.CONSENT: {**lists, "survivors": draw(NUMBERS)},
        Stage.OPENING: {
            **lists,
            "parcels": draw(PARCELS),
            "survivors": draw(NUMBERS),
            "statements": draw(CONSENTS),
            "consents": draw(CONSENTS),
        },
    }
    return replace(bare, **fields[stage])


@st.composite
def answers(draw: st.DrawFn) -> SessionReply:
    """Answers of every stage that has some of its own."""
    stage = draw(st.sampled_from([Stage.KEYS, Stage.SHARES, Stage.CONSENT, Stage.OPENING]))
    fields: dict[Stage, dict[str, Any]] = {
        Stage.KEYS: {"entry": draw(ENTRIES)},
        Stage.SHARES: {"ticket": draw(TICKET), "commitment": draw(fixed(32)), "parcels": draw(PARCELS)},
        Stage.CONSENT: {"signature": draw(st.binary(min_size=1, max_size=104))},
        Stage.OPENING: {"reveals": draw(REVEALS)},
    }
    return SessionReply(draw(fixed(32)), stage, **fields[stage])


@given(asks())
@settings(max_examples=30, deadline=None)
def test_questions_come_back_as_they_were(ask: SessionAsk) -> None:
    assert decode_ask(encode_ask(ask)) == ask


@given(answers())
@settings(max_examples=30, deadline=None)
def test_answers_come_back_as_they_were(reply: SessionReply) -> None:
    assert decode_session_reply(encode_session_reply(reply)) == reply


@given(asks(), answers(), st.data())
@settings(max_examples=25, deadline=None)
def test_changed_bytes_are_read_as_they_stand_or_not_at_all(ask: SessionAsk, reply: SessionReply, data: Any) -> None:
    """What still reads is canonical: it is written as the bytes that came, and never as what was sent."""
    for raw, decode, encode in (
        (encode_ask(ask), decode_ask, encode_ask),
        (encode_session_reply(reply), decode_session_reply, encode_session_reply),
    ):
        at = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "more", "twice"]))
        changed = {
            "flip": raw[:at] + bytes([raw[at] ^ (1 << data.draw(st.integers(0, 7)))]) + raw[at + 1 :],
            "cut": raw[:at],
            "more": raw + raw[at:],
            "twice": raw + raw,
        }[kind]
        with suppress(WireError):
            found = decode(changed)  # type: ignore[operator]
            assert encode(found) == changed != raw  # type: ignore[operator]


@pytest.mark.parametrize("stage", list(Stage))
def test_a_member_refuses_what_is_changed_at_any_place(room_of: Make, task_of: Make, stage: Stage) -> None:
    """Every byte of a question of each stage in turn: a refusal, or an answer that the stage allows; no error."""
    room, task = room_of(3), task_of(3, 1)
    kept: dict[str, bytes] = {}

    def tamper(name: str, raw: bytes) -> bytes:
        if decode_ask(raw).stage is stage:
            kept.setdefault(name, raw)
        return raw

    room.tamper = tamper
    securely([task], room.ask)
    raw, codes = kept["client 1"], set()
    for at in range(0, len(raw), 1 + len(raw) // 150):
        changed = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        reply = room.members[1].reply(changed)
        try:
            found = decode_reply(reply)
        except WireError:  # an answer: a parcel that does not open is left out, as is a signature that is not good
            continue
        assert isinstance(found, Refusal) and found.task == identity(changed)
        codes.add(found.code)
    assert codes and codes <= {Code.TASK_INVALID, Code.SESSION_REFUSED, Code.TOO_FEW_MEMBERS}


def test_what_members_send_amiss_stops_nobody_else(room_of: Make, task_of: Make) -> None:
    """One member sends garbage, another one somebody else's answers, at each stage: the others open their sum."""
    members, bad, thief = 8, 3, 7
    for stage in Stage:
        room, task = room_of(members), task_of(members, 5)
        ask, others = room.ask, dict[str, bytes]()

        def asked(raws: list[bytes], ask: Any = ask, others: Any = others, stage: Stage = stage) -> list[bytes]:
            replies = ask(raws)
            (current,) = {decode_ask(raw).stage for raw in raws}
            if current is not stage:
                return replies
            for at, reply in enumerate(replies):
                own = {f"client {bad}": b"garbage", f"client {thief}": bytes(replies[0])}.get(reply.sender)
                if own == bytes(replies[0]) and stage is Stage.SHARES:
                    own = None  # the next test is about these
                if own is not None:
                    replies[at] = type(reply)(own, reply.sender, reply.task)
            return replies

        heard = securely([task], asked)[task].collected
        gone = set() if stage >= Stage.CONSENT else {bad} if stage is Stage.SHARES else {bad, thief}
        assert heard.residues is not None, (stage, heard.rejected)
        assert heard.residues.tolist() == room.sum(task, set(range(members)) - gone).tolist(), stage


def test_shares_that_do_not_open_cost_the_sum_and_their_giver_is_named(room_of: Make, task_of: Make) -> None:
    """Its masks are with everybody's, nobody can take them off, and nobody else learns more for it."""
    room, task = room_of(6), task_of(6, 2)
    ask = room.ask

    def asked(raws: list[bytes]) -> list[bytes]:
        replies = ask(raws)
        if decode_ask(raws[0]).stage is Stage.SHARES:
            replies[4] = type(replies[4])(replies[0], "client 4", replies[4].task)
        return replies

    heard = securely([task], asked)[task].collected
    assert heard.residues is None and heard.sums is None
    assert heard.rejected[0] == "client 4: expected 4 shares of one secret, got 0"


def test_a_task_of_the_model_by_itself_is_refused(task_of: Make) -> None:
    """Outside a session a vector would leave without masks."""
    study = read({}).study
    room = in_process(study, np.array([1.0, 0.5, 0.0, -0.5, -1.0]), 3)
    found = decode_reply(answer(encode_task(task_of(60, 30)), room.nodes[0]))
    assert isinstance(found, Refusal) and found.code is Code.TASK_INVALID
