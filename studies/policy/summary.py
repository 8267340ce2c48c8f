"""What policies lose, by setting: means over worlds, since the repetitions of one world share its bandit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from protocol.coins import Floats
from studies.summary import Moments


@dataclass(frozen=True)
class Place:
    """One point of a policy study's grid: who chose the pairs, n, the level (None: no claim), and the arm."""

    shown: str
    n: int
    epsilon: float | None
    delta: float | None
    arm: str


@dataclass(frozen=True)
class Loss:
    """One policy at one place: the loss J(pi*) - J(pi), its paired difference greedy - policy, and the region.

    `gain` is None for greedy itself or where there is none; positive where the policy loses less than greedy does.
    `bound`: the mean of the theorem's bound; `coverage`: share of regions that hold the parameter (None without one).
    All moments are over worlds: each contributes the mean over its repetitions.
    """

    place: Place
    policy: str
    loss: Moments
    gain: Moments | None
    bound: float
    coverage: float | None


def summarise_policies(table: pa.Table) -> Iterator[Loss]:
    """One `Loss` per place and policy, in the table's order."""
    groups: dict[tuple[Place, str], list[dict[str, Any]]] = {}
    keys = ("shown", "n", "epsilon", "delta", "arm")
    for row in table.select([*keys, "world", "policy", "suboptimality", "bound", "covered"]).to_pylist():
        groups.setdefault((Place(*(row[key] for key in keys)), row["policy"]), []).append(row)
    for (place, policy), rows in groups.items():
        base = groups.get((place, "greedy"))
        gain = None
        if base is not None and policy != "greedy":
            gain = Moments.of(_by_world(base, "suboptimality") - _by_world(rows, "suboptimality"))
        known = [row["covered"] for row in rows if row["covered"] is not None]
        yield Loss(
            place=place,
            policy=policy,
            loss=Moments.of(_by_world(rows, "suboptimality")),
            gain=gain,
            bound=float(np.mean([row["bound"] for row in rows])),
            coverage=float(np.mean(known)) if known else None,
        )


def _by_world(rows: list[dict[str, Any]], name: str) -> Floats:
    """The mean of a column for each world, by the world's number."""
    worlds = np.array([row["world"] for row in rows])
    values = np.array([row[name] for row in rows], dtype=np.float64)
    means: Floats = np.bincount(worlds, values) / np.bincount(worlds)
    return means
