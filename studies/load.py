"""A study file: strict TOML in, the public study and its truth out. Here theta leaves the public part for good."""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from protocol import strict
from protocol.choice_features import packed
from protocol.coins import Floats
from protocol.problem import DRAWN, Problem
from protocol.record_arms import RECORD_OPTIONS
from protocol.record_law import parse_records
from protocol.strict import StudyError
from protocol.study import Study, describe, with_options
from protocol.study_file import parse, parse_problem
from studies.choice_files import read_choices
from studies.files import FEATURE_FILES, read_features
from studies.panel import panel
from studies.record_score import expect_scores
from studies.truth import oracle_step, read_opinions, read_theta, record_mean

_RUN = {"study", "problem", "population", "records", "grid", "arm"}
# What tells a study for another command.
_COMMANDS = {"attack": "attack", "liars": "attack", "bandit": "policy", "way": "real"}
_OF_ARMS = frozenset({"nominal", "ridge", "tau", "groups", "honest", "survivors", "trim", "radius", "step"})
_OF_RECORDS = frozenset({"tail", "moment"} | {name for name, rule in RECORD_OPTIONS.items() if rule.number})
NUMBERS = _OF_ARMS | _OF_RECORDS | {"bound", "theta", "scales", "epsilon", "delta", "levels", "shares"}


@dataclass(frozen=True, eq=False)
class Loaded:
    """A study ready to run: the public `study`, the truth `theta` of shape (dimension,), and both as plain values.

    `opinions` (levels, dimension): those of labelers at each level of a population; None where all share theta.
    `sha256` (hex) names them together: two runs with one hash ask for the same results.
    """

    study: Study
    theta: Floats
    resolved: dict[str, Any]
    sha256: str
    opinions: Floats | None = None

    @property
    def truth(self) -> Floats:
        """What labels are drawn from: theta, and below it the opinion at each level where there are several."""
        return self.theta if self.opinions is None else np.vstack([self.theta, self.opinions])


def load(path: Path, overrides: Sequence[str] = ()) -> Loaded:
    """Read a study file with `table.key=value` overrides (`arm.2.step=0.1` changes the second arm).

    Features are "gaussian", "sphere", these or "items" with `questions` (see `studies.panel`), or a path relative to
    the study file to .npy, .npz (array `x`) or .csv with one difference x a row; values travel, paths do not. An arm's
    radius may be a table by features law. step = "oracle" becomes the smallest eigenvalue of E[sigma'(theta . x) x x^T]
    over a fixed draw.

    Raises StudyError naming the place, what was expected and what was got.
    """
    content = tables(path, overrides)
    expect(content, path, "run")
    return build(content, path.parent)


def tables(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The nested tables of a TOML file with overrides, unchecked. Raises StudyError for a file that is no TOML."""
    content = _read(path)
    for override in overrides:
        _override(content, override)
    return content


def expect(content: Mapping[str, Any], path: Path, command: str) -> None:
    """Raise StudyError where a file is a study for another command than this one."""
    told = [name for table, name in _COMMANDS.items() if table in content]
    if "problem" in content and content.keys() <= _RUN:
        told.append("run")
    if told and command not in told:
        raise StudyError(f"{path}: expected a study for halftruth {command}, got one for halftruth {told[0]}")


def build(content: dict[str, Any], folder: Path) -> Loaded:
    """A loaded study from nested tables; feature files are looked for in `folder`. Raises StudyError."""
    table = content.get("problem")
    if not isinstance(table, Mapping):
        raise StudyError("[problem] expected a table with kind, dimension, features and theta")
    public = {key: value for key, value in table.items() if key != "theta"}
    problem = panel(content) or _problem(public, folder)
    return assemble({**content, "problem": public}, problem, table.get("theta"))


def assemble(content: dict[str, Any], problem: Problem, value: Any) -> Loaded:
    """A loaded study from nested tables and a problem at hand; `value` is the truth as its file has it.

    Raises StudyError.
    """
    theta, people, hidden = _truth(content, problem, value), content.get("population"), None
    if isinstance(people, Mapping):  # opinions stay out of the public part, as theta does
        hidden = people.get("theta")
        content = {**content, "population": {key: value for key, value in people.items() if key != "theta"}}
    if isinstance(content.get("arm"), list):
        arms = [_by_law(arm, problem.features, index) for index, arm in enumerate(content["arm"], start=1)]
        content = {**content, "arm": arms}
    study = _with_oracle(parse(content, problem), theta)
    expect_scores(study, theta)
    return _loaded(study, theta, read_opinions(hidden, theta, study))


def _truth(content: Mapping[str, Any], problem: Problem, value: Any) -> Floats:
    """theta of the study; the mean of records follows from their law, and is not said a second time."""
    if problem.kind != "records" or problem.model != "mean" or "records" not in content:
        return read_theta(value, problem)
    if value is not None:
        raise StudyError("[problem] theta: expected none: it is the mean of [records] features; write + SHIFT there")
    return record_mean(problem, parse_records(content["records"], problem))


def restore(resolved: Mapping[str, Any], folder: Path) -> Loaded:
    """The loaded study that `resolved` describes, as a results folder keeps it; given features are in `folder`."""
    problem = dict(_decimals(resolved["problem"]))
    if problem.pop("features_sha256", None) is not None:
        problem["features"] = "features.npy"
    arms = [_decimals(arm) for arm in resolved["arms"]]
    head = {"study": resolved["study"], "grid": _decimals(resolved["grid"]), "arm": arms}
    more = {name: _decimals(resolved[name]) for name in ("population", "records") if name in resolved}
    if "records" in more and problem["model"] == "mean":
        problem.pop("theta")
    return build({**head, **more, "problem": problem}, folder)


def changes(old: Any, new: Any, place: str = "") -> list[str]:
    """What differs between two resolved studies, as lines "place: old -> new"."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        return [line for key in keys for line in changes(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True), start=1)
        return [line for index, (left, right) in pairs for line in changes(left, right, f"{place}.{index}")]
    return [] if old == new else [f"{place}: {json.dumps(old)} -> {json.dumps(new)}"]


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file, parse_float=Decimal)
    except OSError as error:
        raise StudyError(f"{path}: expected a study file, {strict.unopened(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: expected TOML, {error}") from None


