"""What arrived for one task: every reply checked against what was asked, then merged by row.

Nothing here trusts a client: a reply that does not fit is rejected, counted and named, and never stops the others. The
result does not depend on the order of arrival.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from protocol.choice_law import choice_law
from protocol.codec import Signed, decode_reply
from protocol.errors import WireError
from protocol.features import row_bound
from protocol.grid import to_integers
from protocol.messages import Array, Code, Coins, Kind, Refusal, Report, Task, Ties
from protocol.terms import law
from protocol.trust import RANDOMIZED, Trust
from server.alike import Names, Sheaf, Sheaves
from server.asked import Asked
from server.claims import Claim, Fault, Gathered, check_apart, settled
from server.collect_choices import check_choices
from server.collect_records import check_records, payload_kind, table_of
from server.collect_residues import check_residues, residue_sum
from server.receipts import SHUFFLER, parted
from server.sent import MANY, Sent
from server.shuffled import anonymous

Order = NDArray[np.intp] | slice
KINDS = {
    Trust.CLEAR: Kind.SYMBOLS,
    Trust.LOCAL: Kind.SYMBOLS,
    Trust.CENTRAL: Kind.EXACT_SUMS,
    Trust.DISTRIBUTED: Kind.RESIDUES,
    Trust.SHUFFLED: Kind.SYMBOLS,
}


@dataclass(frozen=True)
class Collected:
    """The accepted reports of one task, merged.

    `rows` are the rows answered for, increasing. `symbols`: (repetitions, rows); `sums`: (repetitions, p), exact;
    `values`: (repetitions, rows, d), what is said of records. `residues`: (repetitions, p), of the distributed model,
    the sum modulo M; `sums` is then the opened one, with noise, as the integers next to 0.
    `ways` (rows,), where a menu offers several mechanisms: the place in it of the one that answered a row.
    `accepted` are the public ids of the reports that count, `senders` those who sent them; `rejected` says why others
    do not count, and `blamed` whose they are; `refusing` has who sent each code, as far as that is known. `coins` names
    addressed ones where any report has them; `live` says that some report has the system's, so that somebody is to be
    protected; `heard_live` says it of those that do not count as well.
    """

    rows: NDArray[np.int64] = field(repr=False)
    symbols: NDArray[np.uint8] | None = field(repr=False)
    sums: NDArray[np.float64] | None = field(repr=False)
    accepted: Sequence[bytes]
    coins: Coins | None
    numerics: frozenset[bytes]
    refusals: Counter[Code]
    rejected: tuple[str, ...]
    ways: NDArray[np.uint8] | None = field(default=None, repr=False)
    live: bool = False
    values: NDArray[np.float64] | None = field(default=None, repr=False)
    blamed: frozenset[str] = frozenset()
    heard_live: bool = False
    senders: frozenset[str] = frozenset()
    refusing: Mapping[Code, frozenset[str]] = field(default_factory=dict)
    residues: NDArray[np.uint64] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Mail:
    """Replies as they arrived, decoded and sorted by the task they name, each with its sender ("": nobody knows).

    `faults` says why others do not count, by the task that they were sent for; `unread` says it of those about none.
    `sheaves` hold the many that are alike, by task; `opened` has the same in `by_task`, one by one.
    """

    by_task: dict[bytes, list[tuple[Signed | Refusal, str]]]
    faults: dict[bytes, list[Fault]]
    unread: tuple[str, ...]
    sheaves: dict[bytes, list[Sheaf]] = field(default_factory=dict)

    @classmethod
    def open(cls, replies: Iterable[bytes], tasks: Collection[bytes]) -> "Mail":
        """Decode replies to any of `tasks` (ids)."""
        by_task: dict[bytes, list[tuple[Signed | Refusal, str]]] = {task: [] for task in tasks}
        faults: dict[bytes, list[Fault]] = {task: [] for task in tasks}
        unread, sheaves = [], Sheaves(tasks)
        for raw in sheaves.others(replies):
            sender, asked = (raw.sender, raw.task) if isinstance(raw, Sent) else ("", b"")
            found, why = _read(raw)
            for item in found:
                task = item.report.task if isinstance(item, Signed) else item.task
                if task in by_task:
                    by_task[task].append((item, sender))
                else:
                    why.append("an answer to another task")
            if asked in faults:
                faults[asked] += [Fault(sender, words) for words in why]
            else:
                unread += why
        return cls(by_task, faults, tuple(sorted(unread)), {task: sheaves.of(task) for task in tasks})

    def opened(self, task: bytes) -> "Mail":
        """The same, with every reply to a task by itself."""
        every = [*self.by_task[task], *((signed, "") for sheaf in self.sheaves[task] for signed in sheaf.opened())]
        return replace(self, by_task=self.by_task | {task: every}, sheaves=self.sheaves | {task: []})


def _read(raw: bytes) -> tuple[Sequence[Signed | Refusal], list[str]]:
    """What is in a reply, and what is wrong with it."""
    if isinstance(raw, Sent) and raw.fault:
        return [], [raw.fault]
    try:
        reply = decode_reply(raw)
    except WireError as error:
        return [], [str(error)]
    return (reply if isinstance(reply, list) else [reply]), []


def collect(task: Task, task_id: bytes, mail: Mail) -> Collected:
    """Check and merge the answers to one task."""
    answers: Sequence[tuple[Signed | Refusal, str]] = mail.by_task[task_id]
    refusals = Counter(item.code for item, _ in answers if isinstance(item, Refusal))
    asked = Asked(task)
    claims: list[Claim] = []
    faults = list(mail.faults[task_id])
    receipts = frozenset[str]()
    if task.trust is Trust.SHUFFLED:
        answers, receipts, others = parted(task, answers)
        faults += others
    sent = Counter(sender for item, sender in answers if sender and not isinstance(item, Refusal))
    flooding = {sender for sender, count in sent.items() if count > len(task.menu)}
    faults += [Fault(sender, MANY) for sender in flooding]
    for signed, sender in answers:
        if isinstance(signed, Refusal) or sender in flooding:  # few bytes may be about all rows: each takes memory
            continue
        try:
            claims.append(Claim(_check(task, asked, signed.report), signed, sender))
        except ValueError as error:
            faults.append(Fault(sender, str(error)))
    sheaves = mail.sheaves.get(task_id, [])
    try:
        joint = [Gathered(_check(task, asked, sheaf.report, sheaf.rows), sheaf) for sheaf in sheaves]
        check_apart(joint, claims, task)
    except ValueError:  # some of them do not count: which ones, only a look at each can tell
        return collect(task, task_id, mail.opened(task_id))
    accepted, contested = settled(claims, task)
    merged = _merge(task, accepted, joint, refusals, sorted([*faults, *contested]))
    heard = [item.report for item, _ in answers if isinstance(item, Signed)] + [sheaf.report for sheaf in sheaves]
    refusing = {code: frozenset(s for item, s in answers if s and _refuses(item, code)) for code in refusals}
    senders = merged.senders - {SHUFFLER} | receipts
    live = any(report.coins is Coins.OS for report in heard)
    return replace(merged, heard_live=live, refusing=refusing, senders=senders)


def _refuses(item: Signed | Refusal, code: Code) -> bool:
    return isinstance(item, Refusal) and item.code is code


def _check(task: Task, asked: Asked, report: Report, rows: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The rows of a report that fits the task, taken by itself; `rows` where it does not say which."""
    if report.mechanism not in task.menu:
        raise ValueError(f"mechanism {report.mechanism.name[:40]!r} with other parameters than were offered")
    expected, records = b"", task.problem.kind == "records"
    outcomes = 3 if task.ties is Ties.HALF else 2
    if task.trust is Trust.DISTRIBUTED:
        expected = b""
    elif records:
        expected = table_of(task, report.mechanism)
    elif task.trust in RANDOMIZED:
        offered = law(task, report.mechanism) if task.problem.kind == "pairwise" else choice_law(task, report.mechanism)
        expected, outcomes = offered.digest, offered.outcomes
    elif task.problem.kind == "choice":
        outcomes = task.problem.choices
    if report.table != expected:
        raise ValueError("a channel that was not offered: the table's hash differs")
    if rows is None:
        rows = asked.named(report.rows)
    else:
        asked.check(rows)
    if report.groups is not None:
        raise ValueError("groups that were not asked for")
    if task.trust is Trust.DISTRIBUTED:
        check_residues(task, report)
    elif records:
        check_records(task, report, rows)
    else:
        _check_payload(task, report, rows, outcomes)
    return rows


