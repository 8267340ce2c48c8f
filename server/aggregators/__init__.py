"""How the server makes one vector of many reports, some of which may be lies, by name."""

from protocol.aggregates import AGGREGATES, central_refusal
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

__all__ = ["AGGREGATORS", "central_refusal"]

AGGREGATORS: dict[str, Aggregator] = {
    "mean": Aggregator(mean.mean, mean.sensitivity, mean.breakdown),
    "coordinate-median": Aggregator(
        coordinate_median.coordinate_median,
        coordinate_median.sensitivity,
        coordinate_median.breakdown,
        central=False,
        refusal=AGGREGATES["coordinate-median"].refusal,
    ),
    "median-of-means": Aggregator(
        median_of_means.median_of_means, median_of_means.sensitivity, median_of_means.breakdown
    ),
    "trimmed-mean": Aggregator(trimmed_mean.trimmed_mean, trimmed_mean.sensitivity, trimmed_mean.breakdown),
    "geometric-median": Aggregator(
        geometric_median.geometric_median,
        None,
        geometric_median.breakdown,
        central=False,
        refusal=AGGREGATES["geometric-median"].refusal,
    ),
    "krum": Aggregator(krum.krum, None, krum.breakdown, central=False, refusal=AGGREGATES["krum"].refusal),
    "multi-krum": Aggregator(
        krum.multi_krum, None, krum.breakdown, central=False, refusal=AGGREGATES["multi-krum"].refusal
    ),
    "centred-clipping": Aggregator(
        centred_clipping.centred_clipping, centred_clipping.sensitivity, centred_clipping.breakdown
    ),
}
