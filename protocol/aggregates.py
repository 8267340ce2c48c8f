"""How a server makes one vector of many reports about records: names, their options, and claims that they go with.

What each does is in `server.aggregators`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from protocol.arms import Option
from protocol.trust import Trust

CLIPPING, GROUPS, TRIMMED = "centred-clipping", "median-of-means", "trimmed-mean"
OWN = frozenset({"faulty", "radius", "steps", "trim"})  # options of aggregators alone
_WHOLE_RANGE = "one report can move it by the whole range of reports, however many there are"
_FLIPS = "one report can change which reports it follows, and move it by the whole range"


@dataclass(frozen=True)
class Aggregate:
    """An aggregator as arms name it: options that it needs, options that it knows besides.

    `refusal` says why a claim of central privacy may not rest on it; empty where it may.
    """

    needs: frozenset[str] = frozenset()
    knows: frozenset[str] = frozenset()
    refusal: str = ""


AGGREGATES: dict[str, Aggregate] = {
    "mean": Aggregate(),
    "coordinate-median": Aggregate(refusal=_WHOLE_RANGE),
    GROUPS: Aggregate(needs=frozenset({"groups"})),
    TRIMMED: Aggregate(needs=frozenset({"trim"})),
    "geometric-median": Aggregate(refusal=_WHOLE_RANGE),
    "krum": Aggregate(needs=frozenset({"faulty"}), refusal=_FLIPS),
    "multi-krum": Aggregate(needs=frozenset({"faulty"}), refusal=_FLIPS),
    CLIPPING: Aggregate(knows=frozenset({"radius", "steps"})),
}


def central_refusal(name: str) -> str | None:
    """Why a claim of central privacy may not rest on an aggregator; None where it may.

    Raises ValueError for an unknown name.

    >>> central_refusal("trimmed-mean") is None
    True
    """
    if name not in AGGREGATES:
        raise ValueError(f"expected an aggregator of {', '.join(AGGREGATES)}, got {name!r}")
    refusal = AGGREGATES[name].refusal
    if not refusal:
        return None
    usable = ", ".join(other for other, one in AGGREGATES.items() if not one.refusal)
    return f"expected one of {usable} under a central claim, got {name}: {refusal}"


def aggregate_conflict(trust: Trust | None, estimator: str, options: Mapping[str, Option]) -> str | None:
    """Why an arm's aggregator and its options do not go together; None where they do."""
    name = options.get("aggregate")
    if estimator not in ("mean", "descent") or not isinstance(name, str):
        alone = sorted((OWN | ({"groups"} if estimator in ("mean", "descent") else frozenset())) & set(options))
        return f"expected an aggregate beside {', '.join(alone)}" if alone else None
    one, given = AGGREGATES[name], set(options) & (OWN | {"groups"})
    if missing := sorted(one.needs - given):
        return f"expected {', '.join(missing)} beside aggregate = {name!r}"
    if spare := sorted(given - one.needs - one.knows):
        return f"expected no {', '.join(spare)} beside aggregate = {name!r}"
    for key in ("trim", "faulty"):
        share = options.get(key, Decimal(0))
        if not (isinstance(share, Decimal) and share < Decimal("0.5")):
            return f"expected {key} below 0.5, a share of those who report, got {share}"
    return _central_conflict(name, estimator, options) if trust is Trust.CENTRAL else None


def _central_conflict(name: str, estimator: str, options: Mapping[str, Option]) -> str | None:
    if reason := central_refusal(name):
        return reason
    if name != "mean" and options.get("threshold") in ("adaptive", "histogram", "private"):
        return f"expected a threshold that needs no look at records beside aggregate = {name!r}"
    if name == GROUPS:
        return "expected estimator = 'median-of-means' or 'algorithm-3' for medians of groups under a central claim"
    if name == TRIMMED and options.get("norm") == "l2":
        return "expected norm = 'linf' beside aggregate = 'trimmed-mean', which trims each coordinate by itself"
    if name == CLIPPING:
        if options.get("norm") == "linf" or options.get("shape") == "truncate":
            return "expected norm = 'l2' and shape = 'clip' beside aggregate = 'centred-clipping': holders clip lengths"
        if "radius" in options:
            return "expected the radius of centred clipping as threshold under a central claim: holders clip"
        if "steps" in options and estimator == "descent":
            return "expected no steps beside centred clipping in a descent: each of its rounds is one"
    return None