def _check_payload(task: Task, report: Report, rows: NDArray[np.int64], outcomes: int) -> None:
    payload, count = report.payload, len(rows)
    if payload.kind is not KINDS[task.trust]:
        raise ValueError(f"expected a payload of kind {KINDS[task.trust].name}, got {payload.kind.name}")
    if payload.kind is Kind.SYMBOLS and task.problem.kind == "choice":
        check_choices(task, report, rows, outcomes)
        return
    if payload.kind is Kind.SYMBOLS:
        if payload.values.shape != (task.repetitions, count) or (payload.outcomes == 2) != (outcomes == 2):
            raise ValueError(f"expected symbols of shape {(task.repetitions, count)}, got {payload.values.shape}")
        if payload.values.size and payload.values.max() >= outcomes:
            raise ValueError(f"expected symbols below {outcomes}, got {payload.values.max()}")
        return
    assert payload.counts is not None and task.exponent is not None
    shape = (task.repetitions, 1, task.problem.reduced_dimension)
    if payload.values.shape != shape or payload.counts.tolist() != [count]:
        raise ValueError(f"expected one sum over {count} rows of shape {shape}, got {payload.values.shape}")
    sums = payload.values.astype(np.float64)
    to_integers(sums, task.exponent)
    radius = report.mechanism.get("radius")
    bound = row_bound(task.problem, None if radius is None else float(radius), task.map is not None)
    if (np.abs(sums) > count * bound).any():
        raise ValueError(f"a sum larger than {count} rows can have")


