"""A session as the server plays it: five exchanges, after which it knows the sums of those who stayed.

Nothing here trusts a member: what does not fit is left out with a reason, and never stops the others.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from protocol.codec import decode_input, encode_task, identity
from protocol.errors import WireError
from protocol.messages import Code, Refusal, Task
from protocol.secure.codec import decode_session_reply, encode_ask
from protocol.secure.graph import neighbours, terms
from protocol.secure.masks import check_modulus, least_rows
from protocol.secure.messages import (
    Agenda,
    Consent,
    Entry,
    Parcel,
    SessionAsk,
    SessionReply,
    Stage,
    of_session,
    roster_digest,
)
from server.claims import Fault
from server.evidence import Heard
from server.secure.input import Inputs
from server.secure.opened import Shares, opened
from server.secure.taking import TAKERS, Answer, missing
from server.sent import Addressed, Sent


@dataclass
class Session:
    """One session over its stages. `failed` says why nothing is opened, "" as long as something may be.

    Members are numbered by their place in the roster: `names` are their senders.
    """

    tasks: tuple[Task, ...]
    raws: tuple[bytes, ...]
    agenda: Agenda
    failed: str = ""
    faults: list[Fault] = field(default_factory=list)
    refusals: Counter[Code] = field(default_factory=Counter)
    refusing: dict[Code, set[str]] = field(default_factory=dict)
    roster: tuple[Entry, ...] = ()
    names: list[str] = field(default_factory=list)
    given: dict[int, SessionReply] = field(default_factory=dict)  # what those who joined gave
    inputs: Inputs | None = None
    consents: dict[int, bytes] = field(default_factory=dict)
    shares: Shares = field(default_factory=Shares)
    digest: bytes = b""  # of the roster
    _numbers: dict[str, int] = field(default_factory=dict)
    _parcels: dict[int, dict[int, bytes]] = field(default_factory=dict)
    _asked: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> "Session":
        """A session of these tasks. Raises ValueError for a task without a modulus or a number of honest rows."""
        raws = tuple(encode_task(task) for task in tasks)
        for task in tasks:
            check_modulus(task)
        return cls(tuple(tasks), raws, Agenda(tuple(map(identity, raws)), tuple(map(least_rows, tasks))))

    @property
    def joined(self) -> tuple[int, ...]:
        """Who gave shares."""
        return tuple(sorted(self.given))

    @property
    def survivors(self) -> tuple[int, ...]:
        """Whose input came and counts."""
        return () if self.inputs is None else tuple(sorted(self.inputs.counting))

    def begin(self, entries: Sequence[tuple[Entry, str]]) -> None:
        """Number the members: who they are, and their senders."""
        self.roster, self.names = tuple(entry for entry, _ in entries), [sender for _, sender in entries]
        self.digest = roster_digest(self.roster)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def number(self, sender: str) -> int | None:
        """Which member a sender is; None for somebody else."""
        return self._numbers.get(sender)

    def give(self, member: int, reply: SessionReply) -> None:
        """Keep what a member gave, by whom it is for."""
        self.given[member] = reply
        for parcel in reply.parcels:
            self._parcels.setdefault(parcel.other, {})[member] = parcel.content

    def parcels(self, member: int) -> tuple[Parcel, ...]:
        """What is for a member, of all who joined among those whose shares it holds."""
        return tuple(Parcel(giver, content) for giver, content in sorted(self._parcels[member].items()))

    def near(self, member: int) -> list[int]:
        """With whom a member shares masks."""
        return neighbours(self.agenda.session, self.digest, len(self.roster), member)[0]

    def holders(self, member: int) -> list[int]:
        """Who has shares of a member's secrets."""
        return neighbours(self.agenda.session, self.digest, len(self.roster), member)[1]

    def questions(self, stage: Stage) -> list[bytes]:
        """What is asked at a stage, of those it concerns; nothing where the session has failed."""
        if self.failed:
            return []
        found = _QUESTIONS[stage](self)
        self._asked = {identity(raw) for raw in found}
        return found

    def ask(self, stage: Stage, **fields: object) -> bytes:
        """A question's bytes."""
        return encode_ask(SessionAsk(self.agenda.session, stage, self.agenda, **fields))  # type: ignore[arg-type]

    def take(self, stage: Stage, replies: Iterable[bytes]) -> None:
        """Keep what answers this session at a stage, and fail where it is too little to go on."""
        if self.failed:
            return
        mine = [(reply, found) for reply in replies if (found := self._mine(stage, reply)) is not None]
        TAKERS[stage](self, mine)
        self.failed = self.failed or missing(self, stage)

    def heard(self) -> list[Heard]:
        """What was opened of each task, or why nothing was."""
        return opened(self)

    def blame(self, sender: str, reason: str) -> None:
        """Note why something of a sender does not count."""
        self.faults.append(Fault(sender, reason))

    def _mine(self, stage: Stage, raw: bytes) -> "Answer | None":
        """What a reply says in this session; None where it is of another, or says nothing that counts."""
        sender = raw.sender if isinstance(raw, Sent) else ""
        try:
            found = _read(raw, stage)
        except WireError as error:
            self._unread(raw, sender, str(error))
            return None
        if isinstance(found, Refusal):
            if found.task in self._asked:
                self.refusals[found.code] += 1
                self.refusing.setdefault(found.code, set()).add(sender)
            return None
        if isinstance(found, SessionReply):
            return found if found.session == self.agenda.session and found.stage is stage else None
        return found if found[0][0].report.task in self.agenda.tasks else None

    def _unread(self, raw: bytes, sender: str, words: str) -> None:
        task = raw.task if isinstance(raw, Sent) else b""
        if task in self._asked:
            self.blame(sender, raw.fault if isinstance(raw, Sent) and raw.fault else words)


