"""What this client understands of a task, and the mechanisms of its menu that it may use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from client.policy import Policy
from protocol.arms import CENTRAL, DISTRIBUTED, MECHANISMS, RECORD
from protocol.choice_law import CHOICE_LOCAL, Channel, choice_law
from protocol.decimals import delta, epsilon
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.mechanisms import LOCAL
from protocol.messages import Mechanism, Task, Ties
from protocol.noise.terms import terms_of
from protocol.numeric.channel import NumericChannel
from protocol.privacy import Unit
from protocol.record_terms import Bounded
from protocol.shaping import LARGEST_ENTRY, SHAPED
from protocol.shuffled_terms import check_shuffled
from protocol.terms import VALUES, label_epsilon, law, row_exponent
from protocol.trust import SIGHT, Trust

NONE = Mechanism("none")
COARSEST = 900
MOST_OFFERS = 64


class TaskInvalid(Exception):
    """The task contradicts itself, or asks for something that this client does not understand."""


@dataclass(frozen=True)
class Choice:
    """A mechanism that this client can execute: with a `channel` under a local claim, a `radius` where rows clip.

    Of records: how gradients are `bounded`, and under a local claim the `numeric` channel that they go through.
    """

    mechanism: Mechanism
    channel: Channel | None = None
    radius: float | None = None
    bounded: Bounded | None = None
    numeric: NumericChannel | None = None


def understand(task: Task) -> None:
    """Raise TaskInvalid for a task with a part that nothing here acts on: ignoring it could break a claim."""
    of_records = (task.theta, task.centre, task.coordinates)
    modulus = bool(task.modulus) is not (task.trust is Trust.DISTRIBUTED)
    if task.round or any(part is not None for part in of_records) or task.cohort or modulus:
        raise TaskInvalid(
            "expected one round without theta, centre, coordinates and cohort, and a modulus where sums are masked"
        )
    if task.trust not in SIGHT:
        raise TaskInvalid(f"expected a trust model of today, got {task.trust}")
    if task.ties is Ties.HALF and task.trust is Trust.LOCAL:
        raise TaskInvalid("expected ties of a local task to be coins, or randomised: half a win has no channel")
    if task.ties is Ties.RANDOMIZED and task.trust is not Trust.LOCAL:
        raise TaskInvalid("expected randomised ties in a local task only: nothing else here is randomised by a table")
    if task.problem.kind != "pairwise" and (
        task.ties is not Ties.NONE or task.groups is not None or task.map is not None
    ):
        raise TaskInvalid("expected no ties among top choices, and plain sums of them protected for a label")
    _understand_unit(task)
    claims, sums = task.trust is not Trust.CLEAR, task.trust in (Trust.CENTRAL, Trust.DISTRIBUTED)
    failing = task.trust in (Trust.CENTRAL, Trust.DISTRIBUTED, Trust.SHUFFLED)
    if (task.epsilon is not None) != claims or (task.delta is not None) != failing:
        raise TaskInvalid("expected epsilon exactly under a claim, and delta exactly where noise or a crowd hides it")
    if sums and task.exponent is None:
        raise TaskInvalid("expected the exponent of the grid of exact sums")
    _understand_map(task)
    if task.rows is not None and _last(task) >= task.n:
        raise TaskInvalid(f"expected rows below {task.n}")
    if not (_valid(epsilon, task.epsilon) and _valid(delta, task.delta)):
        raise TaskInvalid("expected epsilon and delta in their ranges")
    _understand_menu(task)


def executable(task: Task) -> dict[Mechanism, Choice]:
    """The mechanisms of the menu that this program knows how to execute. Raises TaskInvalid for wrong parameters."""
    return {item: choice for item in task.menu if (choice := _executable(task, item)) is not None}


def choose(task: Task, choices: Mapping[Mechanism, Choice], policy: Policy) -> tuple[Choice, ...]:
    """Those of the `executable` ones that this client may use, whatever its labels are, the preferred one first.

    Out of several local ones each labeler uses one: `client.levels` and `client.picking` say which.
    """
    if task.trust is Trust.CLEAR:
        return (choices[NONE],) if NONE in choices else ()
    ordered = tuple(choices[item] for item in policy.order(tuple(choices)))
    return ordered if task.trust is Trust.LOCAL else ordered[:1]


def check_grid(task: Task, radius: float | None) -> int:
    """The exponent of a task's rows, where every sum of n of them is exact. Raises TaskInvalid otherwise."""
    try:
        least = exponent(task.n, row_bound(task.problem, radius, task.map is not None))
    except ValueError as error:
        raise TaskInvalid(f"expected features that fit a grid: {error}") from None
    if task.exponent is None or not least <= row_exponent(task) <= COARSEST:
        raise TaskInvalid(f"expected an exponent of rows in {least}..{COARSEST}, got {task.exponent} for sums")
    return row_exponent(task)


