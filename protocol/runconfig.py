"""What travels beside a run: a study's public part and how to ask, as the flat scalars of a runtime's configuration.

Nothing here concerns a node: no path, no policy, no entropy. One more key belongs to the sources of synthetic labels
alone; it is let through and not looked at.
"""

import base64
import io
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol import strict
from protocol.arms import Arm
from protocol.problem import GIVEN, Problem
from protocol.strict import StudyError
from protocol.study import MOST, Study
from protocol.study_file import parse, parse_problem

Scalar = str | int | float | bool
Config = Mapping[str, Scalar]

MODES = ("strict", "live")
CURATORS = ("simulated", "ledger")
KEYS = ("study", "design", "clients", "block", "deadline", "mode", "curator")
LET_THROUGH = "truth"
PLACE = "run config"
BUNDLE_RECORD, BUNDLE_ARRAY = "halftruth", "bundle"  # where a runtime's message carries the bytes of a bundle

DEFAULT_STUDY = """
study = { name = "hello", seed = 7, repetitions = 4 }
problem = { kind = "pairwise", dimension = 5, features = "gaussian", bound = 3.0, sum_zero = true }
grid = { n = [1000], epsilon = [1.0], delta = [1e-5] }
arm = [
  { trust = "none", estimator = "zero" },
  { trust = "clear", estimator = "mle" },
  { trust = "clear", estimator = "sgd" },
  { trust = "local", estimator = "debiased-sgd" },
  { trust = "local", estimator = "debiased" },
  { trust = "local", estimator = "rr-mle" },
  { trust = "local", estimator = "rr-map" },
  { trust = "local", estimator = "naive" },
  { trust = "central", mechanism = "objective-perturbation-paper", estimator = "mle" },
  { trust = "central", mechanism = "gaussian-statistic", estimator = "mle" },
  { trust = "central", mechanism = "gaussian-statistic-clipped", estimator = "mle" },
]
"""


@dataclass(frozen=True, eq=False)
class RunConfig:
    """A study and how it is asked.

    `clients`: how many the server waits for (0: those that are there, at least one); `block`: repetitions a cell (0:
    the study's own cells); `deadline`: seconds a cell may take, and seconds the server waits for clients; `mode`:
    "strict" or "live"; `curator`: "simulated" (addressed coins) or "ledger" (the system's, committed on disk).
    """

    study: Study
    clients: int = 0
    block: int = 0
    deadline: float = 600.0
    mode: str = "strict"
    curator: str = "simulated"


def read(config: Config) -> RunConfig:
    """Read a run's configuration; an empty or missing `study` is the built-in `DEFAULT_STUDY`.

    Raises StudyError that names the key, what was expected and what was got.
    """
    top = strict.table(config, PLACE, (*KEYS, LET_THROUGH))
    deadline = top.get("deadline", 600.0)
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not 0 < deadline < float("inf"):
        raise StudyError(f"[{PLACE}] deadline: expected seconds > 0, got {deadline!r}")
    return RunConfig(
        study=_study(_string(top, "study"), _string(top, "design")),
        clients=strict.integer(top.get("clients", 0), f"[{PLACE}] clients", 0, MOST),
        block=strict.integer(top.get("block", 0), f"[{PLACE}] block", 0, MOST),
        deadline=float(deadline),
        mode=strict.text(top.get("mode", "strict"), f"[{PLACE}] mode", MODES),
        curator=strict.text(top.get("curator", "simulated"), f"[{PLACE}] curator", CURATORS),
    )


def write(
    study: Study,
    clients: int = 0,
    block: int = 0,
    deadline: float = 600.0,
    mode: str = "strict",
    curator: str = "simulated",
) -> dict[str, Scalar]:
    """The inverse of `read`: the study comes out with the same fingerprint, its decimals digit for digit."""
    design = "" if study.problem.design is None else _design_text(study.problem.design)
    return {
        "study": "\n".join(_toml(study)) + "\n",
        "design": design,
        "clients": clients,
        "block": block,
        "deadline": deadline,
        "mode": mode,
        "curator": curator,
    }


def _string(top: Mapping[str, Any], key: str) -> str:
    value = top.get(key, "")
    if not isinstance(value, str):
        raise StudyError(f"[{PLACE}] {key}: expected a string, got {value!r}")
    return value


def _study(text: str, design: str) -> Study:
    try:
        content = tomllib.loads(text or DEFAULT_STUDY, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"[{PLACE}] study: expected TOML, {error}") from None
    return parse(content, _given(content.get("problem"), design))


def _given(content: Any, design: str) -> Problem | None:
    """The problem with the design that came beside the study; None where features are drawn."""
    law = content.get("features") if isinstance(content, Mapping) else None
    if (law in GIVEN) != bool(design):
        raise StudyError(f"[{PLACE}] design: expected one exactly for features out of {GIVEN}, got features {law!r}")
    return parse_problem(content, _design(design), law) if design else None


def _design(text: str) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(io.BytesIO(base64.b64decode(text, validate=True)), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise StudyError(f"[{PLACE}] design: expected an .npy file in base64, got other bytes") from None
    if not isinstance(array, np.ndarray):
        raise StudyError(f"[{PLACE}] design: expected one array, got an archive")
    return array


def _design_text(design: NDArray[Any]) -> str:
    stored = io.BytesIO()
    np.save(stored, design, allow_pickle=False)
    return base64.b64encode(stored.getvalue()).decode("ascii")


def _toml(study: Study) -> Iterator[str]:
    problem, grid = study.problem, study.grid
    yield "[study]"
    yield from _pairs({"name": study.name, "seed": study.seed, "repetitions": study.repetitions})
    yield "[problem]"
    yield from _pairs({"kind": problem.kind, "model": problem.model, "dimension": problem.dimension})
    yield from _pairs({"features": problem.features, "sum_zero": problem.sum_zero})
    yield from _pairs({} if problem.bound is None else {"bound": problem.bound})
    yield "[grid]"
    lists = {"n": grid.n, "epsilon": grid.epsilon, "delta": grid.delta}
    yield from _pairs({key: values for key, values in lists.items() if values})
    for arm in study.arms:
        yield "[[arm]]"
        yield from _pairs(_arm(arm))


def _arm(arm: Arm) -> dict[str, Any]:
    return {"trust": arm.trust_name, "mechanism": arm.mechanism, "estimator": arm.estimator, **dict(arm.options)}


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key} = {_literal(value)}" for key, value in table.items())


def _literal(value: Any) -> str:
    """A TOML literal. JSON's strings are TOML's, but for DEL; Decimal's digits are kept as they are."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
