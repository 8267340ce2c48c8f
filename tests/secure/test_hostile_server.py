"""A server that wants more than sums: each of its tricks is refused, and what it gets instead is worth nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.ledger import DiskLedger
from client.secure.membership import simulated
from client.secure.memory import DiskMemory
from protocol.codec import decode_input, decode_reply
from protocol.messages import Code, Refusal, Task
from protocol.secure.codec import decode_ask, decode_session_reply, encode_ask
from protocol.secure.graph import terms
from protocol.secure.messages import Consent, SessionAsk, SessionReply, Stage, of_session, survivors_words
from server.secure.masks import keystream, secret_of, self_key
from server.secure.session import securely
from server.secure.stages import Session

Make = Callable[..., Any]
MEMBERS = 8


class Curious:
    """A server that plays a session by hand, up to some stage, and may then ask what it likes."""

    def __init__(self, room: Any, task: Task) -> None:
        self.room, self.task, self.session = room, task, Session.of([task])

    def until(self, stage: Stage) -> "Curious":
        """Play all stages before this one as they should be."""
        for each in Stage:
            if each >= stage:
                break
            self.session.take(each, self.room.ask(self.session.questions(each)))
            assert not self.session.failed
        return self

    def question(self, stage: Stage, member: int) -> SessionAsk:
        """What a member would be asked next."""
        name = self.session.names[member]
        (raw,) = [raw for raw in self.session.questions(stage) if name in getattr(raw, "to", (name,))]
        return decode_ask(raw)

    def asks(self, member: int, question: SessionAsk) -> SessionReply | Code | bytes:
        """What a member answers: an answer, its refusal's code, or a masked input's bytes."""
        client = int(self.session.names[member].split()[1])
        raw = self.room.members[client].reply(encode_ask(question))
        if of_session(raw):
            return decode_session_reply(raw)
        found, _ = decode_input(raw)
        return found.code if isinstance(found, Refusal) else bytes(raw)

    def number(self, client: int) -> int:
        """A client's place in the roster."""
        found = self.session.number(f"client {client}")
        assert found is not None
        return found


@pytest.fixture
def live(room_of: Make, tmp_path: Path) -> Callable[..., Any]:
    """Members who remember, on disk."""

    def make(members: int = MEMBERS, **changes: Any) -> Any:
        paths = [tmp_path / f"{client}.sqlite" for client in range(members)]
        for path in paths:
            DiskLedger(path)
        return room_of(members, memory=lambda client: DiskMemory(paths[client]), **changes)

    return make


def test_a_list_of_survivors_of_one_opens_nothing(live: Make, task_of: Make) -> None:
    server = Curious(live(), task_of(MEMBERS, 1)).until(Stage.CONSENT)
    for member in range(MEMBERS):
        asked = server.question(Stage.CONSENT, member)
        for alone in ((0,), (member,), tuple(range(terms(MEMBERS).agree - 1))):
            code = server.asks(member, replace(asked, survivors=alone))
            assert code in (Code.TOO_FEW_MEMBERS, Code.SESSION_REFUSED)
            assert member in alone or code is Code.SESSION_REFUSED


def test_a_list_below_the_rows_of_the_noise_is_not_signed(live: Make, task_of: Make) -> None:
    server = Curious(live(), task_of(MEMBERS, 7)).until(Stage.CONSENT)
    asked = server.question(Stage.CONSENT, 0)
    assert server.asks(0, replace(asked, survivors=tuple(range(6)))) is Code.TOO_FEW_MEMBERS
    assert isinstance(server.asks(0, replace(asked, survivors=tuple(range(7)))), SessionReply)


