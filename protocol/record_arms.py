"""Arms of studies about records: mechanisms, algorithms as estimators, and their options."""

from protocol.aggregates import AGGREGATES
from protocol.arms import DISTRIBUTED, Arm, Known, OptionRule
from protocol.numeric import NUMERIC
from protocol.trust import Trust

# What a trusted curator does with bounded contributions, and the parameters beside epsilon, delta and the bound.
_SELECTED = frozenset({"sparsity", "step", "split"})
_ADAPTIVE = frozenset({"counted", "first", "quantile", "rate"})
_COMBINED = frozenset({"batch", "groups", "trim"})  # of what is made of several sums, or of rows, before noise
EXCEEDANCES = "exceedances"  # counts on a grid, for a private choice of a threshold: asked beside an arm's mechanism
RECORD_CENTRAL: dict[str, frozenset[str]] = {
    "gaussian": _ADAPTIVE | _COMBINED,
    "gaussian-classical": _ADAPTIVE | _COMBINED,
    EXCEEDANCES: frozenset({"bins", "decay", "highest", "lowest", "target"}),
    "gumbel-gaussian": _SELECTED,
    "peeling-paper": _SELECTED,
    "peeling-cai": _SELECTED,
    "peeling-zcdp": _SELECTED,
    "peeling-pure": _SELECTED,
    "permute-and-flip": _SELECTED,
}
RECORD_MECHANISMS: dict[Trust | None, tuple[str, ...]] = {
    None: ("none",),
    Trust.CLEAR: ("none",),
    Trust.LOCAL: ("piecewise", *(name for name in NUMERIC if name != "piecewise")),
    Trust.CENTRAL: tuple(name for name in RECORD_CENTRAL if name != EXCEEDANCES),
    Trust.DISTRIBUTED: DISTRIBUTED,
}
# Mechanisms that let the largest coordinates of a step out, and values of them: of sparse estimators alone.
SELECTING = tuple(name for name, known in RECORD_CENTRAL.items() if known == _SELECTED)

_AGGREGATE = frozenset({"aggregate", "faulty", "groups", "radius", "steps", "trim"})
_MODELS = frozenset({"mean", "linear", "logistic"})
_MEAN = frozenset({"mean"})
_BOUND = frozenset({"threshold", "shape", "norm"})
_ADDED = frozenset({"neighbours"})
_SHARED = frozenset({"honest", "rotate", "survivors"})  # of noise in shares
_FOLLOWED = _BOUND | {"first", "quantile", "rate"}
_CHOSEN = frozenset({"choice_share", "choice_failure", "choice_weight"})
_RECENTRED = frozenset({"recentre", "recentred_moment"})
_STEPS = frozenset({"rounds", "step", "curvature", "smoothness", "project"})
_DESCENT = _STEPS | {"batches", "average", "ridge"}
_SPARSE = _STEPS | {"sparsity", "support"}
_LOCAL = frozenset({"threshold", "shape", "coordinates"})
RECORD_ESTIMATORS: dict[tuple[Trust | None, str], Known] = {
    (None, "zero"): Known(models=_MODELS),
    (Trust.CLEAR, "mean"): Known(frozenset({"threshold", "shape"}) | _AGGREGATE, _MEAN),
    (Trust.CLEAR, "median-of-means"): Known(frozenset({"groups"}), _MEAN),
    (Trust.CLEAR, "descent"): Known(_DESCENT | _AGGREGATE, _MODELS),
    (Trust.CENTRAL, "mean"): Known(_BOUND | _ADDED | _CHOSEN | _AGGREGATE, _MEAN),
    (Trust.CENTRAL, "recentred-mean"): Known(frozenset({"shape", "norm"}) | _RECENTRED, _MEAN),
    (Trust.CENTRAL, "algorithm-1"): Known(models=_MEAN),
    (Trust.CENTRAL, "algorithm-3"): Known(frozenset({"groups", "shape", "threshold"}), _MEAN),
    (Trust.CENTRAL, "median-of-means"): Known(_BOUND | _ADDED | {"groups"}, _MEAN),
    (Trust.CENTRAL, "descent"): Known(_FOLLOWED | _ADDED | _CHOSEN | _DESCENT | _AGGREGATE, _MODELS),
    (Trust.CENTRAL, "algorithm-2-convex"): Known(_STEPS | {"threshold"}, _MODELS),
    (Trust.CENTRAL, "algorithm-2-strong"): Known(_STEPS | {"threshold"}, _MODELS),
    (Trust.DISTRIBUTED, "mean"): Known(_BOUND | _ADDED | _SHARED, _MEAN),
    (Trust.DISTRIBUTED, "descent"): Known(_BOUND | _ADDED | _SHARED | _DESCENT, _MODELS),
    (Trust.DISTRIBUTED, "median-of-means"): Known(_BOUND | _ADDED | _SHARED | {"groups"}, _MEAN),
    (Trust.LOCAL, "mean"): Known(_LOCAL | _AGGREGATE | {"choice_share"}, _MEAN),
    (Trust.LOCAL, "recentred-mean"): Known(frozenset({"shape", "coordinates"}) | _RECENTRED, _MEAN),
    (Trust.LOCAL, "descent"): Known(_DESCENT | _LOCAL | _AGGREGATE, _MODELS),
    (Trust.CLEAR, "hard-thresholding"): Known(_SPARSE | {"batches", "threshold", "shape"}, _MODELS),
    (Trust.CENTRAL, "hard-thresholding"): Known(_SPARSE | {"batches", "split", "threshold", "shape"}, _MODELS),
    (Trust.CENTRAL, "algorithm-5"): Known(_SPARSE, _MODELS),  # any selection, all else as printed
    (Trust.LOCAL, "hard-thresholding"): Known(_SPARSE | _LOCAL, _MODELS),
    (Trust.LOCAL, "two-phase"): Known(_SPARSE | _LOCAL, _MODELS),
    (Trust.LOCAL, "votes"): Known(_SPARSE | _LOCAL, _MODELS),
}
# Algorithms of the paper as printed, and their mechanism: mostly the classical Gaussian one.
PRINTED = {
    **dict.fromkeys(("algorithm-1", "algorithm-3", "algorithm-2-convex", "algorithm-2-strong"), "gaussian-classical"),
    "algorithm-5": "peeling-paper",
}

