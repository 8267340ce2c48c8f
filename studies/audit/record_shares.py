"""Sums of records with noise in shares: what a server, and members that it colludes with, learn of the others' records.

As of labels, what is looked at is the sum of what the honest rows add, made by the client from the server's own task.
"""

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from client.draws import AddressedDraws
from client.record_choice import execute
from client.record_payloads import AskedRecords
from protocol.arms import Arm
from protocol.messages import Task
from protocol.noise.record_terms import terms_of_records
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.secure.masks import centred
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.evidence import Server
from server.record_rounds import opening
from studies.audit.given import GivenRecords
from studies.audit.shares import DELTA, HONEST, PACE, ROWS, SEED, drawn
from studies.audit.subject import Claim, Floats, Subject

DIMENSION = 2
FAR = 1e6  # beyond every threshold: a row that is clipped at one end of its bound or the other
_PLAYED = "six honest rows of eight, one a member: client.record_payloads:AskedRecords and tables of protocol.noise"


def of_records(law: str, epsilon: Decimal) -> Subject:
    """The mean of eight rows of two numbers, of whom the task counts on six, and no more of these are honest.

    One row moves from one end of its bound to the other, in every coordinate; the others are 0.
    """
    task = _task(law, epsilon)
    terms = terms_of_records(task, task.menu[0])
    inputs = {name: (_without_noise(task, end), terms.shares) for name, end in (("low", -FAR), ("high", FAR))}
    claim, pairs = Claim(epsilon, DELTA, "record"), (("low", "high"),)
    return Subject(f"distributed/{law}/records", claim, inputs, pairs, _PLAYED, draw=drawn, pace=PACE, normal=True)


def _task(law: str, epsilon: Decimal) -> Task:
    problem = Problem(DIMENSION, "records", False, None, kind="records", model="mean")
    options = (("honest", HONEST), ("threshold", Decimal("0.3")))
    study = Study(
        "audit",
        SEED,
        1,
        problem,
        Grid((ROWS,), (epsilon,), (DELTA,)),
        (Arm(Trust.DISTRIBUTED, law, "mean", options),),
        records=RecordLaw(),
    )
    (task,) = opening(study, Cell(ROWS, 0, 1), Server(FeatureStore(SEED), SEED, None))
    return task


def _without_noise(task: Task, end: float) -> tuple[int, ...]:
    """The sum of the rows: what the client adds, less what it adds where all rows are 0."""
    found = [_opened(task, value) for value in (end, 0.0)]
    return tuple((found[0] - found[1]).tolist())


def _opened(task: Task, value: float) -> NDArray[np.int64]:
    """What the client adds where the first row has this value in every coordinate, as integers next to 0, (d,)."""
    records: Floats = np.zeros((task.n, DIMENSION))
    records[0] = value
    coins = AddressedDraws(SEED, task.n, 0)
    asked = AskedRecords(task, execute(task), np.arange(task.n), GivenRecords(records), lambda _: coins)
    return centred(asked.unmasked().values[0].astype(np.uint64), task.modulus)
