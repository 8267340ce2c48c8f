"""A study file's tables, read strictly: every wrong key or value is named with its place."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from protocol import strict
from protocol.arms import (
    CENTRAL,
    CHOICE_OPTIONS,
    GROUPED,
    MENU,
    ONLY,
    OPTIONS,
    RECORD,
    RELEASED,
    Arm,
    Option,
    OptionRule,
    conflict,
    estimators,
    mechanisms,
    misfit,
)
from protocol.choice_features import unpacked
from protocol.decimals import decimal, delta, epsilon
from protocol.population import Population
from protocol.problem import DRAWN, MODELS, MOST_CHOICES, RECORDS, Problem
from protocol.questions import OWN_FEATURES
from protocol.record_law import RecordLaw, parse_records
from protocol.record_study import check_levels, check_moment, record_arm
from protocol.shaping import default_mechanism
from protocol.strict import StudyError
from protocol.study import MOST, Grid, Study
from protocol.trust import SIGHT, Trust


def parse(content: Mapping[str, Any], problem: Problem | None = None, files: bool = False) -> Study:
    """Read a study from nested tables (a TOML file without `theta`); `problem` replaces features read from a file.

    With `files` records may be those of files, whose law nobody knows.

    Raises StudyError that names the place, and for an unknown key the nearest valid one.
    """
    needed = ("study", "problem", "grid", "arm")
    top = strict.table(content, "top level", (*needed, "population", "records"), needed)
    head = strict.table(top["study"], "study", ("name", "seed", "repetitions"), ("name", "seed", "repetitions"))
    grid = _grid(top["grid"])
    asked = problem or parse_problem(top["problem"])
    arms = tuple(
        _arm(item, f"arm {index}", asked) for index, item in enumerate(strict.sequence(top["arm"], "arm"), start=1)
    )
    study = Study(
        name=strict.text(head["name"], "[study] name"),
        seed=strict.integer(head["seed"], "[study] seed", 0, (1 << 128) - 1),
        repetitions=strict.integer(head["repetitions"], "[study] repetitions", 1, MOST),
        problem=asked,
        grid=grid,
        arms=arms,
        population=_population(top["population"]) if "population" in top else None,
        records=_records(top, asked, files),
    )
    _check_arms(study)
    return study


def _records(top: Mapping[str, Any], problem: Problem, files: bool) -> RecordLaw | None:
    if (problem.kind == "records") != ("records" in top):
        raise StudyError('[records] expected the law of records exactly for kind = "records"')
    if "population" in top and problem.kind == "records":
        raise StudyError("[population] expected none beside records")
    return parse_records(top["records"], problem, files) if "records" in top else None


def parse_problem(content: Any, design: Any = None, features: str | None = None) -> Problem:
    """Read a [problem] table without its truth; a feature file's content comes as `design`, packed for choices."""
    keys = ("kind", "model", "dimension", "features", "bound", "sum_zero", "choices", "scales")
    top = strict.table(content, "problem", keys, ("kind", "dimension"))
    kind = strict.text(top["kind"], "[problem] kind", MODELS)
    if ("choices" in top) != (kind == "choice"):
        raise StudyError('[problem] choices: expected how many there are exactly for kind = "choice"')
    laws = (RECORDS,) if kind == "records" else DRAWN
    law = features or strict.text(top.get("features", RECORDS), "[problem] features", laws)
    bound = None
    if "bound" in top:
        bound = _decimal(top["bound"], "[problem] bound")
    scales = strict.sequence(top["scales"], "[problem] scales") if "scales" in top else []
    try:
        values, sizes = (design, None) if kind != "choice" or design is None else unpacked(design)
        return Problem(
            kind=kind,
            model=strict.text(top.get("model", MODELS[kind][0]), "[problem] model", MODELS[kind]),
            choices=strict.integer(top.get("choices", 2), "[problem] choices", 2, MOST_CHOICES),
            dimension=strict.integer(top["dimension"], "[problem] dimension", 1, 1 << 20),
            features=law,
            sum_zero=strict.boolean(top.get("sum_zero", False), "[problem] sum_zero"),
            bound=bound,
            design=values,
            sizes=sizes,
            scales=tuple(_decimal(scale, "[problem] scales") for scale in scales),
        )
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"[problem] {error}") from None


def _grid(content: Any) -> Grid:
    top = strict.table(content, "grid", ("n", "epsilon", "delta"), ("n",))
    counts = [strict.integer(value, "[grid] n", 1, MOST) for value in strict.sequence(top["n"], "[grid] n")]
    levels, failures = [], []
    for value in strict.sequence(top["epsilon"], "[grid] epsilon") if "epsilon" in top else []:
        levels.append(_named(epsilon, value, "[grid] epsilon"))
    for value in strict.sequence(top["delta"], "[grid] delta") if "delta" in top else []:
        failures.append(_named(delta, value, "[grid] delta"))
    return Grid(tuple(sorted(counts)), tuple(sorted(levels)), tuple(sorted(failures)))


