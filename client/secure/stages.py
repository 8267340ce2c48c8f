"""What a member does at each stage of a session, and what it checks before: it never trusts who asks.

The order of checks and their outcome depend on the session's messages alone, and on no label.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from client.secure.keys import SessionKeys, keystream
from client.secure.membership import Membership, SessionRefused, TooFewMembers
from client.secure.shares import Share, parcels_for, shares_in
from client.secure.ticket import Ticket
from protocol.secure.codec import encode_session_reply
from protocol.secure.graph import crowded, neighbours, terms, tolerated
from protocol.secure.masks import Residues, added, residues_of, sign_of
from protocol.secure.messages import (
    Consent,
    Entry,
    Reveal,
    SessionAsk,
    SessionReply,
    Stage,
    commitment,
    joined_words,
    roster_digest,
    survivors_words,
)

Mask = Callable[[int, Residues, int], Residues]  # a task's place, residues and modulus -> the residues under masks
Joins = Callable[[SessionAsk], Sequence[int]]  # rows that a member has for each task; raises where it takes no part
Contributes = Callable[[SessionAsk, Mask, bytes], bytes]  # the reply with its masked vectors, charged, and a statement


@dataclass(frozen=True)
class Member:
    """A membership, and what it has to add: how many rows for each task, and its vectors."""

    own: Membership
    joins: Joins = field(repr=False)
    contributes: Contributes = field(repr=False)


def keys(ask: SessionAsk, question: bytes, member: Member) -> bytes:
    """Stage 1: two public keys of this session and the member's rows, signed by its node key.

    Nothing is charged yet, and nothing about a label is in it. Raises what `joins` raises.
    """
    rows, own = tuple(member.joins(ask)), SessionKeys(member.own.memory.begin(ask.session), ask.session)
    entry = Entry(member.own.key, own.channel_public, own.mask_public, rows)

    def make() -> bytes:
        signed = replace(entry, signature=member.own.sign(entry.words(ask.session)))
        return encode_session_reply(SessionReply(ask.session, Stage.KEYS, entry=signed))

    return member.own.memory.once(ask.session, Stage.KEYS, question, ask.session, make)


def shares(ask: SessionAsk, question: bytes, member: Member) -> bytes:
    """Stage 2: shares of both secrets for each holder, sealed for it, where the roster is as it should be."""
    own = SessionKeys(member.own.memory.root(ask.session), ask.session)
    ticket = checked(ask, member.own, own)

    def make() -> bytes:
        parcels = parcels_for(ticket, terms(ticket.members).threshold, own)
        mine, sealed = commitment(ask.session, own.seed), ticket.seal(own, ask.session)
        reply = SessionReply(ask.session, Stage.SHARES, ticket=sealed, commitment=mine, parcels=parcels)
        return encode_session_reply(reply)

    return member.own.memory.once(ask.session, Stage.SHARES, question, ticket.roster, make)


def checked(ask: SessionAsk, own: Membership, keys: SessionKeys) -> Ticket:
    """What this member makes of a roster: everybody's key is one that it pins and has signed, itself is in it.

    Raises SessionRefused and TooFewMembers.
    """
    roster, names = ask.roster, [entry.key for entry in ask.roster]
    if any(one >= other for one, other in pairwise(names)):
        raise SessionRefused("expected a roster in the order of keys, each once")
    if len(roster) < own.least:
        raise TooFewMembers(f"expected at least {own.least} members, got {len(roster)}")
    if math.floor(own.colluding * len(roster)) > tolerated(len(roster)):
        raise TooFewMembers(f"expected no more cheats than the {tolerated(len(roster))} that thresholds are for")
    if own.key not in names:
        raise SessionRefused("expected a roster with this member in it")
    me = names.index(own.key)
    if (roster[me].channel, roster[me].mask) != (keys.channel_public, keys.mask_public):
        raise SessionRefused("expected this member's own keys in the roster, got others")
    for entry in roster:
        if not own.pins.good(entry.key, entry.words(ask.session), entry.signature):
            raise SessionRefused("expected members whose keys are pinned and who signed for this session")
    rows = np.array([entry.rows for entry in roster], dtype=np.uint32)
    _check_rows(rows, len(roster), ask, own)
    digest = roster_digest(roster)
    near, holders = neighbours(ask.session, digest, len(roster), me)
    places = np.array([own.pins.places[name] for name in names], dtype=np.uint32)
    channels, masks = {one: roster[one].channel for one in holders}, {one: roster[one].mask for one in near}
    return Ticket(digest, own.pins.digest, me, rows, places, channels, masks)


def _check_rows(rows: NDArray[np.uint32], members: int, ask: SessionAsk, own: Membership) -> None:
    """Raise TooFewMembers unless those with these rows (m, tasks) have `least` for each task, enough of them honest.

    Cheats may say that they have more rows than they do: so (1 - c) least rows have to be left without those of the
    c `members` who say the most. Who asks says who dropped out, so all cheats of the roster may be among a few.
    """
    honest = max(0, len(rows) - math.floor(own.colluding * members))
    left = np.sort(rows, axis=0)[:honest].sum(axis=0, dtype=np.uint64).tolist()
    whole = rows.sum(axis=0, dtype=np.uint64).tolist()
    for most, total, others in zip(ask.agenda.least, whole, left, strict=True):
        if total < most or others < (1 - own.colluding) * most:
            raise TooFewMembers("expected as many rows as each task's noise is sized for, got fewer")


def masked(ask: SessionAsk, question: bytes, member: Member) -> bytes:
    """Stage 3: the member's vectors under masks, charged before they leave, and a statement of who joined.

    For task t: z = x + PRG(own, t) + sum of +-PRG(pair_j, t) over the neighbours j that joined, modulo M.

    Guarantee: whoever holds neither a key of this member nor those of all its honest neighbours learns nothing of x
    but its sum with theirs.
    """
    own, ticket = _begun(ask, member)
    there = _held(ask, ticket, own)
    if len(there) < terms(ticket.members).threshold:
        raise TooFewMembers("expected shares of as many members as open a secret")
    if list(member.joins(ask)) != ticket.rows[ticket.me].tolist():
        raise SessionRefused("expected as many rows as when the session began")
    others = [other for other in ticket.masks if other in ask.joined and other != ticket.me]
    pairs = [(sign_of(ticket.me, other), own.pair_key(ticket.masks[other], ticket.me, other)) for other in others]

    def mask(task: int, values: Residues, modulus: int) -> Residues:
        for sign, key in [(1, own.self_key), *pairs]:
            stream = residues_of(keystream(key, task, values.size), values.shape, modulus)
            values = added(values, stream, sign, modulus)
        return values

    words = joined_words(ask.session, ticket.roster, ask.joined)

    def make() -> bytes:
        return member.contributes(ask, mask, member.own.sign(words))

    return member.own.memory.once(ask.session, Stage.INPUT, question, _subject(words), make)


def consent(ask: SessionAsk, question: bytes, member: Member) -> bytes:
    """Stage 4: a signature of the list of survivors, once, where it is long enough and this member is in it."""
    _, ticket = _begun(ask, member)
    words = _listed(ask, ticket, member.own)

    def make() -> bytes:
        return encode_session_reply(SessionReply(ask.session, Stage.CONSENT, signature=member.own.sign(words)))

    return member.own.memory.once(ask.session, Stage.CONSENT, question, _subject(words), make)


def opening(ask: SessionAsk, question: bytes, member: Member) -> bytes:
    """Stage 5: a share of each member that it holds: of a survivor's own mask, of a dropped member's mask key.

    Never both, since only one list has the signatures of so many members: any two sets of so many share an honest one.
    Of a survivor only where it states that its masks are with those who joined, as everybody was told.
    """
    own, ticket = _begun(ask, member)
    words, stated = _listed(ask, ticket, member.own), joined_words(ask.session, ticket.roster, ask.joined)
    if not member.own.memory.same(ask.session, Stage.CONSENT, _subject(words)):
        raise SessionRefused("expected the list of survivors that this member signed, got another")
    listed = set(ask.survivors)
    agreed = _signers(ask.consents, words, ticket, member.own) & listed
    if len(agreed) < terms(ticket.members).agree:
        raise SessionRefused("expected the signatures of most members under this list of survivors, got fewer")
    there = _held(ask, ticket, own)
    safe = _signers(ask.statements, stated, ticket, member.own)

    def make() -> bytes:
        reveals = [
            Reveal(other, other not in listed, share.place, share.own if other in listed else share.mask)
            for other, share in there.items()
            if other not in listed or other in safe
        ]
        return encode_session_reply(SessionReply(ask.session, Stage.OPENING, reveals=tuple(reveals)))

    reply = member.own.memory.once(ask.session, Stage.OPENING, question, _subject(words), make)
    member.own.memory.close(ask.session)
    return reply


def _held(ask: SessionAsk, ticket: Ticket, own: SessionKeys) -> dict[int, Share]:
    """The shares that this member holds: of all who joined among those it holds some of, itself among them."""
    there = shares_in(ask.parcels, ticket, own)
    if ask.joined[-1] >= ticket.members or ticket.me not in ask.joined:
        raise SessionRefused("expected a list of members who joined, and this one in it")
    if {parcel.other for parcel in ask.parcels} != set(ask.joined) & set(ticket.channels):
        raise SessionRefused("expected the shares of all who joined, got others")
    return there


def _signers(signed: Sequence[Consent], words: bytes, ticket: Ticket, own: Membership) -> set[int]:
    """Whose signatures of these words are good."""
    names, places = own.pins.names, ticket.places
    known = [one for one in signed if one.member < ticket.members]
    return {one.member for one in known if own.pins.good(names[places[one.member]], words, one.signature)}


def _begun(ask: SessionAsk, member: Member) -> tuple[SessionKeys, Ticket]:
    own = SessionKeys(member.own.memory.root(ask.session), ask.session)
    ticket = Ticket.open(ask.ticket, own, ask.session)
    if ticket.pins != member.own.pins.digest:
        raise SessionRefused("expected the members that were pinned when the session began")
    if not member.own.memory.same(ask.session, Stage.SHARES, ticket.roster):
        raise SessionRefused("expected the ticket of the roster that this member answered")
    return own, ticket


def _listed(ask: SessionAsk, ticket: Ticket, own: Membership) -> bytes:
    """What is signed of a list of survivors that may be opened. Raises SessionRefused and TooFewMembers."""
    survivors, joined = ask.survivors, ask.joined
    stated = joined_words(ask.session, ticket.roster, joined)
    if joined[-1] >= ticket.members or not own.memory.same(ask.session, Stage.INPUT, _subject(stated)):
        raise SessionRefused("expected those who joined as this member was told, got others")
    if not set(survivors) <= set(joined) or ticket.me not in survivors:
        raise SessionRefused("expected a list of members who joined, and this one in it")
    enough = len(survivors) >= max(own.least, terms(ticket.members).agree)
    if not (enough and crowded(ask.session, ticket.roster, ticket.members, survivors)):
        raise TooFewMembers("expected more survivors than that, all along the circle")
    _check_rows(ticket.rows[list(survivors)], ticket.members, ask, own)
    return survivors_words(ask.session, ticket.roster, joined, survivors)


def _subject(words: bytes) -> bytes:
    return hashlib.sha256(words).digest()


STAGES: dict[Stage, Callable[[SessionAsk, bytes, Member], bytes]] = {
    Stage.KEYS: keys,
    Stage.SHARES: shares,
    Stage.INPUT: masked,
    Stage.CONSENT: consent,
    Stage.OPENING: opening,
}


def answered(ask: SessionAsk, raw: bytes, member: Member) -> bytes:
    """The answer to a question, of whatever stage; the same bytes again where it was asked before.

    Raises SessionRefused, TooFewMembers, and what a member's parts raise.
    """
    question, memory = hashlib.sha256(raw).digest(), member.own.memory
    before = memory.kept(ask.session, ask.stage, question)
    return STAGES[ask.stage](ask, question, member) if before is None else before
