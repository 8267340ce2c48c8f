"""One answer: bytes of a task in, bytes of a reply out. Nothing but a report or a fixed code ever leaves."""

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from client.account import BudgetExhausted, Charge, Fresh, Symbols
from client.choice import Choice, TaskInvalid
from client.choice_payloads import AskedChoices
from client.draws import Draws, SecretDraws
from client.ledger import Ledger, Part
from client.ledger_store import LedgerUnavailable
from client.levels import LevelExceeded, allowed
from client.payloads import Asked
from client.policy import Policy
from client.question import Question, question_of
from client.record_payloads import AskedRecords
from client.rows import Rows, answerable, check_groups, group_size
from client.secure.membership import Membership, SessionRefused, TooFewMembers
from client.shared_draws import shared_draws
from client.shuffled import ShufflerUnavailable, ToShuffler, receipt
from client.sources import Facts, ProblemUnknown, RecordSource, Source
from protocol.codec import encode_refusal, encode_reply, encode_report, identity
from protocol.errors import WireError
from protocol.messages import Code, Coins, Refusal, Report, Runs, Task
from protocol.numerics import fingerprint
from protocol.privacy import Unit
from protocol.store import FeatureStore
from protocol.study import Study
from protocol.trust import Trust

MOST_VALUES = 1 << 31  # of one message
ASKED = {"pairwise": Asked, "choice": AskedChoices}  # by kind of problem
ENTROPY = {"os": Coins.OS, "addressed": Coins.ADDRESSED}
CODES: dict[type[Exception], Code] = {
    WireError: Code.TASK_INVALID,
    TaskInvalid: Code.TASK_INVALID,
    ProblemUnknown: Code.PROBLEM_UNKNOWN,
    LevelExceeded: Code.EPSILON_ABOVE_CAP,
    BudgetExhausted: Code.BUDGET_EXHAUSTED,
    LedgerUnavailable: Code.LEDGER_UNAVAILABLE,
    SessionRefused: Code.SESSION_REFUSED,
    ShufflerUnavailable: Code.SHUFFLER_UNAVAILABLE,
    TooFewMembers: Code.TOO_FEW_MEMBERS,
}
_log = logging.getLogger("halftruth.client")


class NotMine(TaskInvalid):
    """The task is about rows that other nodes have, or about more than a message holds."""


class _Refused(Exception):
    """The policy's no."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True)
class Node:
    """Everything that a client decides for itself; nothing of it comes from the server.

    `entropy` is "os", or "addressed" with a `seed` where labels are synthetic or declared public: addressed coins
    protect nobody. Labels that are not synthetic need a ledger that outlives the process, and so do caps. Labels drawn
    for a `study` are those of its sizes: a file bounds what a task can ask for, and what is drawn has no end. Without a
    `member` the node takes no part in sessions. Without a `shuffler` its shuffled answers are those of a simulation.
    Raises ValueError for parts that do not fit together.
    """

    source: Source | RecordSource
    policy: Policy
    ledger: Ledger
    entropy: str
    features: FeatureStore = field(repr=False)
    seed: int | None = field(default=None, repr=False)
    study: Study | None = field(default=None, repr=False)
    member: Callable[[], Membership] | None = field(default=None, repr=False)
    shuffler: ToShuffler | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.entropy not in ENTROPY:
            raise ValueError(f"expected entropy out of {sorted(ENTROPY)}, got {self.entropy!r}")
        if (self.seed is not None) != (self.entropy == "addressed"):
            raise ValueError(f"expected a seed exactly for addressed coins, got entropy {self.entropy!r}")
        if self.entropy == "addressed" and not (self.source.synthetic or self.source.public):
            raise ValueError("expected entropy 'os' for labels not declared public: addressed coins protect nobody")
        if self.source.synthetic == self.ledger.durable:
            raise ValueError("expected a ledger on disk for labels of a file, and one in memory for synthetic labels")
        if self.policy.capped and not self.ledger.durable:
            raise ValueError("expected a ledger on disk for a policy with caps: totals in memory bound nothing")

    @property
    def coins(self) -> Coins:
        """Where this node's coins come from."""
        return ENTROPY[self.entropy]

    def check(self, task: Task) -> None:
        """Raise ProblemUnknown unless the task is about the problem of this node's rows, and as large as its study."""
        planned = self.study
        if planned is not None and (
            task.n > max(planned.grid.n) or task.first_repetition + task.repetitions > planned.repetitions
        ):
            raise ProblemUnknown("expected rows and repetitions of the run's study, got more")
        self.source.check(task)

    def draws(self, task: Task, repetition: int) -> Draws:
        """Coins for one repetition of a task."""
        if self.seed is None:
            return SecretDraws()
        return shared_draws(self.seed, task.n, repetition, task.round)


