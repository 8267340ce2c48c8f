"""What the answers to one task let out about a row: Gaussian noise, a pure level, a selection, or a whole claim."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from protocol.arms import RECORD
from protocol.messages import Mechanism, Task
from protocol.numeric.gaussian_noise import GaussianNoise
from protocol.numeric.spheres import SLACK
from protocol.record_arms import EXCEEDANCES
from protocol.record_terms import Bounded, channel_of
from protocol.terms import computed_level
from protocol.trust import Trust
from server.mechanisms import CENTRAL
from server.mechanisms.composition import exact_noise_multiplier
from server.mechanisms.discrete_gaussian import up
from server.mechanisms.rounds import ROUNDS
from server.mechanisms.selection_rounds import shared_rounds
from server.mechanisms.selections import SELECTIONS


@dataclass(frozen=True)
class Peeled:
    """`count` choices by Laplace noise of one `scale` at sensitivity 1, each with its value."""

    count: int
    scale: float


@dataclass(frozen=True)
class Release:
    """What one release says of a row, by at least one of these; all are rounded against the claim.

    `multiplier`: stddev / sensitivity of Gaussian noise. `pure`: a level at delta = 0. `rho`: of zero-concentrated
    privacy, where it is neither Gaussian noise nor known by its pure level alone. `peeled`: how it was chosen.
    `level`: what the task itself claims, of which a claim that is known as a whole (`delta` > 0) has nothing else.
    """

    level: float
    delta: Decimal = Decimal(0)
    multiplier: float | None = None
    pure: float | None = None
    rho: float | None = None
    peeled: Peeled | None = None


def release(task: Task) -> Release:
    """What a task lets out, by the parameters from which its noise is made."""
    mechanism, level, delta = task.menu[0], _up(task.epsilon), task.delta or Decimal(0)
    if task.trust is Trust.LOCAL:
        return _local(task, level, delta)
    shares, records = task.trust is Trust.DISTRIBUTED, task.problem.kind == "records"
    if task.trust is Trust.SHUFFLED or (shares and not records):  # their curves are proved at the claim alone
        return Release(level, delta)
    if shares:  # held to the curve of Gaussian noise that keeps the claim of all rounds
        assert task.epsilon is not None
        return Release(level, delta, exact_noise_multiplier(task.epsilon, delta, Bounded.of(mechanism).rounds))
    if mechanism.name in RECORD:
        return Release(level, delta)
    if mechanism.name == EXCEEDANCES:
        return Release(level, pure=level)
    if mechanism.name in SELECTIONS:
        return _selected(task, mechanism, level, delta)
    assert task.epsilon is not None and task.delta is not None
    if mechanism.name in ROUNDS:
        multiplier = ROUNDS[mechanism.name](task.epsilon, task.delta, Bounded.of(mechanism).rounds)
    else:
        multiplier = CENTRAL[mechanism.name].noise_multiplier(task.epsilon, task.delta)
    return Release(level, delta, multiplier=multiplier)


def _local(task: Task, level: float, delta: Decimal) -> Release:
    """The level of the channel as it is executed: of a menu, the largest."""
    if task.problem.kind != "records":
        return Release(level, pure=max(_up(computed_level(task, one)) for one in task.menu))
    channel = channel_of(task.menu[0])
    if isinstance(channel, GaussianNoise):
        moved = 2 * channel.bound * (1 + SLACK)
        return Release(level, delta, multiplier=math.nextafter(channel.stddev / moved, 0.0))
    return Release(level, pure=_up(channel.level))


def _selected(task: Task, mechanism: Mechanism, level: float, delta: Decimal) -> Release:
    """One of the rounds that share the claim."""
    rounds, sparsity = Bounded.of(mechanism).rounds, mechanism.get("sparsity")
    assert task.epsilon is not None and sparsity is not None
    made = shared_rounds(mechanism.name, task.epsilon, task.delta, int(sparsity), rounds, mechanism.get("split"))
    pure = None if math.isinf(made.cost.pure) else math.nextafter(made.cost.pure / rounds, math.inf)
    peeled = Peeled(int(sparsity), made.scale) if mechanism.name.startswith("peeling") else None
    return Release(level, delta, pure=pure, rho=math.nextafter(made.cost.rho / rounds, math.inf), peeled=peeled)


def _up(level: Decimal | None) -> float:
    """A double that is not below a level, and equal where there is one."""
    nearest = float(level or 0)
    return nearest if level is None or Decimal(nearest) >= level else up(Fraction(level))