RECORD_OPTIONS: dict[str, OptionRule] = {
    "aggregate": OptionRule(frozenset(AGGREGATES), number=False),
    "average": OptionRule(frozenset({"all", "half", "last"}), number=False),
    "batches": OptionRule(frozenset({"all", "disjoint"}), number=False),
    "choice_failure": OptionRule(),
    "choice_share": OptionRule(),
    "choice_weight": OptionRule(frozenset({"none", "square"}), number=False),
    "coordinates": OptionRule(),
    "curvature": OptionRule(),
    "faulty": OptionRule(),
    "first": OptionRule(),
    "groups": OptionRule(),
    "honest": OptionRule(),
    "neighbours": OptionRule(frozenset({"add-remove", "replace"}), number=False),
    "norm": OptionRule(frozenset({"l2", "linf"}), number=False),
    "project": OptionRule(frozenset({"ball", "box", "none", "simplex", "sum-zero"}), number=False),
    "quantile": OptionRule(),
    "radius": OptionRule(),
    "rate": OptionRule(),
    "recentre": OptionRule(frozenset({"always", "many"}), number=False),
    "recentred_moment": OptionRule(),
    "ridge": OptionRule(),
    "rotate": OptionRule(frozenset({"hadamard", "none"}), number=False),
    "rounds": OptionRule(frozenset({"theory"})),
    "shape": OptionRule(frozenset({"clip", "truncate"}), number=False),
    "smoothness": OptionRule(),
    "sparsity": OptionRule(),
    "split": OptionRule(),
    "step": OptionRule(frozenset({"theory"})),
    "steps": OptionRule(),
    "support": OptionRule(),
    "survivors": OptionRule(),
    "threshold": OptionRule(frozenset({"adaptive", "bound", "histogram", "mse", "paper", "private", "theory"})),
    "trim": OptionRule(),
}
# Rules for a threshold that look at records, at a part of the claim: who knows them.
LOOKING: dict[str, tuple[tuple[Trust, str], ...]] = {
    "private": ((Trust.CENTRAL, "mean"), (Trust.CENTRAL, "descent"), (Trust.LOCAL, "mean")),
    "histogram": ((Trust.CENTRAL, "mean"), (Trust.CENTRAL, "descent")),
    "adaptive": ((Trust.CENTRAL, "descent"),),
}
PURE = frozenset(
    {
        "discrete-laplace",
        "duchi",
        "duchi-ball",
        "duchi-cube",
        "hybrid",
        "laplace",
        "piecewise",
        "priv-unit",
        "priv-unit-gaussian",
    }
)
PURE_SELECTING = frozenset({"peeling-pure", "permute-and-flip"})


def is_pure(arm: Arm) -> bool:
    """Whether an arm's claim has delta = 0."""
    return arm.mechanism in {Trust.LOCAL: PURE, Trust.CENTRAL: PURE_SELECTING}.get(arm.trust or Trust.CLEAR, ())


def record_mechanisms(trust: Trust | None, estimator: str) -> tuple[str, ...]:
    """What records may go through for an estimator; the first one is the default."""
    if trust is not Trust.CENTRAL:
        return RECORD_MECHANISMS[trust]
    sparse = "sparsity" in RECORD_ESTIMATORS[trust, estimator].options
    return SELECTING if sparse else tuple(name for name in RECORD_MECHANISMS[trust] if name not in SELECTING)