def answer(raw_task: bytes, node: Node) -> bytes:
    """A reply to a task: a report, or a refusal with a code that depends on task, policy and ledger only. Never raises.

    Guarantee: under a local task, the level of its mechanism for each label and channel over all tasks together (unit:
    one label; neighbours: replace one label), at most `label_epsilon` and within its labeler's own level; hence in a
    task at the unit labeler its epsilon for each labeler (neighbours: replace all labels of one labeler), and over many
    tasks what the ledger totals; the exact law is that of `client.randomizer.randomize`. Which mechanism a labeler uses
    is decided before any label is read. Clear and exact contributions leave only where the node's policy allows their
    trust model. A shuffled label's report by itself keeps the level `local` of its mechanism, and the claim of its task
    once it is one of a group whose order nobody knows: see `protocol.shuffled_terms`.

    Two things depend on labels. Under `Ties.DROP` the rows answered, and the refusal where none is left, tell which
    labels are ties: a claim allows it only where the node's policy declares ties public, and neighbours then have the
    same ties. A clear task claims nothing: rows without a winner are missing from its report, and one that knows of no
    ties (`Ties.NONE`) is refused where there are some.
    """
    try:
        return _answer(question_of(raw_task), node)
    except Exception as error:  # its text could hold a label: it is neither sent nor logged
        return refusal(raw_task, error)


def refusal(raw: bytes, error: Exception) -> bytes:
    """The refusal of what was asked, with the code of an error, whose text is neither sent nor logged."""
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), Code.INTERNAL)
    if isinstance(error, _Refused):
        code = error.code
    task_id, frame = identity(raw), traceback.extract_tb(error.__traceback__)[-1]
    place = f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
    level = logging.DEBUG if isinstance(error, NotMine) else logging.WARNING
    _log.log(level, "refused task %s: %s (%s)", task_id.hex()[:12], code.name, place)
    return encode_refusal(Refusal(task_id, code))


def _answer(question: Question, node: Node) -> bytes:
    if question.task.trust is Trust.DISTRIBUTED:  # by itself a vector has its own share of the noise only
        raise TaskInvalid("expected a session around a task of the distributed model")
    found = decided(question, node)

    shuffler = node.shuffler if question.task.trust is Trust.SHUFFLED else None

    def write(parts: Sequence[Part]) -> bytes:
        reports = [report(question.id, found.at(part), part.symbols, node.coins) for part in parts]
        told = reports if shuffler is None else list(map(receipt, reports))
        reply = encode_reply([(encode_report(each), b"") for each in told])
        if shuffler is None:
            return reply
        return shuffler.written(reply, question.task, question.id, reports, node.policy.colluding)

    kept = node.ledger.settle(found.charges, found.possible, node.policy, found.facts, found.draw, write)
    return kept if shuffler is None else shuffler.handed_over(kept)


@dataclass(frozen=True, eq=False)
class Decided:
    """What a node decides about a task before it reads a label: rows, what they may answer through, and its costs.

    One charge and one way to ask a choice; `possible` (choices, rows) says which rows may be answered through it.
    """

    facts: Facts | None
    possible: NDArray[np.bool_]
    charges: list[Charge]
    asked: list[Asked | AskedRecords] = field(repr=False)

    def at(self, part: Part) -> Asked | AskedRecords:
        """What the rows of a part are asked."""
        return self.asked[part.way].at(part.places)

    def draw(self, way: int, places: Fresh, fresh: Fresh) -> Symbols:
        """New symbols of some of the rows that answer one way; the guarantee is that of `Asked.randomized`."""
        return self.asked[way].at(places).randomized(fresh)


