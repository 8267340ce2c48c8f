"""From collected reports to what an estimator sees of one repetition."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from protocol.channel import TOTAL, DiscreteChannel
from protocol.coins import Address, Stream
from protocol.features import row_bound
from protocol.grid import exponent, to_integers
from protocol.messages import Task
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.terms import VALUES, law, only_mechanism, row_exponent
from protocol.trust import RANDOMIZED, Trust
from server.collect import Collected
from server.curator import Curator, SimulatedCurator
from server.designs import Designs
from server.estimators.base import Evidence, wins
from server.estimators.mixed import Channel
from server.estimators.row_sums import product_over_rows
from server.release_record import ReleaseRequest, in_real_units


@dataclass(frozen=True)
class Server:
    """What a server holds: public features, the seed of drawn ones, a curator for central tasks, and which release of
    it is asked for: the first one is attempt 0.
    """

    features: FeatureStore
    seed: int
    curator: Curator | None = None
    attempt: int = 0

    @property
    def curator_name(self) -> bytes:
        """The name of the curator's ledger; empty where there is none."""
        return b"" if self.curator is None else self.curator.name

    def designs(self, problem: Problem, n: int, repetition: int) -> Designs:
        """The public features of one repetition."""
        return Designs(self.features, self.seed, problem, n, repetition)


@dataclass(frozen=True)
class Heard:
    """A task, its id, and what was collected for it; `parts` where it was asked group by group."""

    task: Task
    task_id: bytes
    collected: Collected
    parts: tuple["Heard", ...] = ()


def evidence(server: Server, heard: Heard, designs: Designs) -> Evidence:
    """Evidence of the repetition that `designs` belongs to; in the central model this commits the noisy sum first."""
    if heard.parts:
        return _by_group(server, heard, designs)
    if heard.task.trust is Trust.CENTRAL:
        return _released(server, heard, designs)
    task, collected = heard.task, heard.collected
    design = designs.get(exponent(task.n, row_bound(task.problem, None)), None, answered_rows(heard))
    assert collected.symbols is not None
    symbols = collected.symbols[designs.repetition - task.first_repetition]
    local = task.trust in RANDOMIZED
    contrast, flip, third = channel_of(law(task, only_mechanism(task))) if local else Channel(1.0, 0.0)
    # On the grid, halves included: exact, in whatever order a library adds.
    half_sum = product_over_rows(design.rows, wins(symbols)) - 0.5 * design.total
    coins = Address(server.seed, Stream.BOOTSTRAP, task.n, designs.repetition)
    return Evidence(design.rows, None, symbols, half_sum, contrast, flip, 0.0, design.features, coins, third=third)


def channel_of(asked: DiscreteChannel) -> Channel:
    """What estimators know of a table: of two symbols its contrast and flip; of three, ties among them, see `Evidence`.

    Raises ValueError for a table of more symbols.
    """
    keep, other = asked.table[0][:2]
    if asked.outcomes > VALUES + 1:
        raise ValueError(f"expected a table of two symbols, or three with ties, got {asked.outcomes}")
    contrast, q = (keep - other) / TOTAL, other / TOTAL
    return Channel(contrast, q) if asked.outcomes == VALUES else Channel(contrast, 1.5 * q, q)


def _released(server: Server, heard: Heard, designs: Designs) -> Evidence:
    task, radius = heard.task, only_mechanism(heard.task).get("radius")
    place = (row_exponent(task), None if radius is None else float(radius), answered_rows(heard))
    design = designs.get(*place, task.groups, task.map)
    total, stddev = released_sum(server, heard, designs.repetition, designs.sensitivity_squared(task, design))
    half_sum = design.returned(total - 0.5 * design.total)
    return Evidence(
        design.seen, design.weights, None, half_sum, 1.0, 0.0, stddev, design.features, noise_factor=design.back
    )


def _by_group(server: Server, heard: Heard, designs: Designs) -> Evidence:
    """One release for each group of rows; a label is in one of them, so that it pays for one."""
    parts = [_released(server, part, designs) for part in heard.parts]
    weights = [part.weights for part in parts if part.weights is not None]
    sums = np.array([part.half_sum for part in parts])
    return replace(
        parts[0],
        rows=np.concatenate([part.rows for part in parts]),
        weights=np.concatenate(weights) if weights else None,
        half_sum=np.array([math.fsum(column) for column in sums.T]),
        noise_stddev=math.sqrt(math.fsum(part.noise_stddev**2 for part in parts)),
        features=None,
        group_sums=sums,
    )


def joined(task: Task, heard: Sequence[Heard]) -> Heard:
    """What was heard about a task that was asked in parts, which share no row; of one part, that one."""
    if len(heard) == 1:
        return heard[0]
    collected = [one.collected for one in heard]
    coins = [one.coins for one in collected if one.coins is not None]
    whole = replace(
        collected[0],
        rows=np.sort(np.concatenate([one.rows for one in collected])),
        sums=None,
        accepted=tuple(name for one in collected for name in one.accepted),
        coins=max(coins) if coins else None,
        live=any(one.live for one in collected),
        numerics=frozenset[bytes]().union(*(one.numerics for one in collected)),
        refusals=sum((one.refusals for one in collected), Counter()),
        rejected=tuple(reason for one in collected for reason in one.rejected),
        blamed=frozenset[str]().union(*(one.blamed for one in collected)),
    )
    return Heard(task, heard[0].task_id, whole, tuple(heard))


def released_sum(
    server: Server, heard: Heard, repetition: int, sensitivity_squared: int
) -> tuple[NDArray[np.float64], float]:
    """The curator's noisy sum of one repetition, and the standard deviation of its noise, in units of the features.

    Guarantee: that of the task, given a bound on how far its unit moves the sum, in units of the task's grid; the
    release is committed before it is seen, and a later call gets the same one.
    Raises ValueError without a curator, for a simulated one where labels are real, and where the committed release has
    other reports.
    """
    task, collected = heard.task, heard.collected
    if server.curator is None:
        raise ValueError("expected a server with a curator for a central task, got none")
    check_curator(server.curator, heard)
    assert (
        collected.sums is not None and task.exponent is not None and task.epsilon is not None and task.delta is not None
    )
    mechanism = only_mechanism(task)
    request = ReleaseRequest(
        task=heard.task_id,
        repetition=repetition,
        accepted=tuple(collected.accepted),
        count=len(collected.rows),
        exponent=task.exponent,
        sensitivity_squared=sensitivity_squared,
        mechanism=mechanism.name,
        epsilon=task.epsilon,
        delta=task.delta,
        unit=task.unit,
        cap=task.cap,
    )
    sums = to_integers(collected.sums[repetition - task.first_repetition], task.exponent)
    release = server.curator.release(task, request, [int(value) for value in sums])
    if release.request.accepted != request.accepted:
        raise ValueError("expected the reports of the committed release, got others: ask with a new attempt number")
    return in_real_units(release), float(release.stddev) * 2.0**task.exponent


def check_curator(curator: Curator | None, heard: Heard) -> None:
    """Raise ValueError for a simulated curator, whose noise hides nothing, of sums from clients that are not."""
    if heard.task.trust is Trust.CENTRAL and heard.collected.live and isinstance(curator, SimulatedCurator):
        raise ValueError("expected a curator with a ledger for clients that are not simulated, got a simulated one")


def answered_rows(heard: Heard) -> NDArray[np.int64] | None:
    """The rows answered for: all that were asked (the round is complete), None where these are all n."""
    return None if len(heard.collected.rows) == heard.task.n else heard.collected.rows