def _read(raw: bytes, stage: Stage) -> Answer | Refusal:
    """What a reply says. Raises WireError."""
    if of_session(raw):
        return decode_session_reply(raw)
    found, statement = decode_input(raw)
    if isinstance(found, Refusal):
        return found
    if stage is not Stage.INPUT or not statement:
        raise WireError(f"expected an answer at stage {stage.name}, got reports")
    return found, statement


def _keys(session: Session) -> list[bytes]:
    return [session.ask(Stage.KEYS, tasks=session.raws)]


def _shares(session: Session) -> list[bytes]:
    return [Addressed(session.ask(Stage.SHARES, roster=session.roster), session.names)]


def _input(session: Session) -> list[bytes]:
    fields = {"tasks": session.raws, "joined": session.joined}
    return [
        Addressed(
            session.ask(Stage.INPUT, ticket=session.given[one].ticket, parcels=session.parcels(one), **fields),
            [session.names[one]],
        )
        for one in session.joined
    ]


def _consent(session: Session) -> list[bytes]:
    fields = {"joined": session.joined, "survivors": session.survivors}
    return [
        Addressed(session.ask(Stage.CONSENT, ticket=session.given[one].ticket, **fields), [session.names[one]])
        for one in session.survivors
    ]


def _opening(session: Session) -> list[bytes]:
    assert session.inputs is not None
    stated = session.inputs.statements
    agree = terms(len(session.roster)).agree  # each of them is checked by everybody
    consents = tuple(Consent(one, signature) for one, signature in sorted(session.consents.items())[:agree])
    fields = {"joined": session.joined, "survivors": session.survivors, "consents": consents}
    found = list[bytes]()
    for one in sorted(session.consents):
        mine = tuple(Consent(other, stated[other]) for other in session.holders(one) if other in session.survivors)
        raw = session.ask(
            Stage.OPENING,
            ticket=session.given[one].ticket,
            parcels=session.parcels(one),
            statements=mine,
            **fields,
        )
        found.append(Addressed(raw, [session.names[one]]))
    return found


_QUESTIONS = {
    Stage.KEYS: _keys,
    Stage.SHARES: _shares,
    Stage.INPUT: _input,
    Stage.CONSENT: _consent,
    Stage.OPENING: _opening,
}
