"""How far liars move an estimate, and from which share of them on it is worth nothing."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from protocol.arms import GROUPED, Arm
from protocol.coins import Floats
from protocol.decimals import decimal
from protocol.features import coordinates, row_bound
from protocol.study import Study
from protocol.trust import Trust
from server.aggregators import AGGREGATORS
from server.algorithms.aggregates import options_of
from server.tasks import usual_radius
from studies.attacks.study_file import AttackStudy, Liars
from studies.moments import dot, fresh
from studies.results import SCHEMA as RESULTS

KEPT = (
    *("n", "epsilon", "delta", "trust", "mechanism", "estimator", "arm", "repetition"),
    *("error_l2", "error_sigma", "excess_log_loss", "accuracy", "hit_boundary", "warnings", "theta"),
)
SCHEMA = pa.schema(
    [
        pa.field("liars", pa.string(), nullable=False),
        pa.field("how", pa.string(), nullable=False),
        pa.field("by", pa.string(), nullable=False),
        pa.field("fraction", pa.float64(), nullable=False),
        *(RESULTS.field(name) for name in KEPT),
        pa.field("angle", pa.float64()),
        pa.field("kendall", pa.float64()),
    ]
)
_MEANS = frozenset({"mle", "debiased"})  # estimators that see one sum of all labels
_ROWS = 1 << 16


def ranked(theta: Floats, truth: Floats) -> dict[str, float | None]:
    """The angle to the truth in degrees, and Kendall's tau of the coordinates' order; None for an estimate of 0.

    tau = (concordant - discordant) / all pairs of coordinates that the truth tells apart.
    """
    size = float(np.sqrt((theta**2).sum() * (truth**2).sum()))
    if size == 0.0:
        return {"angle": None, "kendall": None}
    cosine = float(dot(theta[None, :], truth)[0]) / size
    above = np.triu_indices(len(truth), 1)
    order = np.sign(truth[above[0]] - truth[above[1]])
    found = np.sign(theta[above[0]] - theta[above[1]])
    told = int(np.abs(order).sum())
    return {
        "angle": math.degrees(math.acos(max(-1.0, min(1.0, cosine)))),
        "kendall": float((order * found).sum()) / told if told else None,
    }


def rows(liars: Liars, fraction: float, results: pa.Table, truth: Floats) -> list[dict[str, Any]]:
    """The rows of a results table, with who lied in them."""
    who = {"liars": liars.name, "how": liars.how, "by": liars.by, "fraction": fraction}
    played = results.select(list(KEPT)).to_pylist()
    return [who | row | ranked(np.array(row["theta"]), truth) for row in played]


def predicted(study: AttackStudy, liars: Liars, arm: Arm, epsilon: float | None, n: int) -> float | None:
    """The breakdown point by theory, as a share of labelers or nodes; None where none is known.

    Of an estimator that sees one sum, and of robust means where labelers lie in every group: the share f at which liars
    cancel all that the sum says about theta*, (1 - f) m = f w, m = E[(sigma(z) - 1/2) z], z = theta* . x; a liar's own
    w is k m ("flipped"), k E|z| / 2 ("collude") or |theta*|_1 times the largest coordinate that a row may have
    ("extreme" in the central model), with k = coth(epsilon / 2) for local labels and 1 for others. With flipped labels
    that is f = 1 / (1 + k) = (1 - e^-epsilon) / 2, whatever theta* is.
    Of robust means where nodes lie that are the groups: the least share of nodes that is no longer outvoted.
    Of records: the largest share of clear reports, or of rows that a curator sees, that the arm's aggregator outvotes;
    the same of nodes where they are the groups. Not of randomised reports, where lies weigh more than what is honest.
    """
    if study.loaded.study.records is not None:
        return _outvoted_reports(study, liars, arm, n)
    robust = arm.estimator in GROUPED
    if robust and liars.by == "nodes":
        return _outvoted(arm, study.nodes)
    logistic = study.loaded.study.problem.model == "btl"
    if liars.how in ("random", "push") or not (logistic and (robust or arm.estimator in _MEANS)):
        return None
    z = dot(_typical(study.loaded.study), study.loaded.theta)
    honest = float((0.5 * np.tanh(0.5 * z) * z).mean())
    if not honest:
        return None
    weight = 1.0 / math.tanh(0.5 * epsilon) if arm.trust is Trust.LOCAL and epsilon is not None else 1.0
    lie = weight * (honest if liars.how == "flipped" else float(np.abs(z).mean()) / 2.0)
    if liars.how == "extreme" and arm.trust is Trust.CENTRAL:
        lie = _extreme(study, arm, n)
    share = honest / (honest + lie)
    return share / (share + liars.counted * (1.0 - share))


def _outvoted(arm: Arm, nodes: int) -> float | None:
    groups = int(decimal(arm.get("groups") or 20, "groups"))
    if groups != nodes:
        return None
    if arm.estimator.endswith("median-of-means"):
        return -(-groups // 2) / groups
    return (int(float(decimal(arm.get("trim") or "0.25", "trim")) * groups) + 1) / groups


def _outvoted_reports(study: AttackStudy, liars: Liars, arm: Arm, n: int) -> float | None:
    if arm.estimator == "median-of-means" and liars.by == "nodes":
        return _outvoted(arm, study.nodes)
    groups = arm.estimator == "median-of-means" and arm.get("groups")
    name = arm.get("aggregate") or ("median-of-means" if groups else "mean")
    if name == "mean" or arm.trust is Trust.LOCAL or (name == "centred-clipping" and arm.trust is Trust.CENTRAL):
        return None
    return AGGREGATORS[str(name)].breakdown(n, options_of(arm, n))


def _typical(study: Study) -> Floats:
    """Rows x of the study's law, or all of its given ones, shape (rows, dimension)."""
    return fresh(study.problem, study.seed, _ROWS, repetition=1)


def _extreme(study: AttackStudy, arm: Arm, n: int) -> float:
    """|u*|_1 times the largest coordinate of a row, u* in reduced coordinates."""
    problem, radius = study.loaded.study.problem, arm.get("radius")
    clip = None
    if arm.mechanism.endswith("clipped"):
        clip = float(radius) if radius is not None else usual_radius(problem, n, arm.mechanism)
    return float(np.abs(coordinates(problem, study.loaded.theta)).sum()) * row_bound(problem, clip)