def _population(content: Any) -> Population:
    top = strict.table(content, "population", ("levels", "shares"), ("levels", "shares"))
    lists = {key: top[key] if isinstance(top[key], list) else [] for key in ("levels", "shares")}
    try:
        return Population(
            levels=tuple(_named(epsilon, value, "[population] levels") for value in lists["levels"]),
            shares=tuple(_decimal(value, "[population] shares") for value in lists["shares"]),
        )
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"[population] {error}") from None


def _arm(content: Any, place: str, problem: Problem) -> Arm:
    if problem.kind == "records":
        return record_arm(content, place, problem, _option)
    keys = {"trust", "mechanism", "estimator", *OPTIONS}
    top = strict.table(content, place, keys, ("trust", "estimator"))
    name = strict.text(top["trust"], f"[{place}] trust", [*(trust.label for trust in SIGHT), "none"])
    trust = None if name == "none" else Trust.parse(name)
    known = estimators(trust, problem.kind, problem.model)
    estimator = strict.text(top["estimator"], f"[{place}] estimator", known)
    offered = mechanisms(trust, problem.kind, problem.model)
    usual = ONLY.get(estimator, offered[0])
    if trust is Trust.CENTRAL and "mechanism" not in top:
        usual = RECORD[0] if estimator == RELEASED else default_mechanism(problem)
    mechanism = strict.text(top.get("mechanism", usual), f"[{place}] mechanism", offered)
    options = strict.table(
        {key: value for key, value in top.items() if key not in ("trust", "mechanism", "estimator")},
        place,
        known[estimator].options - (frozenset() if CENTRAL.get(mechanism, True) else {"radius"}),
    )
    if reason := misfit(estimator, mechanism):
        raise StudyError(f"[{place}] {reason}")
    if "weights" in options and mechanism != MENU:
        raise StudyError(f"[{place}] weights: expected mechanism {MENU!r}, whose levels differ, got {mechanism!r}")
    if mechanism == MENU and estimator in GROUPED | {"notebook-sgd"}:
        raise StudyError(f"[{place}] expected an estimator that weighs reports by their levels, got {estimator!r}")
    rules = OPTIONS if problem.kind == "pairwise" else CHOICE_OPTIONS
    read = {key: _option(rules[key], options[key], f"[{place}] {key}") for key in sorted(options)}
    if reason := conflict(estimator, read, problem.bound is not None):
        raise StudyError(f"[{place}] {reason}")
    return Arm(trust, mechanism, estimator, tuple(read.items()))


def _option(rule: OptionRule, value: Any, place: str) -> Option:
    if (isinstance(value, str) and rule.words) or not rule.number:
        return strict.text(value, place, rule.words)
    number = _decimal(value, place)
    if number < 0 or (number == 0 and not rule.zero):
        raise StudyError(f"{place}: expected a number > 0, got {value!r}")
    return number


def _check_arms(study: Study) -> None:
    names = [arm.name for arm in study.arms]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise StudyError(f"[arm {index + 1}] expected different arms, got {name} twice")
    if study.records is not None:
        check_levels(study.arms, study.grid.epsilon, study.grid.delta)
        check_moment(study.arms, study.records)
        return
    menus = [arm.name for arm in study.arms if arm.mechanism == MENU]
    if menus and study.population is None:
        raise StudyError(f"[population] expected the levels that the menu of {menus[0]} offers")
    if menus and study.problem.model != "btl":
        raise StudyError(f'[problem] model: expected "btl" for {menus[0]}, got {study.problem.model!r}')
    trusts = {arm.trust for arm in study.arms if arm.mechanism != MENU}
    if trusts & {Trust.LOCAL, Trust.CENTRAL, Trust.DISTRIBUTED, Trust.SHUFFLED} and not study.grid.epsilon:
        raise StudyError("[grid] expected the key 'epsilon': an arm makes a claim")
    if Trust.CENTRAL in trusts and not study.grid.delta:
        raise StudyError("[grid] expected the key 'delta': a central arm adds Gaussian noise")
    if Trust.DISTRIBUTED in trusts and not study.grid.delta:
        raise StudyError("[grid] expected the key 'delta': noise in shares keeps no claim without one")
    if Trust.SHUFFLED in trusts:
        if not study.grid.delta:
            raise StudyError("[grid] expected the key 'delta': shuffled reports keep a claim but for a chance")
        if study.problem.features in DRAWN:
            raise StudyError(f"[problem] features: {OWN_FEATURES}")
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
