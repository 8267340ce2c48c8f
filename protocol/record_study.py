"""Arms of a study file about records, read strictly."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from protocol import strict
from protocol.aggregates import aggregate_conflict
from protocol.arms import Arm, Option, OptionRule
from protocol.problem import Problem
from protocol.record_arms import PRINTED, RECORD_ESTIMATORS, RECORD_OPTIONS, is_pure, record_mechanisms
from protocol.record_conflicts import (
    constants_conflict,
    looking_conflict,
    record_conflict,
    shares_conflict,
    sparse_conflict,
    theory_conflict,
    unused_conflict,
)
from protocol.record_law import RecordLaw
from protocol.strict import StudyError
from protocol.trust import SIGHT, Trust

CLAIMING = (Trust.LOCAL, Trust.CENTRAL, Trust.DISTRIBUTED)
NOT_SHUFFLED = (
    "expected local, distributed or central for records: labels are shuffled among those who answered one question; "
    "records have no questions (docs/BETWEEN.md, 2)"
)
Read = Callable[[OptionRule, Any, str], Option]


def record_arm(content: Any, place: str, problem: Problem, read: Read) -> Arm:
    """One [[arm]] table; `read` reads an option by its rule. Raises StudyError."""
    top = strict.table(content, place, {"trust", "mechanism", "estimator", *RECORD_OPTIONS}, ("trust", "estimator"))
    name = strict.text(top["trust"], f"[{place}] trust", [*(trust.label for trust in SIGHT), "none"])
    trust = None if name == "none" else Trust.parse(name)
    if trust is Trust.SHUFFLED:
        raise StudyError(f"[{place}] trust: {NOT_SHUFFLED}")
    known = {
        name: known
        for (where, name), known in RECORD_ESTIMATORS.items()
        if where == trust and problem.model in known.models
    }
    estimator = strict.text(top["estimator"], f"[{place}] estimator", known)
    offered = record_mechanisms(trust, estimator)
    usual = PRINTED.get(estimator, offered[0])
    mechanism = strict.text(top.get("mechanism", usual), f"[{place}] mechanism", offered)
    chosen = {key: value for key, value in top.items() if key not in ("trust", "mechanism", "estimator")}
    strict.table(chosen, place, known[estimator].options)
    options = {key: read(RECORD_OPTIONS[key], chosen[key], f"[{place}] {key}") for key in sorted(chosen)}
    reason = record_conflict(options, problem.bound is not None) or shares_conflict(trust, options)
    reason = reason or sparse_conflict(known[estimator], mechanism, options, problem.dimension)
    reason = reason or unused_conflict(trust, estimator, mechanism, options, problem.dimension)
    reason = reason or theory_conflict(trust, known[estimator], options, problem.bound is not None)
    reason = reason or constants_conflict(known[estimator], options, problem.model)
    reason = reason or looking_conflict(trust, estimator, options) or aggregate_conflict(trust, estimator, options)
    if reason:
        raise StudyError(f"[{place}] {reason}")
    own = {"rounds", "sparsity"} & known[estimator].options == {"rounds"}  # sparse ones have a step from the law
    if "step" not in options and own and problem.model != "mean":
        raise StudyError(f"[{place}] step: expected a number: 1 / (smoothness of the loss) is what theory asks for")
    return Arm(trust, mechanism, estimator, tuple(options.items()))


def needs_moment(arm: Arm) -> bool:
    """Whether a claim's threshold, or its number of rounds, follows from a tail and a moment."""
    rule = arm.get("threshold") in (None, "bound", "mse", "paper", "theory")
    return arm.trust in CLAIMING and (rule or arm.get("rounds") == "theory")


def check_moment(arms: tuple[Arm, ...], records: RecordLaw) -> None:
    """Raise StudyError where nothing says how an arm bounds contributions."""
    if records.moment is None:
        for arm in filter(needs_moment, arms):
            own = "threshold" in RECORD_ESTIMATORS[arm.trust, arm.estimator].options
            which = "or a threshold, a number" if own else "since it has no threshold of its own"
            raise StudyError(f"[records] expected tail and moment for {arm.name}, {which}")


def check_levels(arms: tuple[Arm, ...], epsilon: tuple[Decimal, ...], delta: tuple[Decimal, ...]) -> None:
    """Raise StudyError where an arm makes a claim that the grid has no level for."""
    claims = [arm for arm in arms if arm.trust in CLAIMING]
    if claims and not epsilon:
        raise StudyError("[grid] expected the key 'epsilon': an arm makes a claim")
    if any(not is_pure(arm) for arm in claims) and not delta:
        raise StudyError("[grid] expected the key 'delta': an arm adds Gaussian noise")
