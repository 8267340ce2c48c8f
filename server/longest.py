"""How long the replies to tasks may be, from what is public: known before anything of them is read."""

from collections.abc import Iterable

from protocol.codec import decode_task
from protocol.codec_parts import encode_mechanism
from protocol.messages import Kind, Task
from protocol.record_terms import width
from protocol.secure.codec import decode_ask
from protocol.secure.messages import PARCEL, PUBLIC, SHARE, Stage, of_session
from server.collect import KINDS
from server.collect_records import payload_kind
from server.collect_residues import residue_width

REPORT = 1024  # more bytes than a report has beside its mechanism, rows and values: ids, hashes, shapes, a signature
RUN = 24  # and than a run of rows has
PIECE = 24  # and than a parcel, or a share, has beside its bytes


def longest(tasks: Iterable[Task], rows: int | None = None) -> int:
    """The most bytes that a node's message in answer to these tasks has; `rows`: for how many it answers, None: any.

    Every row may be a run of its own, and every mechanism of a menu have a report.
    """
    return sum(_longest(task, rows) for task in tasks)


def longest_to(raw: bytes, rows: int | None = None) -> int:
    """The same of one task, or of a question of a session, by its bytes."""
    if not of_session(raw):
        return longest([decode_task(raw)], rows)
    ask = decode_ask(raw)
    if ask.stage is Stage.INPUT:
        return REPORT + longest(map(decode_task, ask.tasks), rows)
    counts, keys = 4 * (len(ask.agenda.tasks) + 1), 2 * (PUBLIC + 4)
    return (
        REPORT
        + 10 * len(ask.tasks)
        + len(ask.roster) * (counts + keys + PARCEL + PIECE)
        + len(ask.parcels) * (SHARE + PIECE)
    )


def _longest(task: Task, rows: int | None) -> int:
    asked = task.n if task.rows is None else task.rows.count
    count = asked if rows is None else min(asked, rows)
    sums, each = _shape(task)
    reports = sum(REPORT + encode_mechanism(item).ByteSize() + each * sums * task.repetitions for item in task.menu)
    return reports + count * (RUN + (0 if sums else each * task.repetitions))


def _shape(task: Task) -> tuple[bool, int]:
    """Whether a report holds one sum in place of a value for each row, and how many bytes one of both has at most."""
    if KINDS[task.trust] is Kind.RESIDUES:
        return True, 8 * residue_width(task)
    if task.problem.kind == "records":
        sums = any(payload_kind(task, item) is Kind.EXACT_SUMS for item in task.menu)
        return sums, 8 * width(task)
    if KINDS[task.trust] is Kind.EXACT_SUMS:
        return True, 8 * task.problem.reduced_dimension
    return False, max(1, task.problem.choices)
