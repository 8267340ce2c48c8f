"""From the estimates of a world to its policies, what they lose, and the theorems that bound the loss."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from protocol.arms import Arm
from protocol.coins import Floats
from protocol.decimals import decimal
from protocol.failure import RunFailed
from protocol.features import default_radius, norms
from protocol.trust import Trust
from server.estimators.features import Features
from server.mechanisms import CENTRAL
from server.policies import GREEDY, PESSIMISTIC
from server.policies.choice import Actions
from server.policies.region import Region, inner, wald_region
from server.policies.spread import Spread, of_likelihood, of_score
from studies.policy.study_file import PolicyStudy
from studies.policy.worlds import World
from studies.results import SCHEMA as RESULTS

SCHEMA = pa.schema(
    [
        pa.field("shown", pa.string(), nullable=False),
        pa.field("world", pa.int64(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("epsilon", pa.float64()),
        pa.field("delta", pa.float64()),
        pa.field("trust", pa.string(), nullable=False),
        pa.field("arm", pa.string(), nullable=False),
        pa.field("repetition", pa.int64(), nullable=False),
        pa.field("policy", pa.string(), nullable=False),
        pa.field("suboptimality", pa.float64(), nullable=False),
        pa.field("bound", pa.float64(), nullable=False),
        pa.field("covered", pa.bool_()),
        pa.field("radius", pa.float64()),
        pa.field("hit_boundary", pa.bool_(), nullable=False),
        RESULTS.field("warnings"),
        pa.field("actions", pa.list_(pa.int64()), nullable=False),
    ]
)
ROUNDING, SMALLEST = 1e-9, 1e-300
# Central mechanisms whose noise is the same in every direction, so that its spread is known from the longest row.
_ON_THE_SUM = frozenset({"objective-perturbation-paper", "gaussian-statistic", "gaussian-statistic-clipped"})


@dataclass(frozen=True, eq=False)
class Seen:
    """The first n rows, which all arms saw, weighted where they are clipped; `longest` is their largest norm."""

    features: Features
    longest: float


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges the estimates of one world."""

    study: PolicyStudy
    world: World

    def rows(self, results: pa.Table) -> Iterator[dict[str, Any]]:
        """One row per estimate and policy; an arm without a known spread has a greedy policy only.

        Raises RunFailed where a theorem about the loss is broken: that would be a fault of this program.
        """
        arms = {arm.name: arm for arm in self.world.loaded.study.arms}
        prefixes: dict[tuple[int, float | None], Seen] = {}
        for row in results.to_pylist():
            arm = arms[row["arm"]]
            key = (row["n"], _radius(self.world, arm, row["n"]))
            if key not in prefixes:
                prefixes[key] = _seen(self.world, *key)
            yield from self._of_estimate(row, arm, prefixes[key])

    def _of_estimate(self, row: Mapping[str, Any], arm: Arm, seen: Seen) -> Iterator[dict[str, Any]]:
        theta, bandit, bound = np.array(row["theta"]), self.world.bandit, float(self.study.bound)
        spread = spread_of(arm, row, theta, seen)
        region = None
        if spread is not None:
            region = wald_region(theta, spread, self.study.level, bound, row["hit_boundary"])
        for name in self.study.policies:
            if name in GREEDY:
                yield self._judged(row, name, GREEDY[name](bandit, theta), theta, region)
            elif region is not None:
                yield self._judged(row, name, PESSIMISTIC[name](bandit, region, bound), theta, region)

    def _judged(
        self, row: Mapping[str, Any], name: str, actions: Actions, theta: Floats, region: Region | None
    ) -> dict[str, Any]:
        true = self.world.loaded.theta
        loss = max(0.0, self.world.bandit.value(self.world.best, true) - self.world.bandit.value(actions, true))
        covered = None if region is None else region.holds(true)
        bound = self._bound(name, theta, region)
        if (name in GREEDY or covered) and loss > bound + ROUNDING:
            raise RunFailed(f"{self.world.name}: expected {name} to lose at most {bound}, got {loss} in {dict(row)}")
        kept = ("n", "epsilon", "delta", "trust", "arm", "repetition", "hit_boundary", "warnings")
        return {key: row[key] for key in kept} | {
            "shown": self.world.shown,
            "world": self.world.number,
            "policy": name,
            "suboptimality": loss,
            "bound": bound,
            "covered": covered,
            "radius": None if region is None else region.radius,
            "actions": actions.tolist(),
        }

    def _bound(self, name: str, theta: Floats, region: Region | None) -> float:
        """2 L ||theta - theta*||, or twice the width of the region along the best policy, as its docstring says."""
        if region is None or name in GREEDY:
            gap = theta - self.world.loaded.theta
            return 2.0 * self.study.law.length * float(np.sqrt((gap**2).sum()))
        bandit, best = self.world.bandit, self.world.best
        if name == "pessimistic-by-state":
            widths = region.width(bandit.shifted[np.arange(len(best)), best])
            return 2.0 * float((bandit.chances * widths).sum())
        return 2.0 * float(region.width(bandit.means(best)))


