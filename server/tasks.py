"""From a cell of a study to its tasks: arms with one mechanism and parameters share a task and its release."""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.arms import CENTRAL, GROUPED, MENU, RECORD, USUAL_GROUPS, Arm
from protocol.choice_features import default_span
from protocol.decimals import decimal
from protocol.features import default_radius, row_bound
from protocol.grid import exponent
from protocol.messages import Mechanism, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.problem import DRAWN, Problem
from protocol.shaping import SHAPED, default_mechanism, shaping
from protocol.shuffled_terms import ALL, shuffled_mechanism
from protocol.strict import StudyError
from protocol.study import Cell, Study
from protocol.terms import label_epsilon, row_exponent, share
from protocol.trust import Trust
from server.groups import row_groups
from server.task_checks import check_claim
from server.task_shares import counted_on, in_shares

Level = tuple[Decimal | None, Decimal | None]


@dataclass(frozen=True, eq=False)
class Offer:
    """A task (None: nobody is asked) and the arms that its reports serve.

    `parts`: what is asked in its place where sums of groups of rows are released one by one, each row in one of them.
    """

    task: Task | None
    arms: tuple[Arm, ...]
    parts: tuple[Task, ...] = ()

    @property
    def asked(self) -> tuple[Task, ...]:
        """The tasks that are sent."""
        return self.parts or (() if self.task is None else (self.task,))

    def of_curator(self, name: bytes, attempt: int = 0) -> "Offer":
        """The offer with its tasks under the name of a curator's ledger, at an attempt."""
        whole = None if self.task is None else of_curator(self.task, name, attempt)
        return replace(self, task=whole, parts=tuple(of_curator(part, name, attempt) for part in self.parts))


def of_curator(task: Task, name: bytes, attempt: int = 0) -> Task:
    """A task for exact sums under the name of the curator's ledger, at an attempt; without the name where there is
    none. A task for masked sums at an attempt, which another session is about. The task itself where there is no sum.

    Labelers repeat an answer that they paid for. A curator without the ledger that holds its release would add fresh
    noise to the same sum; with another ledger this is another task, which they charge. So is another attempt, which
    whoever wants a second release asks for: of other labelers than answered the first time, for instance.
    """
    if task.trust is Trust.DISTRIBUTED:
        return replace(task, attempt=attempt)
    if task.trust is not Trust.CENTRAL:
        return task
    study = hashlib.sha256(task.study + name).digest() if name else task.study
    return replace(task, study=study, attempt=attempt)


def offers(study: Study, cell: Cell) -> Iterator[Offer]:
    """All tasks of a cell in a fixed order: what needs no claim first, then by epsilon and delta.

    Raises StudyError for a claim that no curator can keep.
    """
    plain = tuple(arm for arm in study.arms if arm.trust is None)
    if plain:
        yield Offer(None, plain)
    shared: dict[tuple[Trust, Mechanism, Level, int], list[Arm]] = {}
    for arm in study.arms:
        for level in _levels(study, arm):
            assert arm.trust is not None
            key = (arm.trust, _mechanism(study, cell, arm, level), level, _groups(arm))
            shared.setdefault(key, []).append(arm)
    for key in sorted(shared, key=lambda key: (key[2][0] or 0, key[2][1] or 0, key[0], key[3])):
        task = _task(study, cell, *key[:3])
        yield Offer(task, tuple(shared[key]), _parts(task, key[3]))


def _groups(arm: Arm) -> int:
    """How many groups of rows a curator releases a sum of; 0 for one sum, and where rows answer for themselves."""
    if arm.trust is not Trust.CENTRAL or arm.estimator not in GROUPED:
        return 0
    chosen = arm.get("groups")
    return int(chosen) if isinstance(chosen, Decimal) else USUAL_GROUPS


def _parts(task: Task, groups: int) -> tuple[Task, ...]:
    if not groups:
        return ()
    try:
        cut = row_groups(task.n, groups)
    except ValueError as error:
        raise StudyError(f"{task.trust.label} task: {error}") from None
    return tuple(replace(task, rows=Runs.of(part)) for part in cut)


def with_ties(task: Task, ties: Ties) -> Task:
    """The task with another rule for ties. Half wins need sums on a grid twice as fine as that of rows.

    A task with noise in shares keeps its grid until that is sized: see `server.task_shares:about`.
    """
    if task.exponent is None or task.trust is Trust.DISTRIBUTED:
        return replace(task, ties=ties)
    return replace(task, ties=ties, exponent=row_exponent(task) - (ties is Ties.HALF))


def for_labelers(task: Task, cap: int, groups: NDArray[np.int32]) -> Task:
    """The task with its claim for labelers, of whom `cap` labels count; `groups` (n,) says whose a row is.

    A randomised label gets its share of the claim. Groups travel where the server needs them: with exact sums.
    """
    asked = replace(task, unit=Unit.LABELER, cap=cap, groups=groups if task.trust is Trust.CENTRAL else None)
    level = label_epsilon(asked)
    assert level is not None
    shares = [level if item.get("epsilon") == task.epsilon else _share(item, cap) for item in task.menu]
    menu = tuple(
        Mechanism.of(item.name, **(dict(item.parameters) | {"epsilon": part}))
        for item, part in zip(task.menu, shares, strict=True)
    )
    return replace(asked, menu=menu)


