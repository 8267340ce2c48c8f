"""What a server received, against what was promised and what it asked: every message that a transcript holds.

Whether coins were fair no bytes can say: the laws behind them are audited by `halftruth audit`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from protocol.channel import DiscreteChannel
from protocol.choice_law import CHOICE_LOCAL, ChoiceLaw
from protocol.codec import Signed, decode_bundle, decode_input, decode_task, identity
from protocol.decimals import canonical
from protocol.errors import WireError
from protocol.mechanisms import LOCAL, channel
from protocol.messages import Coins, Kind, Mechanism, Refusal, Report, Task
from protocol.record_terms import channel_of
from protocol.secure.codec import decode_ask, decode_session_reply
from protocol.secure.messages import of_session
from protocol.terms import three_way, with_coin
from protocol.trust import RANDOMIZED, Trust
from server.collect import Mail, collect
from server.receipts import SHUFFLER, is_receipt
from studies.audit.stored import Stored

# How much a server is told, or could be by those who stand between: nobody does with masks, and a shuffler is somebody.
_TOLD = {Trust.LOCAL: 0, Trust.DISTRIBUTED: 1, Trust.SHUFFLED: 2, Trust.CENTRAL: 3, Trust.CLEAR: 4}
ANY_PAIRS = "random-pair"  # its table names the study's pairs, which a report does not


@dataclass(frozen=True)
class Promise:
    """Whom labelers trust, the largest level of an answer (None: any), and whether coins that a seed gives will do."""

    trust: Trust = Trust.LOCAL
    epsilon: Decimal | None = None
    addressed: bool = False


@dataclass
class Received:
    """What a transcript holds: counts of what was read, and `broken`: what the promise does not allow, in words."""

    messages: int = 0
    tasks: Counter[str] = field(default_factory=Counter)
    reports: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    coins: Counter[str] = field(default_factory=Counter)
    level: Decimal = Decimal(0)
    broken: Counter[str] = field(default_factory=Counter)


def received(kept: Stored, promise: Promise) -> Received:
    """Compare each message with a promise, and each report with the task that it answers.

    Broken are files that were cut or changed, messages that do not read, tasks and reports of more trust or a larger
    level than promised, a table that is not its mechanism's, coins of a seed, and all that `server.collect` rejects of
    the answers to a task: a mechanism, rows or a payload that it did not ask for, or two answers about one row.
    """
    found = Received(messages=len(kept.came), broken=Counter(kept.faults))
    replies = [one for raw in kept.came for one in _replies(raw, found)]
    for _, reply in replies:
        for answer in [reply] if isinstance(reply, Refusal) else reply:
            if isinstance(answer, Refusal):
                found.refusals[answer.code.name] += 1
            else:
                _read(answer.report, promise, found)
    _compare(kept.asked, [raw for raw, _ in replies], promise, found)
    return found


def _compare(asked: Sequence[bytes], replies: Sequence[bytes], promise: Promise, found: Received) -> None:
    """Every answer with its task. Nodes that are asked again, or in a later run, answer the same and count once."""
    tasks: dict[bytes, Task] = {}
    wanted = [part for raw in dict.fromkeys(asked) for part in _tasks(raw, found)]
    for raw, alone in dict.fromkeys(wanted):
        try:
            task = decode_task(raw)
        except WireError:
            found.broken["a task that does not read"] += 1
            continue
        if alone:
            tasks[identity(raw)] = task
        found.tasks[f"{task.trust.label}: {', '.join(map(_named, task.menu))}"] += 1
        if _TOLD[task.trust] > _TOLD[promise.trust]:
            found.broken[f"a task that asks for {task.trust.label} where {promise.trust.label} was promised"] += 1
    mail = Mail.open(dict.fromkeys(replies), tasks)
    for name, task in tasks.items():
        for why in collect(task, name, mail).rejected:
            if task.trust is Trust.SHUFFLED and why.startswith(SHUFFLER):
                continue  # what a shuffler brings comes another way than messages of nodes
            found.broken[f"not what was asked: {why}"] += 1
    for why in mail.unread:
        found.broken[f"not what was asked: {why}"] += 1


def _tasks(raw: bytes, found: Received) -> list[tuple[bytes, bool]]:
    """The tasks in what was asked, and whether each was asked by itself: a session's are answered under masks."""
    if not of_session(raw):
        return [(raw, True)]
    try:
        return [(task, False) for task in decode_ask(raw).tasks]
    except WireError:
        found.broken["a question of a session that does not read"] += 1
        return []


