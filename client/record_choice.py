"""What this client understands of a task about records, and how it executes a mechanism of its menu."""

import numpy as np

from client.choice import COARSEST, NONE, Choice, TaskInvalid
from protocol.decimals import delta, epsilon
from protocol.messages import Mechanism, Runs, Task, Ties
from protocol.noise.record_terms import terms_of_records
from protocol.record_arms import EXCEEDANCES, PURE_SELECTING, RECORD_CENTRAL
from protocol.record_terms import FLAGS, SUMS, UNITS, Bounded, channel_of, check_added, sum_exponent, width
from protocol.terms import only_mechanism
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import SIGHT, Trust

LARGEST_THETA = 1e100


def understand_records(task: Task) -> None:
    """Raise TaskInvalid for a task about records with a part that nothing here acts on, or one out of range."""
    if task.trust not in SIGHT or task.unit not in UNITS:
        raise TaskInvalid(f"expected a trust model of today and a unit out of {[unit.label for unit in UNITS]}")
    if task.ties is not Ties.NONE or task.groups is not None or task.map is not None or task.cap:
        raise TaskInvalid("expected no ties, groups, map or cap where records are asked for")
    if task.cohort or bool(task.modulus) is not (task.trust is Trust.DISTRIBUTED):
        raise TaskInvalid("expected no cohort, and a modulus exactly for a sum under masks")
    if task.coordinates is not None and (
        task.trust is not Trust.LOCAL or _last(task.coordinates) >= task.problem.dimension
    ):
        raise TaskInvalid(f"expected coordinates below {task.problem.dimension}, of local reports")
    shape = (task.repetitions, task.problem.dimension)
    for points in (task.theta, task.centre):
        if points is not None and (
            points.shape != shape or not np.isfinite(points).all() or np.abs(points).max() > LARGEST_THETA
        ):
            raise TaskInvalid("expected one finite theta, and centre, of moderate size for each repetition")
    if task.rows is not None and _last(task.rows) >= task.n:
        raise TaskInvalid(f"expected rows below {task.n}")
    _understand_claim(task)


def execute(task: Task) -> Choice:
    """The one mechanism of the menu, as this client executes it. Raises TaskInvalid."""
    try:
        mechanism = only_mechanism(task)
        if task.trust is Trust.CLEAR:
            if mechanism != NONE:
                raise ValueError("expected no mechanism where there is no claim")
            return Choice(mechanism)
        if task.trust is Trust.DISTRIBUTED:
            return Choice(mechanism, bounded=terms_of_records(task, mechanism).how)
        choice = _local(task, mechanism) if task.trust is Trust.LOCAL else _central(task, mechanism)
        assert choice.bounded is not None
        check_added(task, choice.bounded)
        return choice
    except ValueError as error:
        raise TaskInvalid(str(error)) from None


def _understand_claim(task: Task) -> None:
    if (task.epsilon is not None) != (task.trust is not Trust.CLEAR) or (task.epsilon is None and task.delta):
        raise TaskInvalid("expected epsilon exactly under a claim")
    try:
        fits = (task.epsilon is None or epsilon(task.epsilon) == task.epsilon) and (
            task.delta is None or delta(task.delta) == task.delta
        )
    except ValueError:
        fits = False
    if not fits or len(task.menu) != 1:
        raise TaskInvalid("expected epsilon and delta in their ranges, and one mechanism")
    if (task.menu[0].get("epsilon"), task.menu[0].get("delta")) != (task.epsilon, task.delta):
        raise TaskInvalid("expected the mechanism at the task's level")


def _last(runs: Runs) -> int:
    start, step, count = runs.runs[-1]
    return start + step * (count - 1)


def _local(task: Task, mechanism: Mechanism) -> Choice:
    channel = channel_of(mechanism)
    if channel.dimension != width(task):
        raise ValueError(f"expected a channel for {width(task)} coordinates, got one for {channel.dimension}")
    if ThresholdGrid.of(mechanism) is not None and mechanism.get("threshold") != 1:
        raise ValueError("expected a threshold of 1 for bits")
    assert task.epsilon is not None
    if channel.level > task.epsilon or (channel.delta or 0) > (task.delta or 0):
        raise ValueError("expected a channel within its level")
    how = Bounded.of(mechanism, channel.norm)
    _understand_round(task, how)
    return Choice(mechanism, numeric=channel, bounded=how)


def _central(task: Task, mechanism: Mechanism) -> Choice:
    if mechanism.name not in RECORD_CENTRAL:
        raise ValueError(f"expected a mechanism out of {sorted(RECORD_CENTRAL)}, got {mechanism.name!r}")
    how, names = Bounded.of(mechanism), {name for name, _ in mechanism.parameters}
    known = {"epsilon", "delta", "threshold", "rounds", *FLAGS, *RECORD_CENTRAL[mechanism.name]}
    if names - known:
        raise ValueError(f"expected parameters out of {sorted(known)}, got {sorted(names - known)}")
    if task.delta is None and mechanism.name not in (EXCEEDANCES, *PURE_SELECTING):
        raise ValueError(f"expected a delta of {mechanism.name}, which keeps no claim without one: it is charged")
    if mechanism.name == EXCEEDANCES:
        _understand_grid(task, mechanism)
    _understand_round(task, how)
    if how.kind == SUMS:
        least = sum_exponent(task, how)
        if task.exponent is None or not least <= task.exponent <= COARSEST:
            raise ValueError(f"expected the exponent of a grid in {least}..{COARSEST}, got {task.exponent}")
    return Choice(mechanism, bounded=how)


def _understand_round(task: Task, how: Bounded) -> None:
    if task.round >= how.rounds > 1:
        raise ValueError(f"expected a round below {how.rounds}, whose claim covers that many")


def _understand_grid(task: Task, mechanism: Mechanism) -> None:
    """A choice out of a grid of thresholds is pure, and made once, of counts, which are whole."""
    if ThresholdGrid.of(mechanism) is None or mechanism.get("threshold") != 1 or mechanism.get("delta") is not None:
        raise ValueError("expected lowest and highest of a grid, a threshold of 1 for counts, and no delta")
    if {"rounds", *FLAGS} & {name for name, _ in mechanism.parameters} or (task.exponent or 0) > 0:
        raise ValueError("expected one sum of counts, on a grid that has the number 1")
