"""What the server keeps of answers at each stage of a session, and whether that is enough to go on."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from protocol.codec import Signed
from protocol.secure.graph import crowded, terms
from protocol.secure.messages import Entry, SessionReply, Stage, joined_words, survivors_words
from server.secure.input import Inputs
from server.secure.masks import usable
from server.secure.signers import signed
from server.sent import Sent

if TYPE_CHECKING:
    from server.secure.stages import Session

Input = tuple[list[Signed], bytes]  # a report for each task, and what their sender states
Answer = SessionReply | Input


def _take_keys(session: "Session", answers: Sequence[tuple[bytes, Answer]]) -> None:
    entries = dict[bytes, tuple[Entry, str]]()
    senders = set[str]()
    for raw, answer in answers:
        assert isinstance(answer, SessionReply) and answer.entry is not None
        entry, sender = answer.entry, _sender(raw)
        if not sender or sender in senders or entry.key in entries:
            session.blame(sender, "a second entry, or one whose sender nobody knows")
        elif len(entry.rows) != len(session.tasks) or not (usable(entry.channel) and usable(entry.mask)):
            session.blame(sender, "an entry whose keys or rows do not fit the session")
        elif not signed(entry.key, entry.words(session.agenda.session), entry.signature):
            session.blame(sender, "an entry that is not under its own key")
        else:
            entries[entry.key] = entry, sender
            senders.add(sender)
    found = [entries[key] for key in sorted(entries)]
    session.begin(found)


def _take_shares(session: "Session", answers: Sequence[tuple[bytes, Answer]]) -> None:
    for raw, answer in answers:
        assert isinstance(answer, SessionReply)
        member = session.number(_sender(raw))
        if member is None or member in session.given:
            session.blame(_sender(raw), "shares of no member, or a second time")
        elif [parcel.other for parcel in answer.parcels] != session.holders(member):
            session.blame(_sender(raw), "shares for others than its holders")
        else:
            session.give(member, answer)


def _take_input(session: "Session", answers: Sequence[tuple[bytes, Answer]]) -> None:
    session.inputs = Inputs(session.tasks, session.agenda.tasks, session.roster, session.names)
    words = joined_words(session.agenda.session, session.digest, session.joined)
    for raw, answer in answers:
        assert isinstance(answer, tuple)
        member = session.number(_sender(raw))
        if member is None or member not in session.given:
            session.blame(_sender(raw), "an input of nobody who joined")
        elif not signed(session.roster[member].key, words, answer[1]):
            session.blame(_sender(raw), "an input whose statement is not of those who joined")
        else:
            session.inputs.put(member, *answer)
    session.inputs.settle()


def _take_consent(session: "Session", answers: Sequence[tuple[bytes, Answer]]) -> None:
    there = set(session.survivors)
    words = survivors_words(session.agenda.session, session.digest, session.joined, session.survivors)
    for raw, answer in answers:
        assert isinstance(answer, SessionReply)
        member = session.number(_sender(raw))
        if member is None or member not in there:
            continue
        if signed(session.roster[member].key, words, answer.signature):
            session.consents[member] = answer.signature
        else:
            session.blame(_sender(raw), "a signature that is not of the list of survivors")


def _take_opening(session: "Session", answers: Sequence[tuple[bytes, Answer]]) -> None:
    there = set(session.survivors)
    for raw, answer in answers:
        assert isinstance(answer, SessionReply)
        member = session.number(_sender(raw))
        if member is None or member not in session.consents:
            continue
        holds = set(session.holders(member)) & set(session.given)
        for reveal in answer.reveals:
            if reveal.member in holds and reveal.mask == (reveal.member not in there):
                session.shares.put(reveal)


def missing(session: "Session", stage: Stage) -> str:
    """Why a session cannot go on after a stage; "" where it can."""
    members = len(session.roster)
    if not members:
        return "expected members of a session, got none"
    needs, least = terms(members), session.agenda.least
    there = {
        Stage.KEYS: range(members),
        Stage.SHARES: session.joined,
        Stage.INPUT: session.survivors,
        Stage.CONSENT: tuple(session.consents),
        Stage.OPENING: tuple(session.consents),
    }[stage]
    if len(there) < needs.agree:
        return f"expected at least {needs.agree} of {members} members at stage {stage.name}, got {len(there)}"
    if stage <= Stage.INPUT:
        for place, most in enumerate(least):
            rows = sum(session.roster[one].rows[place] for one in there)
            if rows < most:
                return f"expected at least {most} rows (least) at stage {stage.name}, got {rows}"
    if stage is Stage.INPUT and not crowded(session.agenda.session, session.digest, members, there):
        return "expected survivors all along the circle of members, got too few in one place"
    return ""


def _sender(raw: bytes) -> str:
    return raw.sender if isinstance(raw, Sent) else ""


TAKERS: dict[Stage, Callable[["Session", Sequence[tuple[bytes, Answer]]], None]] = {
    Stage.KEYS: _take_keys,
    Stage.SHARES: _take_shares,
    Stage.INPUT: _take_input,
    Stage.CONSENT: _take_consent,
    Stage.OPENING: _take_opening,
}