def _replies(raw: bytes, found: Received) -> list[tuple[bytes, list[Signed] | Refusal]]:
    """What is in a message: a reply, or a bundle of them; on the wire one could be taken for the other's frame."""
    for parts in ((raw,), None):
        try:
            return [one for part in (decode_bundle(raw) if parts is None else parts) for one in _reply(part, found)]
        except WireError:
            pass
    found.broken["a message that does not read: nobody knows what it tells"] += 1
    return []


def _reply(part: bytes, found: Received) -> list[tuple[bytes, list[Signed] | Refusal]]:
    """A reply about labels; of a session's, masked vectors are counted, and nothing else in it is about any.

    Raises WireError.
    """
    if of_session(part):
        decode_session_reply(part)
        return []
    answer, statement = decode_input(part)
    if not statement or isinstance(answer, Refusal):
        return [(part, answer)]
    for signed in answer:
        found.reports[f"{_named(signed.report.mechanism)}, under masks"] += 1
        found.coins[signed.report.coins.label] += 1
        if signed.report.payload.kind is not Kind.RESIDUES:
            found.broken["an input of a session that is no vector under masks"] += 1
    return []


def _read(report: Report, promise: Promise, found: Received) -> None:
    mechanism, trust, epsilon = report.mechanism, promise.trust, promise.epsilon
    sealed = _trust(report) is Trust.SHUFFLED and is_receipt(report)
    found.reports[_named(mechanism) + (", by way of a shuffler" if sealed else "")] += 1
    found.coins[report.coins.label] += 1
    if report.coins is Coins.ADDRESSED and not promise.addressed:
        found.broken["coins that whoever knows a seed can recompute"] += 1
    shown = _trust(report)
    if _TOLD[shown] > _TOLD[trust]:
        found.broken[f"{shown.label}: {_named(mechanism)} where {trust.label} was promised"] += 1
        return
    asked = mechanism.get("epsilon")
    if asked is not None and epsilon is not None and asked > epsilon:
        found.broken[f"a claim of {canonical(asked)} above {canonical(epsilon)}"] += 1
    if shown not in RANDOMIZED:
        return
    local = mechanism.get("local")
    level = _level(mechanism if local is None else Mechanism.of(mechanism.name, epsilon=local), report.table)
    if level is None:
        found.broken[f"a table that is not that of {_named(mechanism)}"] += 1
    elif shown is Trust.SHUFFLED:
        return  # above the claim, which is for what a group says together
    elif epsilon is not None and level > epsilon:
        found.broken[f"a level of {canonical(level)} above {canonical(epsilon)}"] += 1
    else:
        found.level = max(found.level, level)


def _trust(report: Report) -> Trust:
    """Whom a report trusts, by what is in it: a table is there exactly where values went through one.

    A shuffled one names the level that it has by itself.
    """
    if report.table and report.mechanism.get("local") is not None:
        return Trust.SHUFFLED
    if report.table:
        return Trust.LOCAL
    sums = report.payload.kind is Kind.EXACT_SUMS or report.mechanism.name != "none"
    return Trust.CENTRAL if sums else Trust.CLEAR


def _level(mechanism: Mechanism, table: bytes) -> Decimal | None:
    """The level of the mechanism's own law, where the table's hash is that law's; None where it is not."""
    given = dict(mechanism.parameters)
    try:
        if mechanism.name == ANY_PAIRS:
            return given["epsilon"]
        if mechanism.name in LOCAL and set(given) == LOCAL[mechanism.name][0]:
            return {law.digest: law.level for law in _laws(mechanism)}.get(table)
        if mechanism.name in CHOICE_LOCAL:
            law = ChoiceLaw(mechanism.name, given["epsilon"], (2, 63))
            return given["epsilon"] if table == law.digest else None
        numbers = channel_of(mechanism)
        return numbers.level if table == numbers.digest else None
    except (ValueError, KeyError):
        return None


def _laws(mechanism: Mechanism) -> list[DiscreteChannel]:
    """What a label may go through by a mechanism's name: its table, and those that tasks about ties make of it."""
    plain = channel(mechanism.name, dict(mechanism.parameters))
    if mechanism.name == "randomized-response":
        return [plain, with_coin(plain), three_way(mechanism)]
    return [plain, with_coin(plain)] if len(plain.table) == 2 else [plain]


def _named(mechanism: Mechanism) -> str:
    level = mechanism.get("epsilon")
    return mechanism.name if level is None else f"{mechanism.name} at {canonical(level)}"
