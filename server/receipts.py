"""Receipts: that a node handed reports to a shuffler, about which rows, and nothing of what they say."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from protocol.codec import Signed
from protocol.counting import counted
from protocol.messages import Coins, Kind, Refusal, Report, Task
from protocol.questions import questions
from server.asked import Asked
from server.claims import Fault

SHUFFLER = "the shuffler"  # no node is called so: these are called "node ..."
Answers = Sequence[tuple[Signed | Refusal, str]]


class Parted(NamedTuple):
    """Answers that say something, who sent a receipt that counts, and what is wrong with the others."""

    answers: Answers
    senders: frozenset[str]
    faults: list[Fault]


def is_receipt(report: Report) -> bool:
    """Whether a report has a value for none of its rows."""
    values = report.payload.values
    return report.payload.kind is Kind.SYMBOLS and values.ndim == 2 and not values.shape[1]


def parted(task: Task, answers: Answers) -> Parted:
    """Take receipts out of the answers to a shuffled task, and hold what the shuffler brought against them.

    Once a shuffler brought something, or reports have the system's coins, nothing counts that came past it: whose such
    a report is would be known.
    """
    asked, told, senders, left, faults = Asked(task), Counter[int](), set[str](), [], list[Fault]()
    brought = any(sender == SHUFFLER for _, sender in answers)
    for item, sender in answers:
        if isinstance(item, Refusal) or sender == SHUFFLER:
            left.append((item, sender))
        elif is_receipt(item.report):
            try:
                rows = asked.named(item.report.rows)
            except ValueError as error:
                faults.append(Fault(sender, str(error)))
                continue
            told.update(questions(task.problem, task.n)[rows].tolist())
            senders |= {sender} - {""}
        elif brought or item.report.coins is Coins.OS:
            faults.append(Fault(sender, "a shuffled answer that came past the shuffler"))
        else:
            left.append((item, sender))
    return Parted(left, frozenset(senders), faults + _missing(task, asked, told, left))


def _missing(task: Task, asked: Asked, told: Counter[int], left: Answers) -> list[Fault]:
    """Whether the shuffler brought fewer reports about some question than nodes have handed over."""
    came = Counter[int]()
    for item, sender in left:
        if sender == SHUFFLER and isinstance(item, Signed):
            came.update(questions(task.problem, task.n)[asked.named(item.report.rows)].tolist())
    short = [question for question, count in told.items() if came[question] < count]
    if not short:
        return []
    lost = sum(told[question] - came[question] for question in short)
    words = f"{counted(lost, 'report')} fewer, about {counted(len(short), 'question')}, than nodes have handed over"
    return [Fault(SHUFFLER, words)]