def test_keys_in_the_roster_cannot_be_the_servers_own(live: Make, task_of: Make) -> None:
    """Swapped session keys, a strange member, somebody else's entry twice, entries of another session."""
    room, task = live(), task_of(MEMBERS, 1)
    server = Curious(room, task).until(Stage.SHARES)
    asked, me = server.question(Stage.SHARES, 0), 0
    roster = list(asked.roster)
    stranger = simulated(999, 0, 1)
    bare = replace(roster[3], key=stranger.key)
    forged = replace(bare, signature=stranger.sign(bare.words(asked.session)))
    other = Curious(room, task_of(MEMBERS, 2)).until(Stage.SHARES).question(Stage.SHARES, 0).roster
    rosters = {
        "a key changed": [*roster[:3], replace(roster[3], mask=roster[4].mask), *roster[4:]],
        "a channel changed": [*roster[:3], replace(roster[3], channel=roster[4].channel), *roster[4:]],
        "rows changed": [*roster[:3], replace(roster[3], rows=(1000,)), *roster[4:]],
        "a stranger": sorted([*roster[:3], forged, *roster[4:]], key=lambda entry: entry.key),
        "somebody twice": sorted([*roster, roster[4]], key=lambda entry: entry.key),
        "another order": [roster[1], roster[0], *roster[2:]],
        "without this member": roster[1:],
        "this member's keys changed": [replace(roster[0], mask=roster[4].mask), *roster[1:]],
        "another session's": [*roster[:3], other[3], *roster[4:]],
    }
    for what, changed in rosters.items():
        assert server.asks(me, replace(asked, roster=tuple(changed))) is Code.SESSION_REFUSED, what
    assert isinstance(server.asks(me, asked), SessionReply)


def test_a_roster_is_answered_once(live: Make, task_of: Make) -> None:
    """Another one, without somebody who was in the first, has no shares; the same one gets the same bytes."""
    server = Curious(live(), task_of(MEMBERS, 1)).until(Stage.SHARES)
    asked = server.question(Stage.SHARES, 2)
    first = server.asks(2, asked)
    assert isinstance(first, SessionReply) and server.asks(2, asked) == first
    assert server.asks(2, replace(asked, roster=asked.roster[:-1])) is Code.SESSION_REFUSED
    assert server.asks(2, asked) == first


def test_the_masked_input_is_given_once(live: Make, task_of: Make) -> None:
    """To others who joined, or with a ticket of another member or session, it is refused; again, it is the same."""
    room = live()
    server = Curious(room, task_of(MEMBERS, 1)).until(Stage.INPUT)
    asked = server.question(Stage.INPUT, 1)
    first = server.asks(1, asked)
    assert isinstance(first, bytes) and server.asks(1, asked) == first
    fewer = tuple(one for one in asked.joined if one != 5)
    parcels = tuple(parcel for parcel in asked.parcels if parcel.other != 5)
    assert server.asks(1, replace(asked, joined=fewer, parcels=parcels)) is Code.SESSION_REFUSED
    other = Curious(room, task_of(MEMBERS, 2)).until(Stage.INPUT).question(Stage.INPUT, 1)
    fresh = server.question(Stage.INPUT, 2)
    for ticket in (asked.ticket, other.ticket, asked.ticket[:-1], b"\0" * 60):
        assert server.asks(2, replace(fresh, ticket=ticket)) is Code.SESSION_REFUSED
    assert server.asks(2, replace(fresh, joined=(0, 1, 3, 4, 5, 6, 7))) is Code.SESSION_REFUSED
    assert server.asks(2, replace(fresh, parcels=fresh.parcels[1:])) is Code.SESSION_REFUSED
    assert server.asks(2, replace(fresh, parcels=fresh.parcels[:1], joined=(2,))) is Code.SESSION_REFUSED
    swapped = replace(fresh.parcels[0], content=fresh.parcels[1].content)
    assert isinstance(server.asks(2, replace(fresh, parcels=(swapped, *fresh.parcels[1:]))), bytes)  # one share less


