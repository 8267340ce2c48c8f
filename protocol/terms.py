"""The terms of a task, derived alike by client and server: what one label goes through, pays, and is summed on."""

from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache

from protocol.channel import TOTAL, DiscreteChannel
from protocol.choice_law import choice_law
from protocol.mechanisms import channel
from protocol.mechanisms.randomized_response import k_randomized_response
from protocol.messages import Mechanism, Task, Ties
from protocol.privacy import Unit
from protocol.shuffled_terms import report_mechanism
from protocol.trust import Trust

VALUES = 2  # a preference is one of two
TIE = VALUES  # a label that names no winner: beside 0 and 1, at the labeler and in symbols of three values
SHARE_DIGITS = 40
_DOWN = Context(prec=SHARE_DIGITS, rounding=ROUND_FLOOR)
_EXACT = Context(prec=256)


def only_mechanism(task: Task) -> Mechanism:
    """The mechanism of a task that offers one: what all its reports went through.

    Raises ValueError for a menu of several: no channel, scale or level holds for all of its reports.
    """
    if len(task.menu) != 1:
        raise ValueError(f"expected a task with one mechanism in its menu, got {len(task.menu)}: ask a task for each")
    return task.menu[0]


def law(task: Task, mechanism: Mechanism) -> DiscreteChannel:
    """The channel that one label of a local task goes through.

    Under `Ties.COIN` it has a row for ties, under `Ties.RANDOMIZED` a row and a symbol: see `three_way`.

    Guarantee: the level is that of the mechanism alone; unit: one label; neighbours: replace one label, ties included.
    Raises ValueError for a mechanism that is unknown, or has more than two outcomes beside ties.
    """
    return _law(report_mechanism(task, mechanism), task.ties)


def with_coin(two: DiscreteChannel) -> DiscreteChannel:
    """A channel of two values with one more, the tie: P(symbol | tie) = 1/2, in one draw.

    Exactly the law of a fair coin for the winner, followed by a symmetric channel. Each count of the tie's row, 2^62,
    lies between the other two of its column, so `level` stays what it was.

    Raises ValueError for a table that is not 2 by 2 and symmetric. Source: derived, see docs/PRIVACY.md.

    >>> from protocol.mechanisms.randomized_response import randomized_response
    >>> binary = randomized_response(Decimal(1))
    >>> with_coin(binary).level == binary.level
    True
    """
    if len(two.table) != 2 or two.table[0] != two.table[1][::-1]:
        raise ValueError(f"expected a symmetric channel of two values for ties, got {len(two.table)} rows")
    return DiscreteChannel((*two.table, (TOTAL // 2, TOTAL // 2)))


def three_way(mechanism: Mechanism) -> DiscreteChannel:
    """Randomised response of a label with three values, the third a tie: P(symbol | value) = p if equal, else q.

    p = e^epsilon / (e^epsilon + 2) and q = 1 / (e^epsilon + 2), rounded as `k_randomized_response` rounds them. With
    y = 1/2 for a tie, on both sides, E[y reported] - 1/2 = (p - q) (y - 1/2).

    Guarantee: epsilon-label-LDP; unit: one label; neighbours: replace one label, ties included.
    Raises ValueError for another mechanism than randomised response with an epsilon.
    Source: Warner 1965, of three values; de-biasing: derived, see docs/ESTIMATORS.md.

    >>> three_way(Mechanism.of("randomized-response", epsilon=Decimal(1))).outcomes
    3
    """
    level = mechanism.get("epsilon")
    if mechanism.name != "randomized-response" or level is None or len(mechanism.parameters) != 1:
        raise ValueError(f"expected randomized-response with an epsilon for randomised ties, got {mechanism.name!r}")
    return k_randomized_response(level, VALUES + 1)


def share(epsilon: Decimal, cap: int) -> Decimal:
    """epsilon / cap, rounded down to 40 digits: `cap` labels at this level together cost at most epsilon.

    >>> 3 * share(Decimal(1), 3) <= 1
    True
    """
    return _DOWN.divide(epsilon, Decimal(cap))


def label_epsilon(task: Task) -> Decimal | None:
    """The level of one label's own release; None without a claim.

    That of the task, but under a local claim for a labeler the `share` of each of the labels that count.
    """
    if task.epsilon is None or task.trust is not Trust.LOCAL or task.unit is not Unit.LABELER:
        return task.epsilon
    return share(task.epsilon, task.cap)


def claim_of(task: Task, mechanism: Mechanism) -> Decimal | None:
    """What the task's unit pays at most where its labels go through this mechanism of the menu; None without a claim.

    The task's epsilon, or less: a menu offers a labeler lower levels. At the unit LABELER a local level counts for each
    of `cap` labels.
    """
    level = mechanism.get("epsilon")
    if task.epsilon is None or level is None or level == label_epsilon(task):
        return task.epsilon
    labelers = task.unit is Unit.LABELER and task.trust is Trust.LOCAL
    return _EXACT.multiply(level, Decimal(task.cap)) if labelers else level


def computed_level(task: Task, mechanism: Mechanism) -> Decimal:
    """The level of a report by itself, read off the table that its label goes through: times `cap` for a labeler.

    That of a local task's claim; of a shuffled task it is above the claim, and what is left of it without the shuffler.
    """
    asked = law(task, mechanism) if task.problem.kind == "pairwise" else choice_law(task, mechanism)
    level = asked.level
    return _EXACT.multiply(level, Decimal(task.cap)) if task.unit is Unit.LABELER else level


def row_exponent(task: Task) -> int:
    """The exponent of the grid of rows in a task for exact sums: with half wins, sums are on a grid twice as fine.

    Raises ValueError for a task without a grid.
    """
    if task.exponent is None:
        raise ValueError("expected a task with the exponent of a grid, got none")
    return task.exponent + (task.ties is Ties.HALF)


@lru_cache(maxsize=256)
def _law(mechanism: Mechanism, ties: Ties) -> DiscreteChannel:
    if ties is Ties.RANDOMIZED:
        return three_way(mechanism)
    plain = channel(mechanism.name, dict(mechanism.parameters))
    return with_coin(plain) if ties is Ties.COIN else plain