def decided(question: Question, node: Node) -> Decided:
    """How the node's rows answer a task, or raise what `answer` makes a refusal of."""
    task, source = question.task, node.source
    choices = _choices(question, node)
    rows = answerable(task, source)
    if not len(rows) or len(rows) * task.repetitions > MOST_VALUES:
        raise NotMine("expected a task about at least one row of this client, and not more than a message holds")
    check_groups(task, source, rows)
    facts = source.facts(rows)
    if task.trust is Trust.CENTRAL and group_size(task, facts, rows) < node.policy.least_group:
        raise _Refused(Code.GROUP_TOO_SMALL)
    possible = allowed(task, choices, node.policy, source, facts, rows)
    draws = partial(node.draws, task)
    asked = [_asked(task, choice, rows, node, draws) for choice in choices]
    return Decided(facts, possible, _charges(question, choices, node, facts, rows), asked)


def _choices(question: Question, node: Node) -> tuple[Choice, ...]:
    """The mechanisms that the node may use for a task that it understands and allows."""
    task, synthetic = question.task, node.source.synthetic
    code = node.policy.check(task)
    if code is not None:
        raise _Refused(code)
    question.check()
    node.check(task)
    if task.trust is Trust.SHUFFLED and node.shuffler is None and node.coins is not Coins.ADDRESSED:
        raise ShufflerUnavailable("expected a shuffler of the node's own file, got none")
    if task.unit is Unit.RECORD and not question.of_records and not synthetic:
        raise _Refused(Code.UNIT_NOT_ALLOWED)  # proved for real numbers only
    if not synthetic and (task.first_repetition, task.repetitions) != (0, 1):
        raise TaskInvalid("expected one repetition, number 0: a file's labels exist once")
    choices = question.choices(node.policy, node.coins)
    if not choices:
        raise _Refused(Code.MECHANISM_NOT_ALLOWED)
    return choices


def _asked(task: Task, choice: Choice, rows: Rows, node: Node, draws: Callable[[int], Draws]) -> Asked | AskedRecords:
    """What the rows are asked through a choice, by the kind of the problem."""
    if task.problem.kind == "records":
        return AskedRecords(task, choice, rows, cast(RecordSource, node.source), draws)
    return ASKED[task.problem.kind](task, choice, rows, cast(Source, node.source), node.features, draws)


def _charges(
    question: Question, choices: Sequence[Choice], node: Node, facts: Facts | None, rows: Rows
) -> list[Charge]:
    """What each way of answering costs; rounds of a run pay together, and other rows, as of a file that grew, anew."""
    charges, run = [question.charge(choice, node.coins) for choice in choices], question.run
    if run is None:
        return charges
    whose = run if facts is None else identity(run + rows.tobytes() + b"".join(facts.identities))
    return [replace(charge, run=whose) for charge in charges]


def report(task_id: bytes, asked: Asked | AskedRecords, symbols: Symbols, coins: Coins) -> Report:
    """What the rows of one channel answer."""
    rows, choice = asked.rows, asked.choice
    return Report(
        task=task_id,
        rows=None if len(rows) == asked.task.n else _runs(rows),
        payload=asked.payload(symbols),
        mechanism=choice.mechanism,
        table=_table(choice),
        coins=coins,
        numerics=fingerprint(),
    )


def _runs(rows: Rows) -> Runs:
    first, count = int(rows[0]), len(rows)
    dense = count == 1 or int(rows[-1]) - first + 1 == count
    return Runs(((first, 1, count),)) if dense else Runs.of(rows.tolist())


def _table(choice: Choice) -> bytes:
    channel = choice.channel or choice.numeric
    return b"" if channel is None else channel.digest