def test_different_lists_for_different_members_open_nothing(live: Make, task_of: Make) -> None:
    """Each signs what it is shown, once; neither list has signatures of enough, so nobody reveals anything."""
    server = Curious(live(), task_of(MEMBERS, 1)).until(Stage.CONSENT)
    whole, least = tuple(range(MEMBERS)), terms(MEMBERS).agree
    shorter = whole[:least]
    lists = {member: shorter if member < MEMBERS // 2 else whole for member in range(MEMBERS)}
    consents: dict[tuple[int, ...], list[Consent]] = {whole: [], shorter: []}
    for member, listed in lists.items():
        answer = server.asks(member, replace(server.question(Stage.CONSENT, member), survivors=listed))
        if isinstance(answer, SessionReply):
            consents[listed].append(Consent(member, answer.signature))
        other = whole if listed == shorter else shorter
        again = server.asks(member, replace(server.question(Stage.CONSENT, member), survivors=other))
        assert again is Code.SESSION_REFUSED
    assert all(len(signed) < least for signed in consents.values())
    assert server.session.inputs is not None
    for member, listed in lists.items():
        asked = replace(
            server.question(Stage.CONSENT, member),
            stage=Stage.OPENING,
            parcels=server.session.parcels(member),
            statements=tuple(Consent(*one) for one in sorted(server.session.inputs.statements.items())),
        )
        both = {one.member: one for one in [*consents[whole], *consents[shorter]]}
        for signed in (consents[listed], [both[one] for one in sorted(both)]):
            for claimed in (whole, shorter):
                question = replace(asked, survivors=claimed, consents=tuple(signed))
                assert server.asks(member, question) is Code.SESSION_REFUSED


def test_nobody_gives_both_kinds_of_shares(live: Make, task_of: Make) -> None:
    """After one opening a member's other secret is asked for, under a list of which it is no survivor."""
    server = Curious(live(), task_of(MEMBERS, 1)).until(Stage.OPENING)
    questions = {member: server.question(Stage.OPENING, member) for member in range(MEMBERS)}
    for member, asked in questions.items():
        answer = server.asks(member, asked)
        assert isinstance(answer, SessionReply)
        assert [(one.member, one.mask) for one in answer.reveals] == [(other, False) for other in range(MEMBERS)]
        without = tuple(one for one in range(MEMBERS) if one != (member + 1) % MEMBERS)
        assert server.asks(member, replace(asked, survivors=without)) is Code.SESSION_REFUSED
        assert server.asks(member, asked) == answer  # the same bytes again


@pytest.mark.parametrize("members", [3, 5])
def test_one_cheat_among_few_cannot_have_two_lists_opened(live: Make, task_of: Make, members: int) -> None:
    """It signs two lists, with half of the others each: whoever is in one dropped out in the other."""
    server, cheat = Curious(live(members), task_of(members, 1)).until(Stage.CONSENT), members - 1
    half, session = cheat // 2, server.session
    own = server.room.members[int(session.names[cheat].split()[1])].own
    shown: dict[int, set[bool]] = {}
    for honest in (range(half), range(half, cheat)):
        survivors = (*honest, cheat)
        words = survivors_words(session.agenda.session, session.digest, session.joined, survivors)
        signed = {cheat: own.sign(words)}
        for member in honest:
            answer = server.asks(member, replace(server.question(Stage.CONSENT, member), survivors=survivors))
            if isinstance(answer, SessionReply):
                signed[member] = answer.signature
        session.consents = dict(signed)
        for member in honest:
            if member in signed:
                consents = tuple(Consent(*one) for one in sorted(signed.items()))
                asked = replace(server.question(Stage.OPENING, member), survivors=survivors, consents=consents)
                answer = server.asks(member, asked)
                if isinstance(answer, SessionReply):
                    for one in answer.reveals:
                        shown.setdefault(one.member, set()).add(one.mask)
    assert not shown


def test_a_survivor_whose_masks_are_with_others_is_not_revealed(live: Make, task_of: Make) -> None:
    """The server told it of other members who joined, who would then drop out and leave it alone under its own mask."""
    room, victim = live(12), 0
    server = Curious(room, task_of(12, 1)).until(Stage.INPUT)
    alone = server.number(victim)
    asked, needed = server.question(Stage.INPUT, alone), terms(12).threshold
    told = tuple(sorted({alone, *[one for one in range(12) if one != alone][: needed - 1]}))
    parcels = tuple(parcel for parcel in asked.parcels if parcel.other in told)
    assert isinstance(server.asks(alone, replace(asked, joined=told, parcels=parcels)), bytes)  # cannot know better
    answers = list(room.ask(server.session.questions(Stage.INPUT)))
    server.session.take(Stage.INPUT, answers)
    assert alone not in server.session.survivors  # its statement is not of the list that others were told
    everybody = tuple(range(12))
    for member in range(12):
        if member != alone:
            question = replace(server.question(Stage.CONSENT, member), survivors=everybody)
            answer = server.asks(member, question)
            assert isinstance(answer, SessionReply)
            server.session.consents[member] = answer.signature
    consents = tuple(Consent(one, signature) for one, signature in sorted(server.session.consents.items()))
    assert server.session.inputs is not None
    stated = {**server.session.inputs.statements, alone: server.session.inputs.statements[(alone + 1) % 12]}
    for member in set(everybody) - {alone}:
        asked = replace(
            server.question(Stage.CONSENT, member),
            stage=Stage.OPENING,
            survivors=everybody,
            parcels=server.session.parcels(member),
            statements=tuple(Consent(*one) for one in sorted(stated.items())),
            consents=consents,
        )
        answer = server.asks(member, asked)
        assert isinstance(answer, SessionReply)
        assert alone not in [one.member for one in answer.reveals]


def test_an_old_session_stays_closed(live: Make, task_of: Make) -> None:
    """Its questions get their old answers; any other question of it is refused, and so is what it held elsewhere."""
    room, task = live(), task_of(MEMBERS, 1)
    asked: list[tuple[str, bytes]] = []
    room.tamper = lambda name, raw: asked.append((name, raw)) or raw
    before = securely([task], room.ask)[task].collected
    replies = {each: room.members[int(each[0].split()[1])].reply(each[1]) for each in asked}
    again = securely([task], room.ask)[task].collected
    np.testing.assert_array_equal(again.residues, before.residues)
    assert all(room.members[int(name.split()[1])].reply(raw) == replies[name, raw] for name, raw in asked)
    changed = [replace(decode_ask(raw), joined=tuple(range(7))) for _, raw in asked if decode_ask(raw).joined]
    for (name, _), question in zip([one for one in asked if decode_ask(one[1]).joined], changed, strict=True):
        found = decode_reply(room.members[int(name.split()[1])].reply(encode_ask(question)))
        assert isinstance(found, Refusal) and found.code is Code.SESSION_REFUSED


def opened_with(server: Curious, seeds: Sequence[bytes], who: int) -> np.ndarray[Any, Any]:
    """A member's masked input less its own mask: all that the server can take off by itself."""
    assert server.session.inputs is not None
    values = server.session.inputs._reports[who][0].report.payload.values
    for seed in seeds:
        stream = np.frombuffer(keystream(self_key(seed, server.session.agenda.session), 0, values.size), dtype="<u8")
        values = (values - stream.reshape(values.shape)) & np.uint64(server.task.modulus - 1)
    return values


def test_what_a_server_holds_of_one_member_is_not_its_vector(live: Make, task_of: Make) -> None:
    """With all shares that were revealed the own mask comes off, and the masks of pairs stay on."""
    room, task = live(), task_of(MEMBERS, 1)
    server = Curious(room, task).until(Stage.OPENING)
    server.session.take(Stage.OPENING, room.ask(server.session.questions(Stage.OPENING)))
    for client in range(MEMBERS):
        number = server.number(client)
        shares = server.session.shares.of(number)
        seed = secret_of(shares, terms(MEMBERS).threshold, lambda _: True)
        left = opened_with(server, [seed], number)
        assert (left != room.members[client].vector(task)).mean() > 0.9
    (heard,) = server.session.heard()
    np.testing.assert_array_equal(heard.collected.residues, room.sum(task))


def test_members_of_another_cohort_have_other_masks_and_what_the_same_ones_would_tell(
    live: Make, task_of: Make
) -> None:
    """Two cohorts that differ in one client: with fresh masks only their sums are known, and each has its own noise.

    The difference of two sums of the same vectors is the client's vector itself: so noise must be drawn, and charged,
    anew in every session. Vectors here have none; `tests/client` shows that shares of noise are drawn anew.
    """
    members, left_out = 8, 5
    first, second = task_of(members, 1), task_of(members, 1, attempt=1)
    room = live(members)
    one = Curious(room, first).until(Stage.CONSENT)
    heard = securely([first], room.ask)[first].collected
    room.tamper = lambda name, raw: None if name == f"client {left_out}" else raw
    other = Curious(room, second).until(Stage.CONSENT)
    fewer = securely([second], room.ask)[second].collected
    np.testing.assert_array_equal(heard.residues, room.sum(first))
    np.testing.assert_array_equal(fewer.residues, room.sum(second, set(range(members)) - {left_out}))
    assert one.session.inputs is not None and other.session.inputs is not None
    assert {entry.mask for entry in one.session.roster}.isdisjoint(entry.mask for entry in other.session.roster)
    # Had vectors and noise been the same in both, the server would now subtract:
    same = room.sum(first, set(range(members)) - {left_out})
    told = (heard.residues - same) & np.uint64(first.modulus - 1)
    np.testing.assert_array_equal(told, room.members[left_out].vector(first))
