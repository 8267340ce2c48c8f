"""A file's records cross the border as in a study: one node, one server, and an algorithm of rounds."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from client.labeler import Node, answer
from client.ledger_view import read_entries
from client.policy import Policy
from client.sources.record_table import RecordTable
from protocol.privacy import Unit
from protocol.record_law import RecordLaw
from protocol.study import Cell, Grid, Study
from server.evidence import Server
from server.outcome import Outcome
from server.rounds import play
from studies.fit.state import note_records
from studies.own_room import own_room
from studies.records.request import Request, problem_of
from studies.records.told import accuracy


@dataclass(frozen=True, eq=False)
class Estimated:
    """What came out: an outcome, and how many rows paid in this run; `warnings` and `accuracy` are public."""

    request: Request
    table: RecordTable
    outcome: Outcome
    charged: int
    warnings: tuple[str, ...]
    accuracy: str | None = None


def estimate(request: Request, table: RecordTable) -> Estimated:
    """Ask the file's node, round by round, and estimate.

    Guarantee: that of the outcome's claim, over all rounds; unit: what a row is, a record or a holder.
    Raises StudyError for a claim that cannot be kept, RoundFailed for a refusal, LedgerUnavailable and LedgerError.
    """
    table = replace(table, rows_held=np.arange(len(table.rows_held)))  # a node's file alone is a whole
    with _parts(request, table) as (node, ledger, server):
        odd = note_records(ledger.parent, table) if request.budgeted else ""
        before, sent = _paid(ledger), list[bytes]()

        def ask(raws: list[bytes]) -> list[bytes]:
            sent.extend(raws)
            return [answer(raw, node) for raw in raws]

        (outcome,) = play(
            study_of(request, table),
            Cell(len(table.identities), 0, 1),
            ask,
            server,
        )
        charged = _paid(ledger) - before
    warnings = outcome.warnings + ((odd,) if odd else ())
    return Estimated(request, table, outcome, charged, warnings, accuracy(sent))


def study_of(request: Request, table: RecordTable) -> Study:
    """A study of one arm and one cell. Its name covers whose records are asked what: one question has one answer."""
    columns = table.columns
    asked = hashlib.sha256(repr(columns).encode() + b"".join(table.identities)).hexdigest()
    return Study(
        name=f"records {asked}",
        seed=0,
        repetitions=1,
        problem=problem_of(columns.model, len(columns.names), request.bound),
        grid=Grid(
            (len(table.identities),),
            () if request.epsilon is None else (request.epsilon,),
            () if request.delta is None else (request.delta,),
        ),
        arms=(request.arm,),
        records=RecordLaw(per_holder=0 if columns.unit is Unit.HOLDER else 1, tail=request.tail, moment=request.moment),
    )


@contextmanager
def _parts(request: Request, table: RecordTable) -> Iterator[tuple[Node, Path, Server]]:
    """The node, its ledger's path, and the server. Where nobody pays, ledgers are gone after the run."""
    policy = Policy(
        trusts=frozenset({request.trust}), max_epsilon=request.epsilon, units=frozenset({table.columns.unit})
    )
    where = request.state if request.budgeted else None
    with own_room(table, policy, where, request.trust, request.seed) as room:
        yield room


def _paid(ledger: Path) -> int:
    """How many rows were charged so far, over all tasks and runs."""
    return sum(entry.labels for entry in read_entries(ledger))
