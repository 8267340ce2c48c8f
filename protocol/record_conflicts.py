"""What cannot go together in an arm about records, and why."""

from collections.abc import Mapping
from decimal import Decimal

from protocol.arms import USUAL_SURVIVORS, Known, Option
from protocol.numeric.coordinates import SCALARS
from protocol.record_arms import LOOKING
from protocol.trust import Trust

WHOLE = ("coordinates", "groups", "rounds", "sparsity", "steps", "support")
MOST_GROUPS = 1000  # of a curator: each is a sum with a charge and a release of its own
THEOREMS = ("descent", "algorithm-2-convex", "algorithm-2-strong")  # a trusted curator's, of Theorems 6 and 7


def sparse_conflict(estimator: Known, mechanism: str, options: Mapping[str, Option], dimension: int) -> str | None:
    """Why an arm does not say what a sparse estimator needs; None where it does, and for other estimators."""
    if "sparsity" not in estimator.options:
        return None
    if "support" in options and "sparsity" in options:
        return "expected a sparsity or a support, not both: how many coordinates are kept follows from the latter"
    name = "support" if "support" in options else "sparsity"
    number, split = options.get(name), options.get("split", Decimal("0.5"))
    if not isinstance(number, Decimal) or not 1 <= number <= dimension:
        what = "the answer has" if name == "support" else "are kept"
        return f"expected a {name} in 1..{dimension}: how many coordinates {what}"
    if "split" in options and mechanism != "gumbel-gaussian":
        return "expected no split beside another mechanism than gumbel-gaussian, whose noise has two scales"
    if not (isinstance(split, Decimal) and 0 < split < 1):
        return f"expected a split between 0 and 1, got {split}"
    return None


def constants_conflict(estimator: Known, options: Mapping[str, Option], model: str) -> str | None:
    """Why the constants that a sparse arm gives do not decide anything, or not enough; None where they do."""
    if "sparsity" not in estimator.options:
        return None
    given = {"curvature", "smoothness"} & set(options)
    if model == "mean" and (given or "support" in options):
        return "expected no curvature, smoothness and support of a mean: one step of length 1 is all it needs"
    if "support" in options and len(given) < 2:
        return "expected curvature and smoothness beside support: (smoothness / curvature)^2 times it are kept"
    both = "support" in options or "rounds" not in options
    used = {"curvature", "smoothness"} if both else {"smoothness"} if "step" not in options else set()
    if given - used:
        return f"expected no {' and no '.join(sorted(given - used))} where nothing uses them: rounds or step are said"
    return None


def record_conflict(options: Mapping[str, Option], ball: bool) -> str | None:
    """Why options of an arm about records do not go together; None where they do."""
    for name in WHOLE:
        value = options.get(name, 1)
        if not isinstance(value, str) and value != int(value):
            return f"expected a whole number as {name}, got {value}"
    if options.get("project") in ("ball", "box") and not ball:
        return "expected a bound in [problem], the ball's radius or the box's half side, to project on"
    return None


def shares_conflict(trust: Trust | None, options: Mapping[str, Option]) -> str | None:
    """Why what an arm says of noise in shares cannot be; None where it can, and for other trust models."""
    if trust is not Trust.DISTRIBUTED:
        return None
    if options.get("neighbours") == "add-remove":
        return (
            "expected neighbours = 'replace' without a curator: how many rows each member has is in a session's "
            "roster, for all to see"
        )
    if options.get("rotate", "none") != "none" and options.get("norm") != "l2":
        return "expected norm = 'l2' beside rotate: only a bound of lengths is kept where coordinates turn"
    survivors, honest = options.get("survivors", USUAL_SURVIVORS), options.get("honest")
    if not (isinstance(survivors, Decimal) and 0 < survivors <= 1):
        return f"expected survivors, a share of the rows that are asked, above 0 and at most 1, got {survivors}"
    if honest is not None and not (isinstance(honest, Decimal) and 0 < honest <= survivors):
        return f"expected honest, a share of the rows that are asked, above 0 and at most {survivors}, got {honest}"
    return None