def _share(mechanism: Mechanism, cap: int) -> Decimal:
    """A label's share of a lower level of a menu."""
    level = mechanism.get("epsilon")
    assert level is not None
    return share(level, cap)


def _levels(study: Study, arm: Arm) -> list[Level]:
    if arm.trust is None:
        return []
    if arm.trust is Trust.CLEAR:
        return [(None, None)]
    if study.population is not None and arm.mechanism == MENU:  # once: the menu has its levels
        return [(study.population.levels[-1], None)]
    if arm.trust is Trust.LOCAL:  # pure: delta of the grid does not enter the task
        return [(epsilon, None) for epsilon in study.grid.epsilon]
    return [(epsilon, delta) for epsilon in study.grid.epsilon for delta in study.grid.delta]


def _mechanism(study: Study, cell: Cell, arm: Arm, level: Level) -> Mechanism:
    epsilon, delta = level
    if epsilon is None:
        return Mechanism("none")
    parameters = {"epsilon": epsilon}
    if delta is not None:
        parameters["delta"] = delta
    shaped = arm.mechanism
    if arm.trust is Trust.DISTRIBUTED:
        shaped = default_mechanism(study.problem)
        parameters |= counted_on(arm)
    if arm.trust is Trust.DISTRIBUTED or CENTRAL.get(arm.mechanism) or arm.mechanism in RECORD:
        radius = arm.get("radius")
        parameters["radius"] = (
            radius if isinstance(radius, Decimal) else decimal(usual_radius(study.problem, cell.n, shaped), "radius")
        )
    ridge = arm.get("ridge")
    if arm.mechanism in RECORD and isinstance(ridge, Decimal):
        parameters["ridge"] = ridge
    if arm.mechanism in RECORD and arm.get("constants") != "paper":
        parameters["tight"] = Decimal(1)
    honest = arm.get("honest")
    if arm.trust is Trust.SHUFFLED and isinstance(honest, Decimal):
        parameters["honest"] = honest
    if arm.get("norm") == "unprojected":
        parameters["unprojected"] = Decimal(1)
    return Mechanism.of(arm.mechanism, **parameters)


def _menu(study: Study, mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """What a task offers: one mechanism, or randomised response at every level of the population, the largest first."""
    if study.population is None or mechanism.name != MENU:
        return (mechanism,)
    return tuple(Mechanism.of("randomized-response", epsilon=level) for level in reversed(study.population.levels))


def usual_radius(problem: Problem, n: int, mechanism: str) -> float:
    """The clipping radius where an arm gives none: the root mean square norm of a row, or span of its choices.

    Rows under the map of shaped noise have the second moments I: sqrt(p).
    """
    if mechanism == SHAPED:
        return math.sqrt(problem.reduced_dimension)
    return default_radius(problem, n) if problem.kind == "pairwise" else default_span(problem, n)


def _task(study: Study, cell: Cell, trust: Trust, mechanism: Mechanism, level: Level) -> Task:
    radius, grid = mechanism.get("radius"), None
    usual = default_mechanism(study.problem) if trust is Trust.DISTRIBUTED else mechanism.name
    shaped = usual == SHAPED
    if trust is Trust.CENTRAL:
        bound = row_bound(study.problem, None if radius is None else float(radius), shaped)
        grid = exponent(cell.n, bound)
    task = Task(
        study=study.fingerprint,
        trust=trust,
        unit=Unit.RECORD if mechanism.name in RECORD else Unit.LABEL,
        problem=study.problem,
        menu=_menu(study, mechanism),
        n=cell.n,
        epsilon=level[0],
        delta=level[1],
        first_repetition=cell.first_repetition,
        repetitions=cell.repetitions,
        exponent=grid,
        map=_map(study.problem, cell.n) if shaped else None,
    )
    if trust is Trust.CENTRAL:
        check_claim(task, mechanism)
    if trust is Trust.DISTRIBUTED:
        task = in_shares(task, mechanism)
    if trust is Trust.SHUFFLED:
        task = _in_groups(task, mechanism)
    return with_ties(task, _ties(study.problem, trust))


def _in_groups(task: Task, mechanism: Mechanism) -> Task:
    """The task with the level of one report, which follows from its smallest group. Raises StudyError."""
    try:
        return replace(task, menu=(shuffled_mechanism(task, mechanism.name, mechanism.get("honest") or ALL),))
    except ValueError as error:
        raise StudyError(f"shuffled task at n = {task.n}: {error}") from None


@lru_cache(maxsize=16)
def _map(problem: Problem, n: int) -> NDArray[np.float64]:
    try:
        return shaping(problem, n)
    except ValueError as error:
        raise StudyError(f"{SHAPED}: {error}") from None


def _ties(problem: Problem, trust: Trust) -> Ties:
    """Labels about given pairs may come from files, with ties: half a win each in clear, a coin under a claim."""
    if problem.features in DRAWN or problem.kind == "choice":
        return Ties.NONE
    return Ties.HALF if trust is Trust.CLEAR else Ties.COIN