def _override(content: dict[str, Any], override: str) -> None:
    place, equals, text = override.partition("=")
    parts = place.strip().split(".")
    if not equals or len(parts) < 2 or not all(parts):
        raise StudyError(f"--set {override}: expected TABLE.KEY=VALUE, for instance study.repetitions=10")
    try:
        value = tomllib.loads(f"value = {text}", parse_float=Decimal)["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    at: Any = content
    for part in parts[:-1]:
        if isinstance(at, list) and part.isdecimal() and 1 <= int(part) <= len(at):
            at = at[int(part) - 1]
        elif isinstance(at, dict) and part in at:
            at = at[part]
        else:
            raise StudyError(f"--set {override}: no table {part!r} in the study; arms are arm.1, arm.2, ...")
    if not isinstance(at, dict):
        raise StudyError(f"--set {override}: expected a table before the last key, such as arm.1.{parts[-1]}")
    at[parts[-1]] = value


def _problem(public: Mapping[str, Any], folder: Path) -> Problem:
    law = public.get("features")
    if not isinstance(law, str) or not law.endswith(FEATURE_FILES):
        return parse_problem(public)
    dimension = strict.integer(public.get("dimension"), "[problem] dimension", 1, 1 << 20)
    read = read_choices if public.get("kind") == "choice" else read_features
    return parse_problem(public, read(folder / law, dimension), "values")


def _by_law(arm: Any, law: str, index: int) -> Any:
    if not isinstance(arm, Mapping) or not isinstance(arm.get("radius"), Mapping):
        return arm
    place = f"arm {index}.radius"
    radii = strict.table(arm["radius"], place, (*DRAWN, "values"))
    if law not in radii:
        raise StudyError(f"[{place}] expected the key {law!r} (the features), found only {sorted(radii)}")
    return {**arm, "radius": radii[law]}


def _with_oracle(study: Study, theta: Floats) -> Study:
    chosen = [index for index, arm in enumerate(study.arms) if arm.get("step") == "oracle"]
    if not chosen:
        return study
    alpha = oracle_step(study, theta)
    step = ("step", alpha)
    return with_options(
        study,
        {i: tuple(step if key == "step" else (key, value) for key, value in study.arms[i].options) for i in chosen},
    )


def _loaded(study: Study, theta: Floats, opinions: Floats | None) -> Loaded:
    resolved = describe(study)
    design = packed(study.problem)
    digest = None if design is None else hashlib.sha256(np.ascontiguousarray(design).tobytes()).hexdigest()
    resolved["problem"] |= {"theta": [repr(float(value)) for value in theta], "features_sha256": digest}
    if opinions is not None:
        resolved["population"] |= {"theta": [[repr(float(value)) for value in each] for each in opinions]}
    text = json.dumps(resolved, sort_keys=True, separators=(",", ":"))
    return Loaded(study, theta, resolved, hashlib.sha256(text.encode()).hexdigest(), opinions)


def _decimals(table: Mapping[str, Any]) -> dict[str, Any]:
    said = {key: value for key, value in table.items() if value not in (None, [])}
    return {key: _decimal(value) if key in NUMBERS else value for key, value in said.items()}


def _decimal(value: Any) -> Any:
    if isinstance(value, list):
        return [_decimal(item) for item in value]
    try:
        return Decimal(value)
    except InvalidOperation:
        return value