def unused_conflict(
    trust: Trust | None, estimator: str, mechanism: str, options: Mapping[str, Option], dimension: int
) -> str | None:
    """Why an option of an arm about records would not be acted on; None where all are."""
    rule, coordinates, groups = (options.get(name) for name in ("threshold", "coordinates", "groups"))
    if trust in (Trust.CENTRAL, Trust.DISTRIBUTED) and isinstance(groups, Decimal) and groups > MOST_GROUPS:
        return f"expected at most {MOST_GROUPS} groups, got {groups}: each is asked and released by itself"
    if rule == "theory" and trust in (Trust.CENTRAL, Trust.DISTRIBUTED):
        if estimator not in THEOREMS:
            return f"expected another threshold than 'theory', which is that of descents: {', '.join(THEOREMS)}"
    elif isinstance(rule, str) and rule not in LOOKING:
        if trust is Trust.CLEAR or estimator.startswith("algorithm-"):
            return f"expected a number as threshold, got {rule!r}: there are no rules here"
        if trust is Trust.LOCAL and rule != "mse":
            return f"expected threshold = 'mse', a number, or none where holders randomise, got {rule!r}"
    if isinstance(coordinates, Decimal):
        if mechanism not in SCALARS:
            return f"expected no coordinates beside {mechanism}, which reports all of them: {', '.join(SCALARS)} do not"
        if coordinates > dimension:
            return f"expected coordinates in 1..{dimension}, got {coordinates}"
    if trust is Trust.CLEAR and "shape" in options and rule is None:
        return "expected a threshold beside shape: without a claim nothing is bounded otherwise"
    return None


def theory_conflict(trust: Trust | None, estimator: Known, options: Mapping[str, Option], ball: bool) -> str | None:
    """Why rounds and steps of an arm cannot be those of the theorems; None where they can, or are not to be."""
    theory = {name for name in ("rounds", "step") if options.get(name) == "theory"}
    strength, smoothness = options.get("curvature"), options.get("smoothness")
    if theory and "sparsity" in estimator.options:
        return f"expected no {' and no '.join(sorted(theory))}, or numbers: where none is said it is the theorem's"
    if "rounds" in theory and trust is not Trust.CENTRAL:
        return "expected a number of rounds: the theorems that name one are about a trusted curator"
    if "rounds" in theory and options.get("threshold") in LOOKING:
        return "expected a number of rounds beside a threshold that is chosen by looking"
    if "rounds" in theory and not ball:
        return "expected a bound in [problem] for rounds = 'theory', which takes the ball's diameter from it"
    if not theory and (strength or smoothness) and "sparsity" not in estimator.options:
        return "expected rounds = 'theory' or step = 'theory' beside curvature and smoothness: nothing else uses them"
    if isinstance(strength, Decimal) and isinstance(smoothness, Decimal) and strength > smoothness:
        return f"expected curvature <= smoothness, got {strength} > {smoothness}"
    return None


def looking_conflict(trust: Trust | None, estimator: str, options: Mapping[str, Option]) -> str | None:
    """Why a threshold that is chosen by looking, and its options, do not fit an arm; None where they do."""
    rule = options.get("threshold")
    knows = (trust, estimator) in LOOKING.get(rule, ()) if isinstance(rule, str) else False
    if rule in LOOKING and not knows:
        return f"expected a threshold that needs no look at records, got {rule!r}: {estimator} has no budget for it"
    mine = {name for name in options if name.startswith("choice_")}
    if mine and rule not in ("private", "histogram"):
        return f"expected threshold = 'private' or 'histogram' beside {sorted(mine)}"
    if options.get("neighbours") == "add-remove" and (rule in LOOKING or options.get("aggregate", "mean") != "mean"):
        return "expected neighbours = 'replace' beside a threshold that is chosen by looking, and beside an aggregate"
    if {"first", "rate", "quantile"} & set(options) and rule != "adaptive":
        return "expected threshold = 'adaptive' beside first, rate and quantile"
    for name in ("choice_share", "choice_failure", "quantile"):
        value = options.get(name)
        if isinstance(value, Decimal) and not 0 < value < 1:
            return f"expected {name} between 0 and 1, got {value}"
    return None
