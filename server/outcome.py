"""What a round says in the end: an estimate with its interval, its claim and its warnings."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from protocol import terms
from protocol.arms import UNPROVEN, Arm
from protocol.channel import TOTAL
from protocol.counting import counted
from protocol.features import full
from protocol.messages import Coins, Task, Ties
from protocol.numerics import fingerprint
from protocol.privacy import Guarantee
from protocol.problem import Problem
from protocol.study import Study
from protocol.trust import RANDOMIZED, Trust
from protocol.warned import warn
from server.estimators.base import Estimate
from server.evidence import Heard

Vector = NDArray[np.float64]
PROTECTS_NOBODY = Decimal(40)
NORMAL_QUANTILE = 1.959963984540054
ON_THE_BALL = warn("on-the-ball", "the estimate lies on the border of the ball, which says how long it is")


@dataclass(frozen=True, eq=False)
class Outcome:
    """One arm's estimate of one repetition, with its claim. theta, ci_low, ci_high have shape (dimension,).

    levels: (epsilon of a mechanism, rows that answered through it), increasing, where a menu offered several: the claim
    is then what it is at most, and a row's own level is that of its mechanism.
    """

    arm: Arm
    n: int
    repetition: int
    epsilon: Decimal | None
    delta: Decimal | None
    theta: Vector = field(repr=False)
    ci_low: Vector | None = field(repr=False)
    ci_high: Vector | None = field(repr=False)
    hit_boundary: bool
    claim: Guarantee | None
    computed_epsilon: Decimal | None
    coins: str | None
    warnings: tuple[str, ...]
    levels: tuple[tuple[Decimal, int], ...] = ()


def outcomes(study: Study, arm: Arm, repetition: int, heard: Heard, estimate: Estimate) -> Iterator[Outcome]:
    """The outcome of an arm that was answered; a pure claim is repeated for every delta of the grid."""
    task = heard.task
    if arm.estimator in UNPROVEN and heard.collected.coins is not Coins.ADDRESSED:
        raise ValueError(f"expected simulated labels for {arm.estimator}, which makes no claim, got others")
    theta, low, high = interval(study.problem, estimate)
    claim = None
    if task.epsilon is not None:
        claim = Guarantee(task.epsilon, task.delta or Decimal(0), task.unit)
    pure = task.trust is Trust.LOCAL
    for delta in study.grid.delta if pure and study.grid.delta else (task.delta,):
        yield Outcome(
            arm=arm,
            n=task.n,
            repetition=repetition,
            epsilon=task.epsilon,
            delta=delta,
            theta=theta,
            ci_low=low,
            ci_high=high,
            hit_boundary=estimate.hit_boundary,
            claim=claim,
            computed_epsilon=computed_level(heard),
            coins=None if heard.collected.coins is None else heard.collected.coins.label,
            warnings=(
                *estimate.warnings,
                *_of_estimate(estimate, low),
                *few_rows(task.problem, len(heard.collected.rows)),
                *warnings(heard),
            ),
            levels=levels(heard),
        )


def trivial(arm: Arm, n: int, repetition: int, problem: Problem) -> Outcome:
    """The answer of somebody who asks nobody: theta = 0."""
    return Outcome(arm, n, repetition, None, None, np.zeros(problem.dimension), None, None, False, None, None, None, ())


def computed_level(heard: Heard) -> Decimal | None:
    """The level read off the integer tables that clients executed, the largest; None without tables.

    Of a shuffled task that of one report, which is above its claim.
    """
    task = heard.task
    if task.trust not in RANDOMIZED:
        return None
    return max(terms.computed_level(task, task.menu[way]) for way in _used(heard))


def levels(heard: Heard) -> tuple[tuple[Decimal, int], ...]:
    """How many rows answered at which level of a menu of several; reports name their mechanisms, so it is public."""
    task, ways = heard.task, heard.collected.ways
    if ways is None:
        return ()
    found: Counter[Decimal] = Counter()
    for way in _used(heard):
        found[task.menu[way].get("epsilon") or Decimal(0)] += int((ways == way).sum())
    return tuple(sorted(found.items()))


def _used(heard: Heard) -> list[int]:
    ways = heard.collected.ways
    return [0] if ways is None else np.unique(ways).tolist()


def asked_rows(task: Task) -> int:
    """How many rows a task asks for."""
    return task.n if task.rows is None else task.rows.count


def _of_estimate(estimate: Estimate, low: Vector | None) -> list[str]:
    """Where the estimate lies, and whether its covariance gives no interval."""
    found = [ON_THE_BALL] if estimate.hit_boundary else []
    if estimate.covariance is not None and low is None:
        found.append(warn("singular", "a coordinate's variance is not positive: there is no interval"))
    return found


def few_rows(problem: Problem, answered: int) -> list[str]:
    """Whether there are fewer answers than free parameters; each record says something of all coordinates of a mean."""
    free = 1 if problem.model == "mean" else problem.reduced_dimension
    if answered * (problem.choices - 1) >= free:
        return []
    return [warn("few-rows", f"{counted(answered, 'answer')} for {counted(free, 'free parameter')}")]


def flipped(task: Task) -> str:
    """How often a label's report is not the label, in words, of a local task about pairs; empty for other tasks.

    Of randomised ties that is any of the three values for another.
    """
    if task.trust is not Trust.LOCAL or task.problem.kind != "pairwise":
        return ""
    kept = min(terms.law(task, way).table[0][0] for way in task.menu)
    most = "" if len(task.menu) == 1 else " at most"
    changed = "reported as another value" if task.ties is Ties.RANDOMIZED else "flipped"
    return f"a label is {changed} with probability{most} {(TOTAL - kept) / TOTAL:.2g}"


def warnings(heard: Heard) -> list[str]:
    """What a reader of the estimate has to know about the answers it came from."""
    found = []
    if heard.task.epsilon is not None and heard.task.epsilon > PROTECTS_NOBODY:
        often = flipped(heard.task)
        nobody = f"epsilon above {PROTECTS_NOBODY} protects nobody{often and f': {often}'}"
        found.append(warn("protects-nobody", nobody))
    if heard.collected.rejected:  # somebody may have answered in another's place
        whose = ", ".join(sorted(heard.collected.blamed))
        rejected = f"{counted(len(heard.collected.rejected), 'report')} rejected{whose and f' ({whose})'}"
        found.append(warn("reports-rejected", rejected))
    if len(heard.collected.rows) < asked_rows(heard.task):
        found.append(warn("rows-missing", f"{len(heard.collected.rows)} of {asked_rows(heard.task)} rows answered"))
    if heard.collected.numerics - {fingerprint()}:
        found.append(warn("numerics", "clients with another numerics fingerprint: last bits may differ"))
    return found


def interval(problem: Problem, estimate: Estimate) -> tuple[Vector, Vector | None, Vector | None]:
    """theta and its 95 % interval, theta_j +- 1.96 sqrt([Q C Q^T]_jj), or from quantile to quantile of replicas.

    None where neither is known, or a variance is not positive. Of r replicas the k-th smallest and largest,
    k = (r + 1) / 40.
    """
    theta = full(problem, estimate.u)
    if estimate.replicas is not None:
        ordered = np.sort(full(problem, estimate.replicas), axis=0)
        outside = (len(ordered) + 1) // 40 - 1
        return theta, ordered[outside], ordered[-1 - outside]
    if estimate.covariance is None:
        return theta, None, None
    variance = full(problem, full(problem, estimate.covariance).T).diagonal()  # of Q C Q^T
    if not (variance > 0.0).all():
        return theta, None, None
    half = NORMAL_QUANTILE * np.sqrt(variance)
    return theta, theta - half, theta + half
