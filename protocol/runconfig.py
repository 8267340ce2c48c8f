"""What travels beside a run: a study's public part and how to ask, as the flat scalars of a runtime's configuration.

Nothing here concerns a node: no path, no policy, no entropy. One more key belongs to the sources of synthetic labels
alone; it is let through and not looked at.
"""

import base64
import io
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol import strict
from protocol.arms import Arm
from protocol.choice_features import packed
from protocol.codec import decode_task, encode_task
from protocol.messages import Task
from protocol.problem import GIVEN, Problem
from protocol.quorum import check_quorum
from protocol.record_law import RecordLaw
from protocol.strict import StudyError
from protocol.study import MOST, Cell, Study, cells
from protocol.study_file import parse, parse_problem

Scalar = str | int | float | bool
Config = Mapping[str, Scalar]
Design = str | NDArray[Any] | None  # base64 of an .npy file, or what a task brought

MODES = ("strict", "live")
CURATORS = ("simulated", "ledger")
KEYS = ("study", "design", "task", "clients", "block", "finished", "deadline", "mode", "quorum", "curator", "attempt")
DEADLINE = 600.0
MOST_ATTEMPTS = (1 << 31) - 1
LET_THROUGH = "truth"
PLACE = "run config"

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

    `task`: the one task that is asked for a study of one cell, where it says more than a study can (rows, ties, whose
    a row is). `clients`: how many the server waits for (0: those that are there, at least one); `block`: repetitions a
    cell (0: the study's own cells); `finished`: cells that are left out, bit i being cell i of the study; `deadline`:
    seconds a round may take, and seconds the server waits for clients; `mode`: "strict" or "live"; `quorum`: how many
    clients have to answer a live round, or which share of them ("": one); `curator`: "simulated" (addressed coins) or
    "ledger" (the system's, committed on disk); `attempt`: which release of the same sums is wanted, 0 the first.
    """

    study: Study
    task: Task | None = None
    clients: int = 0
    block: int = 0
    finished: int = 0
    deadline: float = DEADLINE
    mode: str = "strict"
    quorum: str = ""
    curator: str = "simulated"
    attempt: int = 0

    def missing(self) -> list[Cell]:
        """The cells that are not finished, in their order."""
        return [cell for at, cell in enumerate(cells(self.study, self.block or None)) if not self.finished >> at & 1]


def read(config: Config) -> RunConfig:
    """Read a run's configuration; an empty or missing `study` is the built-in `DEFAULT_STUDY`.

    Raises StudyError that names the key, what was expected and what was got.
    """
    top = strict.table(config, PLACE, (*KEYS, LET_THROUGH))
    deadline = top.get("deadline", DEADLINE)
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not 0 < deadline < float("inf"):
        raise StudyError(f"[{PLACE}] deadline: expected seconds > 0, got {deadline!r}")
    task = _task(_string(top, "task"))
    study = _study(_string(top, "study"), _string(top, "design") if task is None else packed(task.problem))
    if task is not None and (
        [Cell(task.n, task.first_repetition, task.repetitions)] != cells(study)
        or {arm.trust for arm in study.arms} != {task.trust}
    ):
        raise StudyError(f"[{PLACE}] task: expected the one cell of the study, under the trust model of its arms")
    block = strict.integer(top.get("block", 0), f"[{PLACE}] block", 0, MOST)
    mode = strict.text(top.get("mode", "strict"), f"[{PLACE}] mode", MODES)
    wanted = check_quorum(_string(top, "quorum"), f"[{PLACE}] quorum")
    if wanted and mode == "strict":
        raise StudyError(f"[{PLACE}] quorum: expected none in strict mode, where every client has to answer")
    return RunConfig(
        study=study,
        task=task,
        clients=strict.integer(top.get("clients", 0), f"[{PLACE}] clients", 0, MOST),
        block=block,
        finished=_finished(_string(top, "finished"), len(cells(study, block or None))),
        deadline=float(deadline),
        mode=mode,
        quorum=wanted,
        curator=strict.text(top.get("curator", "simulated"), f"[{PLACE}] curator", CURATORS),
        attempt=strict.integer(top.get("attempt", 0), f"[{PLACE}] attempt", 0, MOST_ATTEMPTS),
    )


def write(study: Study, **how: Any) -> dict[str, Scalar]:
    """The inverse of `read`: the study comes out with the same fingerprint, its decimals digit for digit.

    `how`: the other fields of `RunConfig`.
    """
    config = RunConfig(study, **how)
    design = packed(study.problem) if config.task is None else None  # a task brings its own
    return {
        "study": "\n".join(_toml(study)) + "\n",
        "design": "" if design is None else _design_text(design),
        "task": "" if config.task is None else _base64(encode_task(config.task)),
        "clients": config.clients,
        "block": config.block,
        "finished": f"{config.finished:x}" if config.finished else "",
        "deadline": config.deadline,
        "mode": config.mode,
        "quorum": config.quorum,
        "curator": config.curator,
        "attempt": config.attempt,
    }


def _string(top: Mapping[str, Any], key: str) -> str:
    value = top.get(key, "")
    if not isinstance(value, str):
        raise StudyError(f"[{PLACE}] {key}: expected a string, got {value!r}")
    return value


def _task(text: str) -> Task | None:
    try:
        return decode_task(base64.b64decode(text, validate=True)) if text else None
    except ValueError as error:
        raise StudyError(f"[{PLACE}] task: expected the bytes of a task in base64, {error}") from None


def _finished(text: str, count: int) -> int:
    """A set of cells as a hexadecimal number: four cells a character."""
    if len(text) <= count and re.fullmatch("([1-9a-f][0-9a-f]*)?", text):
        found = int(text or "0", 16)
        if found.bit_length() <= count:
            return found
    raise StudyError(f"[{PLACE}] finished: expected a hexadecimal number of {count} bits, got {text[:40]!r}")


def _study(text: str, design: Design) -> Study:
    try:
        content = tomllib.loads(text or DEFAULT_STUDY, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"[{PLACE}] study: expected TOML, {error}") from None
    return parse(content, _given(content.get("problem"), design), files=True)


def _given(content: Any, design: Design) -> Problem | None:
    """The problem with the design that came beside the study or in a task; None where features are drawn."""
    law = content.get("features") if isinstance(content, Mapping) else None
    there = design is not None and len(design) > 0
    if (law in GIVEN) != there:
        raise StudyError(f"[{PLACE}] design: expected one exactly for features out of {GIVEN}, got features {law!r}")
    return parse_problem(content, _design(design) if isinstance(design, str) else design, law) if there else None


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
    return _base64(stored.getvalue())


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _toml(study: Study) -> Iterator[str]:
    problem, grid = study.problem, study.grid
    yield "[study]"
    yield from _pairs({"name": study.name, "seed": study.seed, "repetitions": study.repetitions})
    yield "[problem]"
    yield from _pairs({"kind": problem.kind, "model": problem.model, "dimension": problem.dimension})
    yield from _pairs({"features": problem.features, "sum_zero": problem.sum_zero})
    yield from _pairs({} if problem.bound is None else {"bound": problem.bound})
    yield from _pairs({"choices": problem.choices} if problem.kind == "choice" else {})
    yield "[grid]"
    lists = {"n": grid.n, "epsilon": grid.epsilon, "delta": grid.delta}
    yield from _pairs({key: values for key, values in lists.items() if values})
    if study.population is not None:
        yield "[population]"
        yield from _pairs({"levels": study.population.levels, "shares": study.population.shares})
    if study.records is not None:
        yield "[records]"
        yield from _pairs({**study.records.describe(), **_assumed(study.records)})
    for arm in study.arms:
        yield "[[arm]]"
        yield from _pairs(_arm(arm))


def _assumed(records: RecordLaw) -> dict[str, Decimal]:
    """Numbers as numbers: the description of a law has them as text."""
    pairs = {"tail": records.tail, "moment": records.moment}
    return {key: value for key, value in pairs.items() if value is not None}


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
