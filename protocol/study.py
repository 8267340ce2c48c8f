"""A study: a problem, a grid, arms and repetitions. Its truth is not here: `studies` moves it elsewhere."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from protocol.arms import Arm, Option
from protocol.decimals import canonical
from protocol.population import Population
from protocol.problem import Problem
from protocol.record_law import RecordLaw

MOST = (1 << 32) - 1


@dataclass(frozen=True)
class Grid:
    """The settings that a study crosses."""

    n: tuple[int, ...]
    epsilon: tuple[Decimal, ...]
    delta: tuple[Decimal, ...]


@dataclass(frozen=True, eq=False)
class Study:
    """A study's public part.

    `fingerprint` (32 bytes) names it in tasks and results: the hash of everything here, features of a file included.
    """

    name: str
    seed: int
    repetitions: int
    problem: Problem
    grid: Grid
    arms: tuple[Arm, ...]
    population: Population | None = None
    records: RecordLaw | None = None

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical JSON of `describe` and the problem's digest."""
        text = json.dumps(describe(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode() + self.problem.digest).digest()


@dataclass(frozen=True)
class Cell:
    """What is run, resumed and moved as one: all arms and all epsilon of one n, for a block of repetitions."""

    n: int
    first_repetition: int
    repetitions: int


def cells(study: Study, block: int | None = None) -> list[Cell]:
    """The units of a study, largest n first (long work starts early), unless `block` says how many repetitions.

    About 2^18 rows each, and 2^22 numbers of records, which are sent as they are and kept from round to round.
    """
    law, units = study.records, []
    for n in sorted(study.grid.n, reverse=True):
        most = (1 << 18) // n
        if law is not None:
            most = min(most, (1 << 22) // (n * max(1, law.per_holder) * study.problem.dimension))
        size = block or min(study.repetitions, max(1, most))
        for first in range(0, study.repetitions, size):
            units.append(Cell(n, first, min(size, study.repetitions - first)))
    return units


def describe(study: Study) -> dict[str, Any]:
    """The resolved study as plain JSON values (without the design of given features)."""
    problem = study.problem
    asked = study.population
    levels = asked and {"levels": list(map(canonical, asked.levels)), "shares": list(map(canonical, asked.shares))}
    return {
        "study": {"name": study.name, "seed": study.seed, "repetitions": study.repetitions},
        "problem": {
            "kind": problem.kind,
            "model": problem.model,
            "dimension": problem.dimension,
            "features": problem.features,
            "sum_zero": problem.sum_zero,
            "bound": None if problem.bound is None else canonical(problem.bound),
            **({"choices": problem.choices} if problem.kind == "choice" else {}),
            **({"scales": list(map(canonical, problem.scales))} if problem.scales else {}),
        },
        "grid": {
            "n": list(study.grid.n),
            "epsilon": [canonical(value) for value in study.grid.epsilon],
            "delta": [canonical(value) for value in study.grid.delta],
        },
        "arms": [
            {
                "trust": arm.trust_name,
                "mechanism": arm.mechanism,
                "estimator": arm.estimator,
                **{key: canonical(value) if isinstance(value, Decimal) else value for key, value in arm.options},
            }
            for arm in study.arms
        ],
        **({"population": levels} if levels else {}),
        **({} if study.records is None else {"records": study.records.describe()}),
    }


def with_options(study: Study, options: Mapping[int, tuple[tuple[str, Option], ...]]) -> Study:
    """The study with some arms' options replaced, by arm index."""
    arms = tuple(
        replace(arm, options=options[index]) if index in options else arm for index, arm in enumerate(study.arms)
    )
    return replace(study, arms=arms)