def _understand_unit(task: Task) -> None:
    """Labelers are protected under a claim, by a cap; a sum, by groups as well."""
    labelers = task.unit is Unit.LABELER
    if {item.name in RECORD for item in task.menu} != {task.unit is Unit.RECORD}:
        raise TaskInvalid("expected the unit record exactly for mechanisms that protect records")
    if task.unit is Unit.RECORD and (task.trust is not Trust.CENTRAL or task.problem.kind != "pairwise"):
        raise TaskInvalid("expected records of pairs to be protected by a curator")
    if task.trust is Trust.SHUFFLED and (task.unit is not Unit.LABEL or task.ties not in (Ties.NONE, Ties.COIN)):
        raise TaskInvalid("expected shuffled reports to protect a label each, a tie by a coin")
    if labelers and task.trust is Trust.CLEAR:
        raise TaskInvalid(f"expected the unit label, or labeler under a claim, got {task.unit}")
    if bool(task.cap) != labelers or (task.groups is not None) != (labelers and task.trust is Trust.CENTRAL):
        raise TaskInvalid("expected a cap exactly at the unit labeler, and groups exactly for its exact sums")


def _understand_menu(task: Task) -> None:
    """A menu is at the level that the task leaves for a label; a local one may offer lower levels beside it."""
    most, levels = label_epsilon(task), [item.get("epsilon") for item in task.menu]
    if most not in levels or len(levels) > MOST_OFFERS:
        raise TaskInvalid(f"expected a menu of 1..{MOST_OFFERS} up to the epsilon that the task leaves for a label")
    if task.trust is Trust.LOCAL and task.problem.kind == "pairwise":
        beyond = any(level is None or most is None or level > most or not _valid(epsilon, level) for level in levels)
    else:
        beyond = any(level != most for level in levels)
    if beyond:
        raise TaskInvalid("expected no mechanism of the menu beyond the epsilon that the task leaves for a label")


def _understand_map(task: Task) -> None:
    """A map of rows goes with shaped noise, and only with it: then every mechanism of the menu asks for it."""
    masked = task.trust is Trust.DISTRIBUTED  # there noise may be shaped in any law
    if not masked and {item.name == SHAPED for item in task.menu} != {task.map is not None}:
        raise TaskInvalid("expected a map exactly where noise is shaped")
    if task.map is None:
        return
    if (
        task.trust not in (Trust.CENTRAL, Trust.DISTRIBUTED)
        or task.problem.kind != "pairwise"
        or np.abs(task.map).max() > LARGEST_ENTRY
    ):
        raise TaskInvalid("expected a map of moderate size for exact sums about pairs")


def _executable(task: Task, item: Mechanism) -> Choice | None:
    """How this client executes a mechanism of the menu; None where it does not know it."""
    if task.trust is Trust.CLEAR:
        return Choice(item) if item == NONE else None
    if task.trust is Trust.SHUFFLED:
        return _shuffled(task, item)
    if task.trust is Trust.DISTRIBUTED:
        return _in_shares(task, item)
    if task.trust is Trust.LOCAL:
        pairs = task.problem.kind == "pairwise"
        if item.name not in (LOCAL if pairs else CHOICE_LOCAL) or item.get("outcomes") not in (None, VALUES):
            return None
        level = item.get("epsilon")
        try:
            channel: Channel = law(task, item) if pairs else choice_law(task, item)
        except ValueError as error:
            raise TaskInvalid(f"expected parameters of {item.name}: {error}") from None
        if level is None or channel.level > level:
            raise TaskInvalid("expected a table within its level")
        return Choice(item, channel=channel)
    if item.name not in MECHANISMS[Trust.CENTRAL, task.problem.kind]:
        return None
    names, radius = {name for name, _ in item.parameters}, item.get("radius")
    more = {"ridge", "tight"} if item.name in RECORD else {"unprojected"}
    if names - more != {"epsilon", "delta"} | ({"radius"} if CENTRAL.get(item.name, True) else set()):
        raise TaskInvalid(f"expected other parameters for {item.name}, got {sorted(names)}")
    if item.get("delta") != task.delta or (radius is not None and radius <= 0):
        raise TaskInvalid("expected the delta of the task, and a radius > 0")
    return Choice(item, radius=None if radius is None else float(radius))


def _in_shares(task: Task, item: Mechanism) -> Choice | None:
    """Noise in shares: only where that of the rows that the task counts on keeps its claim."""
    if item.name not in DISTRIBUTED:
        return None
    try:
        return Choice(item, radius=terms_of(task, item).radius)
    except ValueError as error:
        raise TaskInvalid(f"expected parameters of {item.name}: {error}") from None


def _shuffled(task: Task, item: Mechanism) -> Choice | None:
    """Randomised response whose level is that of one report: only where its group keeps the task's claim."""
    if item.name not in MECHANISMS[Trust.SHUFFLED, task.problem.kind]:
        return None
    try:
        check_shuffled(task, item)
        channel: Channel = law(task, item) if task.problem.kind == "pairwise" else choice_law(task, item)
    except ValueError as error:
        raise TaskInvalid(f"expected parameters of {item.name}: {error}") from None
    local = item.get("local")
    if local is None or channel.level > local:
        raise TaskInvalid("expected a table within its level")
    return Choice(item, channel=channel)


def _valid(read: Callable[[Decimal], Decimal], value: Decimal | None) -> bool:
    try:
        return value is None or read(value) == value
    except ValueError:
        return False


def _last(task: Task) -> int:
    assert task.rows is not None
    start, step, count = task.rows.runs[-1]
    return start + step * (count - 1)
