"""Tasks that are not worth asking: claims that no curator keeps, and sums that clients cannot complete."""

import math

import numpy as np

from protocol.arms import RECORD
from protocol.messages import Mechanism, Task, Ties
from protocol.noise.record_terms import terms_of_records
from protocol.noise.terms import terms_of
from protocol.privacy import Unit
from protocol.problem import DRAWN
from protocol.record_terms import LINF, SUMS, UNITS, Bounded, check_added, width
from protocol.shaping import SHAPED
from protocol.shuffled_terms import check_shuffled
from protocol.strict import StudyError
from protocol.terms import only_mechanism
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import Trust
from server.mechanisms import CENTRAL as NOISE
from server.mechanisms import discrete_gaussian
from server.mechanisms.rounds import ROUNDS
from server.mechanisms.selection_rounds import shared_rounds
from server.mechanisms.selections import SELECTIONS
from server.mechanisms.standard import noise_of


def check_task(task: Task) -> None:
    """Raise StudyError for a task whose answers could only be thrown away: labels would have paid for nothing.

    That is a menu of several mechanisms, but for local answers about pairs, and a central task that no curator can
    release: with a claim that integer noise cannot keep, a unit without its groups, or rows that clients leave out by
    the task's rules. A sum has to be complete, so rows beyond a cap, and public ties where they are dropped, may not be
    asked for.
    """
    try:
        if task.problem.kind == "records":
            check_records(task)
            return
        if task.trust is Trust.LOCAL and task.problem.kind == "pairwise":
            return  # every report names its mechanism
        mechanism = only_mechanism(task)
        if task.trust is Trust.SHUFFLED:
            check_shuffled(task, mechanism)
        if task.trust is Trust.DISTRIBUTED:
            terms_of(task, mechanism)
            _check_rows(task)
        if task.trust is Trust.CENTRAL:
            check_claim(task, mechanism)
            _check_unit(task, mechanism)
            _check_rows(task)
    except ValueError as error:
        raise StudyError(f"{task.trust.label} task: {error}") from None


def check_claim(task: Task, mechanism: Mechanism) -> None:
    """Raise StudyError for a claim that the curator cannot keep, before labels pay for it."""
    if mechanism.name in RECORD:
        try:
            noise_of(task, mechanism)
        except ValueError as error:
            raise StudyError(f"{mechanism.name}: {error}") from None
        return
    epsilon, delta, noise = mechanism.get("epsilon"), mechanism.get("delta"), NOISE.get(mechanism.name)
    if epsilon is None or delta is None or noise is None:
        raise StudyError(f"expected a mechanism out of {sorted(NOISE)} with epsilon and delta, got {mechanism.name!r}")
    try:
        discrete_gaussian.check_claim(
            epsilon, delta, task.problem.reduced_dimension, noise.noise_multiplier(epsilon, delta)
        )
    except ValueError as error:
        raise StudyError(f"{mechanism.name}: {error}") from None


def _check_unit(task: Task, mechanism: Mechanism) -> None:
    """What the sensitivity is computed from: one label, or the rows of each group, at most `cap` of them."""
    labelers = task.unit is Unit.LABELER
    if (task.unit is Unit.RECORD) != (mechanism.name in RECORD):
        raise ValueError(f"expected the unit record exactly for {RECORD}, got {task.unit.label} for {mechanism.name}")
    if task.unit is Unit.RECORD:
        _check_record(task)
        return
    if task.problem.kind == "choice" and (labelers or mechanism.get("unprojected")):
        raise ValueError("expected sums of top choices protected for a label, from projected rows")
    if not (labelers or task.unit is Unit.LABEL) or {task.groups is not None, task.cap > 0} != {labelers}:
        raise ValueError("expected groups and a cap exactly at the unit labeler: see server.tasks:for_labelers")
    if labelers and mechanism.get("unprojected"):
        raise ValueError("expected projected rows where labelers are protected: leave out norm = 'unprojected'")
    if (task.map is not None) != (mechanism.name == SHAPED) or (task.map is not None and mechanism.get("unprojected")):
        raise ValueError("expected a map exactly where noise is shaped, and the norm of mapped rows")


def _check_record(task: Task) -> None:
    if task.problem.features not in DRAWN or task.groups is not None or task.cap or task.map is not None:
        raise ValueError(
            "expected drawn features where records are protected: those of a file travel in the task for all to see"
        )
    if task.rows is not None and task.rows.count < task.n:
        raise ValueError(f"expected all {task.n} rows, for which the noise of records is made, got {task.rows.count}")
    if task.problem.model != "btl":
        raise ValueError(f"expected the model btl, for which records are protected, got {task.problem.model}")


def _check_rows(task: Task) -> None:
    """Every row asked for has to be one that its client sends."""
    if task.ties is Ties.DROP and task.rows is None:
        raise ValueError("expected the rows that are no ties where ties are dropped, got none: list them, or use coin")
    if task.groups is None:
        return
    groups = task.groups if task.rows is None else task.groups[task.rows.numbers()]
    most = int(np.unique(groups, return_counts=True)[1].max())
    if most > task.cap:
        raise ValueError(f"expected at most {task.cap} rows of each labeler, as its cap, got {most}: list what counts")


def check_records(task: Task) -> None:
    """Raise ValueError for a task about records that nobody can release: a claim that its noise does not keep."""
    mechanism = only_mechanism(task)
    if task.trust is Trust.DISTRIBUTED:
        terms_of_records(task, mechanism)
    if task.trust is not Trust.CENTRAL:
        return
    check_added(task, Bounded.of(mechanism))
    if mechanism.name == "exceedances":
        if task.epsilon is None or task.delta is not None or ThresholdGrid.of(mechanism) is None:
            raise ValueError("expected an epsilon, no delta, and a grid of thresholds for a private choice of one")
        return
    if mechanism.name in SELECTIONS:
        _check_selection(task, mechanism)
        return
    how, noise = Bounded.of(mechanism), ROUNDS.get(mechanism.name)
    if task.epsilon is None or task.delta is None or noise is None:
        raise ValueError(f"expected a mechanism out of {sorted(ROUNDS)} with epsilon and delta, got {mechanism.name!r}")
    if task.unit not in UNITS or task.round >= how.rounds > 1:
        raise ValueError(f"expected a record or a holder, in a round below {how.rounds}")
    multiplier = noise(task.epsilon, task.delta, how.rounds) / math.sqrt(how.rounds)
    discrete_gaussian.check_claim(task.epsilon, task.delta, width(task) * how.rounds, multiplier)


def _check_selection(task: Task, mechanism: Mechanism) -> None:
    """A selection needs sums bounded by coordinate, a step, and noise that keeps the claim over its rounds."""
    how, sparsity, step = Bounded.of(mechanism), mechanism.get("sparsity"), mechanism.get("step")
    if task.epsilon is None or sparsity is None or step is None or sparsity != int(sparsity) or not step > 0:
        raise ValueError(f"expected an epsilon, a whole sparsity and a step > 0 of {mechanism.name}")
    if how.kind != SUMS or how.norm != LINF or task.unit not in UNITS or task.round >= how.rounds > 1:
        raise ValueError(f"expected sums bounded by coordinate, of records or holders, in a round below {how.rounds}")
    shared_rounds(mechanism.name, task.epsilon, task.delta, int(sparsity), how.rounds, mechanism.get("split"))
