"""How the server makes one vector of many reports, some of which may be lies, by name."""

from server.aggregators import (
    centred_clipping,
    coordinate_median,
    geometric_median,
    krum,
    mean,
    median_of_means,
    trimmed_mean,
)
from server.aggregators.base import Aggregator

_WHOLE_RANGE = "one report can move it by the whole range of reports, however many there are"
_FLIPS = "one report can change which reports it follows, and move it by the whole range"

AGGREGATORS: dict[str, Aggregator] = {
    "mean": Aggregator(mean.mean, mean.sensitivity, mean.breakdown),
    "coordinate-median": Aggregator(
        coordinate_median.coordinate_median,
        coordinate_median.sensitivity,
        coordinate_median.breakdown,
        central=False,
        refusal=_WHOLE_RANGE,
    ),
    "median-of-means": Aggregator(
        median_of_means.median_of_means, median_of_means.sensitivity, median_of_means.breakdown
    ),
    "trimmed-mean": Aggregator(trimmed_mean.trimmed_mean, trimmed_mean.sensitivity, trimmed_mean.breakdown),
    "geometric-median": Aggregator(
        geometric_median.geometric_median, None, geometric_median.breakdown, central=False, refusal=_WHOLE_RANGE
    ),
    "krum": Aggregator(krum.krum, None, krum.breakdown, central=False, refusal=_FLIPS),
    "multi-krum": Aggregator(krum.multi_krum, None, krum.breakdown, central=False, refusal=_FLIPS),
    "centred-clipping": Aggregator(
        centred_clipping.centred_clipping, centred_clipping.sensitivity, centred_clipping.breakdown
    ),
}


def central_refusal(name: str) -> str | None:
    """Why a claim of central privacy may not rest on an aggregator; None where it may.

    Raises ValueError for an unknown name.

    >>> central_refusal("trimmed-mean") is None
    True
    """
    if name not in AGGREGATORS:
        raise ValueError(f"expected an aggregator of {', '.join(AGGREGATORS)}, got {name!r}")
    found = AGGREGATORS[name]
    if found.central:
        return None
    usable = ", ".join(other for other, one in AGGREGATORS.items() if one.central)
    return f"expected one of {usable} under a central claim, got {name}: {found.refusal}"
