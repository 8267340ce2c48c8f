"""A study: a problem, a grid, arms and repetitions. Its truth is not here: `studies` moves it elsewhere."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from protocol import strict
from protocol.decimals import canonical, decimal, delta, epsilon
from protocol.mechanisms import LOCAL
from protocol.problem import DRAWN, Problem
from protocol.strict import StudyError
from protocol.trust import SIGHT, Trust

Option = str | Decimal | bool
MOST = (1 << 32) - 1

# Central mechanisms by name, and whether they clip. The noise of each is the curator's business: `server.mechanisms`.
CENTRAL = {"objective-perturbation-paper": False, "gaussian-statistic": False, "gaussian-statistic-clipped": True}

# (trust, estimator) -> options it knows. `None` as trust: nobody sends anything.
ESTIMATORS: dict[tuple[Trust | None, str], frozenset[str]] = {
    (None, "zero"): frozenset(),
    (Trust.CLEAR, "mle"): frozenset({"ridge"}),
    (Trust.CLEAR, "sgd"): frozenset({"step"}),
    (Trust.LOCAL, "debiased-sgd"): frozenset({"step"}),
    (Trust.LOCAL, "debiased"): frozenset({"ridge"}),
    (Trust.LOCAL, "rr-mle"): frozenset(),
    (Trust.LOCAL, "rr-map"): frozenset({"tau"}),
    (Trust.LOCAL, "naive"): frozenset({"ridge"}),
    (Trust.CENTRAL, "mle"): frozenset({"ridge", "radius", "norm"}),
}


@dataclass(frozen=True)
class Arm:
    """One way to an estimate: whom labelers trust, what is done to labels, how the server estimates."""

    trust: Trust | None
    mechanism: str
    estimator: str
    options: tuple[tuple[str, Option], ...] = ()

    @property
    def trust_name(self) -> str:
        """The trust model in lower case; "none" where nothing is sent."""
        return "none" if self.trust is None else self.trust.label

    @property
    def name(self) -> str:
        """What tables and legends call the arm: `trust/mechanism/estimator` and its options."""
        parts = [f"{key}={canonical(value) if isinstance(value, Decimal) else value}" for key, value in self.options]
        return "/".join((self.trust_name, self.mechanism, self.estimator)) + (f"[{', '.join(parts)}]" if parts else "")

    def get(self, name: str) -> Option | None:
        """The value of an option, or None for its default."""
        return dict(self.options).get(name)


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

    @property
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
    """The units of a study, largest n first (long work starts early); about 2^18 rows each unless `block` says."""
    units = []
    for n in sorted(study.grid.n, reverse=True):
        size = block or min(study.repetitions, max(1, (1 << 18) // n))
        for first in range(0, study.repetitions, size):
            units.append(Cell(n, first, min(size, study.repetitions - first)))
    return units


def describe(study: Study) -> dict[str, Any]:
    """The resolved study as plain JSON values (without the design of given features)."""
    problem = study.problem
    return {
        "study": {"name": study.name, "seed": study.seed, "repetitions": study.repetitions},
        "problem": {
            "kind": problem.kind,
            "model": problem.model,
            "dimension": problem.dimension,
            "features": problem.features,
            "sum_zero": problem.sum_zero,
            "bound": None if problem.bound is None else canonical(problem.bound),
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
    }


def parse(content: Mapping[str, Any], problem: Problem | None = None) -> Study:
    """Read a study from nested tables (a TOML file without `theta`); `problem` replaces features read from a file.

    Raises StudyError that names the place, and for an unknown key the nearest valid one.
    """
    top = strict.table(content, "top level", ("study", "problem", "grid", "arm"), ("study", "problem", "grid", "arm"))
    head = strict.table(top["study"], "study", ("name", "seed", "repetitions"), ("name", "seed", "repetitions"))
    grid = _grid(top["grid"])
    arms = tuple(_arm(item, f"arm {index}") for index, item in enumerate(strict.sequence(top["arm"], "arm"), start=1))
    study = Study(
        name=strict.text(head["name"], "[study] name"),
        seed=strict.integer(head["seed"], "[study] seed", 0, (1 << 128) - 1),
        repetitions=strict.integer(head["repetitions"], "[study] repetitions", 1, MOST),
        problem=problem or parse_problem(top["problem"]),
        grid=grid,
        arms=arms,
    )
    _check_arms(study)
    return study


def parse_problem(content: Any, design: Any = None, features: str | None = None) -> Problem:
    """Read a [problem] table without its truth; a feature file's content comes as `design`."""
    keys = ("kind", "model", "dimension", "features", "bound", "sum_zero")
    top = strict.table(content, "problem", keys, ("kind", "dimension", "features"))
    strict.text(top["kind"], "[problem] kind", ["pairwise"])
    strict.text(top.get("model", "btl"), "[problem] model", ["btl"])
    law = features or strict.text(top["features"], "[problem] features", DRAWN)
    bound = None
    if "bound" in top:
        bound = _decimal(top["bound"], "[problem] bound")
    try:
        return Problem(
            dimension=strict.integer(top["dimension"], "[problem] dimension", 1, 1 << 20),
            features=law,
            sum_zero=strict.boolean(top.get("sum_zero", False), "[problem] sum_zero"),
            bound=bound,
            design=design,
        )
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"[problem] {error}") from None


