"""Arms of studies about records: mechanisms, algorithms as estimators, their options; and what can go together."""

from collections.abc import Mapping

from protocol.arms import Arm, Known, Option, OptionRule
from protocol.numeric import NUMERIC
from protocol.trust import Trust

# What a trusted curator does with bounded contributions, and the parameters beside epsilon, delta and the bound.
RECORD_CENTRAL: dict[str, frozenset[str]] = {
    "gaussian": frozenset(),
    "gaussian-classical": frozenset(),
}
RECORD_MECHANISMS: dict[Trust | None, tuple[str, ...]] = {
    None: ("none",),
    Trust.CLEAR: ("none",),
    Trust.LOCAL: tuple(NUMERIC),
    Trust.CENTRAL: tuple(RECORD_CENTRAL),
}

_MODELS = frozenset({"mean", "linear", "logistic"})
_MEAN = frozenset({"mean"})
_BOUND = frozenset({"threshold", "shape", "norm"})
_DESCENT = frozenset({"rounds", "step", "batches", "average", "project", "ridge"})
RECORD_ESTIMATORS: dict[tuple[Trust | None, str], Known] = {
    (None, "zero"): Known(models=_MODELS),
    (Trust.CLEAR, "mean"): Known(models=_MEAN),
    (Trust.CLEAR, "descent"): Known(_DESCENT, _MODELS),
    (Trust.CENTRAL, "mean"): Known(_BOUND, _MEAN),
    (Trust.CENTRAL, "algorithm-1"): Known(models=_MEAN),
    (Trust.CENTRAL, "algorithm-3"): Known(models=_MEAN),
    (Trust.CENTRAL, "median-of-means"): Known(_BOUND | {"groups"}, _MEAN),
    (Trust.CENTRAL, "descent"): Known(_BOUND | _DESCENT, _MODELS),
    (Trust.CENTRAL, "algorithm-2-convex"): Known(frozenset({"rounds", "step", "project"}), _MODELS),
    (Trust.CENTRAL, "algorithm-2-strong"): Known(frozenset({"rounds", "step", "project"}), _MODELS),
    (Trust.LOCAL, "mean"): Known(frozenset({"threshold", "shape", "coordinates"}), _MEAN),
    (Trust.LOCAL, "descent"): Known(_DESCENT | {"threshold", "shape", "coordinates"}, _MODELS),
}
# Algorithms of the paper as printed: their mechanism is the classical Gaussian one.
PRINTED = dict.fromkeys(
    ("algorithm-1", "algorithm-3", "algorithm-2-convex", "algorithm-2-strong"), "gaussian-classical"
)

RECORD_OPTIONS: dict[str, OptionRule] = {
    "average": OptionRule(frozenset({"all", "half", "last"}), number=False),
    "batches": OptionRule(frozenset({"all", "disjoint"}), number=False),
    "coordinates": OptionRule(),
    "groups": OptionRule(),
    "norm": OptionRule(frozenset({"l2", "linf"}), number=False),
    "project": OptionRule(frozenset({"ball", "box", "none", "simplex", "sum-zero"}), number=False),
    "ridge": OptionRule(),
    "rounds": OptionRule(),
    "shape": OptionRule(frozenset({"clip", "truncate"}), number=False),
    "step": OptionRule(),
    "threshold": OptionRule(frozenset({"bound", "mse", "paper"})),
}
PURE = frozenset(
    {"duchi", "duchi-ball", "duchi-cube", "hybrid", "laplace", "piecewise", "priv-unit", "priv-unit-gaussian"}
)
WHOLE = ("coordinates", "groups", "rounds")


def is_pure(arm: Arm) -> bool:
    """Whether an arm's claim has delta = 0."""
    return arm.trust is Trust.LOCAL and arm.mechanism in PURE


def record_conflict(options: Mapping[str, Option], ball: bool) -> str | None:
    """Why options of an arm about records do not go together; None where they do."""
    for name in WHOLE:
        value = options.get(name, 1)
        if not isinstance(value, str) and value != int(value):
            return f"expected a whole number as {name}, got {value}"
    if options.get("project") in ("ball", "box") and not ball:
        return "expected a bound in [problem], the ball's radius or the box's half side, to project on"
    return None