def spread_of(arm: Arm, row: Mapping[str, Any], theta: Floats, seen: Seen) -> Spread | None:
    """How an arm's estimates spread, at the estimate; None where no formula is known.

    The channel is that of the executed table, by its level: contrast = tanh(level / 2).
    """
    features, ridge, tau = seen.features, arm.get("ridge") or Decimal(0), arm.get("tau") or Decimal(1)
    if not isinstance(ridge, Decimal) or not isinstance(tau, Decimal):
        return None
    if arm.trust is Trust.CLEAR and arm.estimator == "mle":
        return of_score(features, theta, ridge=float(ridge))
    if arm.trust is Trust.CENTRAL and arm.estimator == "mle" and arm.mechanism in _ON_THE_SUM:
        return of_score(features, theta, stddev=_noise(arm, row, seen), ridge=float(ridge))
    if arm.trust is not Trust.LOCAL or arm.mechanism != "randomized-response":
        return None
    contrast = float(np.tanh(row["computed_epsilon"] / 2))
    flip = 0.5 * (1.0 - contrast)
    if arm.estimator == "debiased":
        return of_score(features, theta, contrast, flip, ridge=float(ridge))
    if arm.estimator == "rr-mle":
        return of_likelihood(features, theta, contrast, flip)
    if arm.estimator == "rr-map":
        return of_likelihood(features, theta, contrast, flip, 1.0 / (features.count * float(tau) ** 2))
    return None


@dataclass(frozen=True)
class Baseline:
    """What nobody has to learn: the best policy's reward J(pi*), and what is lost by actions drawn at random, and by
    actions drawn as they were shown."""

    best: float
    random: float
    shown: float


def baseline(world: World) -> Baseline:
    """The baseline of a world."""
    theta, bandit = world.loaded.theta, world.bandit
    rewards, best = inner(bandit.features, theta), bandit.value(world.best, theta)
    random = float((bandit.chances * rewards.mean(axis=1)).sum())
    shown = float((bandit.chances * (world.shares * rewards).sum(axis=1)).sum())
    return Baseline(best, best - random, best - shown)


def _radius(world: World, arm: Arm, n: int) -> float | None:
    if arm.mechanism not in _ON_THE_SUM or not CENTRAL[arm.mechanism].clipped:
        return None
    chosen = arm.get("radius")
    return float(chosen) if isinstance(chosen, Decimal) else default_radius(world.loaded.study.problem, n)


def _seen(world: World, n: int, radius: float | None) -> Seen:
    design = world.loaded.study.problem.design
    assert design is not None
    rows, weights = design[:n].astype(np.float64), None
    if radius is not None:
        weights = np.minimum(1.0, radius / np.maximum(norms(rows), SMALLEST))
        rows = rows * weights[:, None]
    return Seen(Features.of(rows, weights), float(norms(rows).max()))


def _noise(arm: Arm, row: Mapping[str, Any], seen: Seen) -> float:
    """The curator's standard deviation on each coordinate of the sum: public."""
    levels = (decimal(row[name], name) for name in ("epsilon", "delta"))
    return CENTRAL[arm.mechanism].noise_multiplier(*levels) * seen.longest