def with_options(study: Study, options: Mapping[int, tuple[tuple[str, Option], ...]]) -> Study:
    """The study with some arms' options replaced, by arm index."""
    arms = tuple(
        replace(arm, options=options[index]) if index in options else arm for index, arm in enumerate(study.arms)
    )
    return replace(study, arms=arms)


def _grid(content: Any) -> Grid:
    top = strict.table(content, "grid", ("n", "epsilon", "delta"), ("n",))
    counts = [strict.integer(value, "[grid] n", 1, MOST) for value in strict.sequence(top["n"], "[grid] n")]
    levels, failures = [], []
    for value in strict.sequence(top["epsilon"], "[grid] epsilon") if "epsilon" in top else []:
        levels.append(_named(epsilon, value, "[grid] epsilon"))
    for value in strict.sequence(top["delta"], "[grid] delta") if "delta" in top else []:
        failures.append(_named(delta, value, "[grid] delta"))
    return Grid(tuple(sorted(counts)), tuple(sorted(levels)), tuple(sorted(failures)))


def _arm(content: Any, place: str) -> Arm:
    keys = {"trust", "mechanism", "estimator"}.union(*ESTIMATORS.values())
    top = strict.table(content, place, keys, ("trust", "estimator"))
    name = strict.text(top["trust"], f"[{place}] trust", [*(trust.label for trust in SIGHT), "none"])
    trust = None if name == "none" else Trust.parse(name)
    known = [estimator for where, estimator in ESTIMATORS if where == trust]
    estimator = strict.text(top["estimator"], f"[{place}] estimator", known)
    mechanisms = {Trust.LOCAL: ["randomized-response"], Trust.CENTRAL: list(CENTRAL)}.get(
        trust or Trust.CLEAR, ["none"]
    )
    assert "randomized-response" in LOCAL
    mechanism = strict.text(top.get("mechanism", mechanisms[0]), f"[{place}] mechanism", mechanisms)
    options = strict.table(
        {key: value for key, value in top.items() if key not in ("trust", "mechanism", "estimator")},
        place,
        ESTIMATORS[trust, estimator] - (frozenset() if CENTRAL.get(mechanism, True) else {"radius"}),
    )
    read = tuple((key, _option(key, options[key], f"[{place}] {key}")) for key in sorted(options))
    return Arm(trust, mechanism, estimator, read)


def _option(key: str, value: Any, place: str) -> Option:
    if key == "norm":
        return strict.text(value, place, ["projected", "unprojected"])
    if key == "step" and isinstance(value, str):
        return strict.text(value, place, ["pilot", "oracle"])
    number = _decimal(value, place)
    if number < 0 or (number == 0 and key != "ridge"):
        raise StudyError(f"{place}: expected a number > 0, got {value!r}")
    return number


def _check_arms(study: Study) -> None:
    names = [arm.name for arm in study.arms]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise StudyError(f"[arm {index + 1}] expected different arms, got {name} twice")
    trusts = {arm.trust for arm in study.arms}
    if trusts & {Trust.LOCAL, Trust.CENTRAL} and not study.grid.epsilon:
        raise StudyError("[grid] expected the key 'epsilon': an arm makes a claim")
    if Trust.CENTRAL in trusts and not study.grid.delta:
        raise StudyError("[grid] expected the key 'delta': a central arm adds Gaussian noise")
    design = study.problem.design
    if design is not None and max(study.grid.n) > len(design):
        raise StudyError(f"[grid] n: expected at most the {len(design)} rows of the feature file, got {study.grid.n}")


def _decimal(value: Any, place: str) -> Decimal:
    return _named(decimal, value, place)


def _named(read: Any, value: Any, place: str) -> Decimal:
    if isinstance(value, str):
        raise StudyError(f"{place}: expected a number, got {value!r}")
    try:
        result: Decimal = read(value, place)
    except ValueError as error:
        raise StudyError(str(error)) from None
    return result
