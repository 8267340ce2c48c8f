"""A node's answer to a question of a session: bytes in, bytes out; nothing but what a stage gives, or a fixed code."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

import numpy as np

from client.account import Charge
from client.choice import TaskInvalid
from client.labeler import Decided, Node, decided, refusal, report
from client.ledger import Part
from client.question import question_of
from client.secure.membership import SessionRefused
from client.secure.stages import Mask, Member, answered
from protocol.codec import encode_reply, encode_report
from protocol.messages import Kind
from protocol.secure.codec import decode_ask
from protocol.secure.masks import bits_of, check_modulus, least_rows
from protocol.secure.messages import SessionAsk
from protocol.trust import Trust


def respond(raw: bytes, node: Node) -> bytes:
    """A reply to a question of a session: what its stage gives, or a refusal with a code. Never raises.

    Guarantee: whoever asks learns, of all that a node's rows contribute to a session, at most what its opened sums
    tell, and these are of at least the rows and the members that tasks and policy say; unit and level are those of the
    tasks, charged in full before a masked vector leaves. The code depends on messages, policy and ledger only.
    """
    try:
        if node.member is None:
            raise SessionRefused("expected a node that knows the members of sessions")
        return answered(decode_ask(raw), raw, Member(node.member(), partial(_rows, node), partial(_input, node)))
    except Exception as error:  # its text could hold a label: it is neither sent nor logged
        return refusal(raw, error)


def _rows(node: Node, ask: SessionAsk) -> Sequence[int]:
    """How many rows the node answers with for each task. Raises what makes it refuse one of them."""
    return [_decided(node, ask, place)[1] for place in range(len(ask.tasks))]


def _decided(node: Node, ask: SessionAsk, place: int) -> tuple[Decided, int]:
    question = question_of(ask.tasks[place])
    task = question.task
    if task.trust is not Trust.DISTRIBUTED:
        raise TaskInvalid("expected tasks of the distributed model in a session")
    try:
        check_modulus(task)
        least = least_rows(task)
    except ValueError as error:
        raise TaskInvalid(str(error)) from None
    if least != ask.agenda.least[place]:
        raise TaskInvalid("expected the least rows of a task in the agenda, got another number")
    found = decided(question, node)
    return found, len(found.asked[0].rows)


def _input(node: Node, ask: SessionAsk, mask: Mask, statement: bytes) -> bytes:
    """The reports of all tasks, each charged for this session, and kept with its masks on before it leaves."""
    reports = [_masked(node, ask, place, mask) for place in range(len(ask.tasks))]
    return encode_reply([(raw, b"") for raw in reports], statement)


def of_session(charge: Charge, session: bytes, task: bytes) -> Charge:
    """What an answer costs in a session: the whole charge, whatever was paid for in another one.

    An answer that was kept for another session has that one's masks and noise: it is never given again here. Rounds of
    a run are paid for together at the first of them; one that another session has got is paid for again, as a run is.
    """
    name = sha256(session + task).digest()
    return replace(charge, task=name, session=name)


def _masked(node: Node, ask: SessionAsk, place: int, mask: Mask) -> bytes:
    found, _ = _decided(node, ask, place)
    question = question_of(ask.tasks[place])
    modulus = question.task.modulus

    def write(parts: Sequence[Part]) -> bytes:
        (part,) = parts
        plain = report(question.id, found.at(part), part.symbols, node.coins)
        payload = plain.payload
        if payload.kind is not Kind.RESIDUES or payload.values.dtype != np.uint64:
            raise ValueError("expected residues to mask")
        hidden = mask(place, payload.values.astype(np.uint64, copy=False), modulus)
        return encode_report(replace(plain, payload=replace(payload, values=hidden, bits=bits_of(modulus))))

    charges = [of_session(charge, ask.session, question.id) for charge in found.charges]
    return node.ledger.settle(charges, found.possible, node.policy, found.facts, found.draw, write)
