"""The one task of a fit: what is asked of a file's labels, and under which claim."""

import hashlib
from dataclasses import replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from client.policy import Policy
from client.rows import answerable, within_cap
from client.sources.table import Table
from protocol.arms import Arm
from protocol.decimals import decimal
from protocol.features import reduced_rows
from protocol.messages import Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.shaping import CLIPPED, SHAPED, default_mechanism, mapped, shaping
from protocol.strict import StudyError
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.clipping import best_radius
from server.mechanisms import CENTRAL
from server.task_shares import about
from server.tasks import for_labelers, offers, with_ties
from studies.fit.request import Request


def study_and_task(request: Request, table: Table) -> tuple[Study, Task]:
    """A study of one cell without a seed, and its task: the same file and claim are the same task at every run.

    Every row in clear; under a claim one row of each label, of labels within the cap where there is one.
    Item numbers alone do not tell two files apart, and a ledger answers a task that it knows with its old reply: the
    fingerprint also covers whose labels about what are asked (hashes of public columns; no name is sent).
    Raises StudyError for a claim that cannot be kept, or a file without a row to ask for.
    """
    groups, arm = None, arm_of(request, table.problem)
    if request.unit is Unit.LABELER:
        groups = labeler_groups(table)
        first = np.flatnonzero(table.first)  # the cap chooses before ties are left out: its rows are public
        facts = table.facts(first)
        assert facts is not None
        arm = clipped(request, table.problem, first[within_cap(facts, request.cap)], groups)
    study, task = task_of(request, table.problem, arm, groups)
    rows = answerable(task, table)
    if not len(rows):
        raise StudyError(f"{table.path}: expected at least one answer that counts, found none")
    asked = about(task, study.arms[0], Runs.of(rows.tolist()))
    return study, replace(asked, study=named(study, whose(table)))


def policy_of(request: Request, task: Task) -> Policy:
    """What one's own node allows: this task, at this level, and nothing else.

    Of a sum under masks it is the only member, and in league with nobody.
    """
    return Policy(
        trusts=frozenset({request.trust}),
        mechanisms=frozenset(item.name for item in task.menu),
        max_epsilon=request.epsilon,
        units=frozenset({request.unit}),
        ties_public=request.ties_public,
        colluding=Decimal(0),
    )


def whose(table: Table) -> bytes:
    """A hash of whose labels about what a file holds: of public columns only."""
    return hashlib.sha256(b"".join(table.identities)).digest()


def named(study: Study, labels: bytes) -> bytes:
    """A study's fingerprint that also covers whose labels about what are asked: see `whose`."""
    return hashlib.sha256(study.fingerprint + labels).digest()


def task_of(request: Request, problem: Problem, arm: Arm, groups: NDArray[np.int32] | None) -> tuple[Study, Task]:
    """The study of one arm and one cell, and its task about all rows; `groups` (n,) at the unit labeler.

    Noise in shares is sized when it is known which rows are asked: see `server.task_shares:about`.
    Raises StudyError for a claim that cannot be kept.
    """
    assert problem.design is not None
    levels = () if request.epsilon is None else (request.epsilon,)
    failures = () if request.delta is None else (request.delta,)
    study = Study("fit", 0, 1, problem, Grid((len(problem.design),), levels, failures), (arm,))
    (offer,) = offers(study, Cell(study.grid.n[0], 0, 1))
    assert offer.task is not None
    task = with_ties(offer.task, request.ties)
    if groups is None:
        return study, task
    try:
        return study, for_labelers(task, request.cap, groups)
    except ValueError as error:
        raise StudyError(f"--cap: {error}") from None


def labeler_groups(table: Table) -> NDArray[np.int32]:
    """Numbers of labelers, in the order in which the file first names them: no order of names is in them."""
    _, first, place = np.unique(table.owners, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place]


def arm_of(request: Request, problem: Problem) -> Arm:
    """The arm that is asked: a sum about pairs gets the noise that features ask for, as in a study that names none."""
    if request.trust is not Trust.CENTRAL or problem.kind != "pairwise":
        return request.asked
    return replace(request.asked, mechanism=default_mechanism(problem))


def clipped(request: Request, problem: Problem, rows: NDArray[np.int64], groups: NDArray[np.int32]) -> Arm:
    """The arm that is asked for labelers: their contributions are clipped where a noisy sum protects them.

    `rows` are those that count, ties included; `groups` (n,) says whose a row is. Raises StudyError.
    """
    asked = arm_of(request, problem)
    if request.trust is not Trust.CENTRAL:
        return asked
    assert request.epsilon is not None and request.delta is not None
    reduced = reduced_rows(problem, 0, len(groups), 0, 0, len(groups))[rows]
    if asked.mechanism == SHAPED:
        reduced = mapped(reduced, shaping(problem, len(groups)))
    multiplier = _noise_multiplier(request.epsilon, request.delta)
    radius = best_radius(reduced, groups[rows], multiplier)
    return replace(asked, options=(("radius", decimal(f"{radius:.6g}", "radius")),))


def _noise_multiplier(epsilon: Decimal, delta: Decimal) -> float:
    try:
        return CENTRAL[CLIPPED].noise_multiplier(epsilon, delta)
    except ValueError as error:
        raise StudyError(str(error)) from None
