"""A file's records cross the border as in a study: one node, one server, and an algorithm of rounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np

from client.labeler import Node
from client.ledger_view import read_entries
from client.policy import Policy
from client.sources.record_table import RecordTable
from protocol.aggregates import TRIMMED
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.record_law import RecordLaw
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study, cells
from protocol.warned import warn
from server.evidence import Server
from server.outcome import Outcome
from server.record_rounds import opening
from server.rounds import play
from studies.fit.state import note_records
from studies.in_process import carried
from studies.own_room import own_room
from studies.records.facts import RecordFacts, facts_of
from studies.records.heavy import tails
from studies.records.request import Request, problem_of
from studies.records.told import accuracy


@dataclass(frozen=True, eq=False)
class Estimated:
    """What came out: an outcome, with public `warnings` and `accuracy`.

    Of records of one's own, `table` has them, and `charged` says how many rows paid in this run; both are None where
    records stayed with several nodes, whose ledgers nobody else reads.
    """

    request: Request
    facts: RecordFacts
    outcome: Outcome
    warnings: tuple[str, ...]
    accuracy: str | None = None
    table: RecordTable | None = None
    charged: int | None = None


def estimate(request: Request, table: RecordTable) -> Estimated:
    """Ask the file's node, round by round, and estimate.

    Guarantee: that of the outcome's claim, over all rounds; unit: what a row is, a record or a holder.
    Raises StudyError for a claim that cannot be kept, RoundFailed for a refusal, LedgerUnavailable and LedgerError.
    """
    table = replace(table, rows_held=np.arange(len(table.rows_held)))  # a node's file alone is a whole
    facts = facts_of(table)
    with _parts(request, table, request.state if request.budgeted else None) as (node, ledger, server):
        odd = note_records(ledger.parent, table) if request.budgeted else ""
        before, sent = _paid(ledger), list[bytes]()

        def ask(raws: list[bytes]) -> list[bytes]:
            sent.extend(raws)
            return list(carried(raws, [node]))

        (outcome,) = play(study_of(request, facts), Cell(facts.rows, 0, 1), ask, server)
        charged = _paid(ledger) - before
    warnings = outcome.warnings + ((warn("known-labelers", odd),) if odd else ()) + tails(request, table, outcome.theta)
    return Estimated(request, facts, outcome, warnings, accuracy(sent), table, charged)


def first_tasks(study: Study) -> list[Task]:
    """What a study of one cell asks first: nothing is kept, nobody asked. Raises StudyError where it cannot begin."""
    (cell,) = cells(study)
    return opening(study, cell, Server(FeatureStore(None), study.seed))


def study_of(request: Request, facts: RecordFacts, seed: int = 0) -> Study:
    """A study of one arm and one cell. Its name covers whose records are asked what: one question has one answer.

    `seed`: of the curator's coins, where another process has to be told.
    """
    return Study(
        name=f"records {facts.whose}",
        seed=seed,
        repetitions=1,
        problem=problem_of(facts.model, len(facts.names), request.bound),
        grid=Grid(
            (facts.rows,),
            () if request.epsilon is None else (request.epsilon,),
            () if request.delta is None else (request.delta,),
        ),
        arms=(request.arm,),
        records=RecordLaw(per_holder=0 if facts.unit is Unit.HOLDER else 1, tail=request.tail, moment=request.moment),
    )


@contextmanager
def _parts(request: Request, table: RecordTable, where: Path | None) -> Iterator[tuple[Node, Path, Server]]:
    """The node, its ledger's path, and the server. Without a folder `where`, ledgers are gone afterwards."""
    policy = Policy(
        trusts=frozenset({request.trust}),
        max_epsilon=request.epsilon,
        units=frozenset({table.columns.unit}),
        central_rows=request.arm.get("aggregate") == TRIMMED,
        colluding=Decimal(0),  # of sums under masks it is the only member
    )
    with own_room(table, policy, where, request.trust, request.seed) as room:
        yield room


def _paid(ledger: Path) -> int:
    """How many rows were charged so far, over all tasks and runs."""
    return sum(entry.labels for entry in read_entries(ledger))