def _merge(
    task: Task, single: list[Claim], joint: list[Gathered], refusals: Counter[Code], faults: list[Fault]
) -> Collected:
    accepted = [(claim.rows, claim.signed.report) for claim in single]
    accepted += [(gathered.rows, gathered.sheaf.report) for gathered in joint]
    held = [rows for rows, _ in accepted]
    rows = held[0] if len(held) == 1 else np.concatenate([np.zeros(0, dtype=np.int64), *held])
    order = np.argsort(rows, kind="stable") if len(accepted) > 1 else slice(None)
    symbols, sums, values, residues = None, None, None, None
    reports, kind = [report for _, report in accepted], _kind(task)
    if accepted and kind is Kind.RESIDUES:
        residues = residue_sum(task, reports)
    elif accepted and kind is Kind.ROWS:
        values = _ordered(reports, order).astype(np.float64, copy=False)
    elif accepted and kind is Kind.SYMBOLS:
        symbols = _ordered(reports, order).astype(np.uint8, copy=False)
        symbols = anonymous(task, rows[order], symbols) if task.trust is Trust.SHUFFLED else symbols
    elif accepted:
        sums = np.zeros((task.repetitions, reports[0].payload.values.shape[2]))
        for report in reports:
            sums += report.payload.values[:, 0]  # exact: on the task's grid, in any order
    coins = {report.coins for report in reports}
    return Collected(
        rows=rows[order],
        symbols=symbols,
        sums=sums,
        accepted=_names(single, joint),
        coins=max(coins) if coins else None,  # one addressed report is enough to void a claim
        numerics=frozenset(report.numerics for report in reports),
        refusals=refusals,
        rejected=tuple(map(str, faults)),
        blamed=frozenset(name for fault in faults for name in (fault.sender, fault.rival) if name),
        ways=_ways(task, accepted, order),
        live=Coins.OS in coins,
        values=values,
        residues=residues,
        senders=frozenset(claim.sender for claim in single if claim.sender),
    )


def _ways(task: Task, accepted: Sequence[tuple[NDArray[np.int64], Report]], order: Order) -> NDArray[np.uint8] | None:
    """The place in the menu of what each row answered through; None where there is one."""
    if not accepted or len(task.menu) < 2:
        return None
    used = [np.full(len(rows), task.menu.index(report.mechanism), np.uint8) for rows, report in accepted]
    return np.concatenate(used)[order]


def _kind(task: Task) -> Kind:
    """What reports to a task hold."""
    records = task.problem.kind == "records" and task.trust is not Trust.DISTRIBUTED
    return payload_kind(task, task.menu[0]) if records else KINDS[task.trust]


def _ordered(reports: list[Report], order: Order) -> Array:
    """What reports say of rows, (repetitions, rows, ...), rows in order; of one report, as they are."""
    values = [report.payload.values for report in reports]
    return np.ascontiguousarray((values[0] if len(values) == 1 else np.concatenate(values, axis=1))[:, order])


def _names(single: list[Claim], joint: list[Gathered]) -> Sequence[bytes]:
    """Public ids of the reports that count, in the order of their ids, as `settled` gives single ones."""
    reports = [claim.signed for claim in single]
    return Names(reports, [gathered.sheaf for gathered in joint]) if joint else tuple(one.public_id for one in reports)
