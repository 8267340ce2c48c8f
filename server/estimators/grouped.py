"""Estimators for when some labelers lie: a median or a trimmed mean over groups of rows, in place of the mean."""

import math
from collections.abc import Callable

import numpy as np

from protocol.warned import warn
from server.estimators.base import Estimate, Options, wins
from server.estimators.covariance import with_interval
from server.estimators.workspace import Reports, Workspace, logistic_minimum
from server.groups import row_groups
from server.kernels import Array

ROUNDS = 3  # of centring
_NO_INTERVAL = warn("interval-not-valid", "nobody knows which groups hold liars")


def median_of_means(known: Reports, options: Options) -> Estimate:
    """Minimiser of the de-biased loss whose sum of labels is the median over groups of rows, coordinate by coordinate.

    argmin over ||u|| <= bound of A(u) - m . u, m = g(u') + median_k [S_k / (n_k c) - g_k(u')], S_k = sum of (y_i - 1/2)
    v_i over group k of options.groups runs of n_k rows, g_k and g the gradients of A over the group and over all rows;
    u' = 0 at first (g = 0), then the last u, three rounds in all. At a fixed point median_k of the groups' scores is 0,
    so that groups with other features are not taken for liars.
    Liars in fewer than half of the groups move it by a bounded amount, whatever they report; liars in every group are
    not found. Costs pi/2 times the variance of the mean, coordinate by coordinate; with few rows a group the median of
    its skewed mean is off by (1/6) skewness sd / sqrt(n_k), which does not vanish with the number of groups.
    No interval: nobody knows which groups lie.
    Guarantee: that of the reported labels, or of the curator's sums by group; this is post-processing.
    Raises ValueError for a stream, fewer than three groups or more than rows, and EstimationError where bound is inf
    and there is no minimiser.
    Source: Minsker 2015, medians of means; on scores of randomised labels derived, see docs/ATTACKS.md.
    """
    return _estimate(known, options, lambda values: np.asarray(np.median(values, axis=0)))


def trimmed_mean(known: Reports, options: Options) -> Estimate:
    """As `median_of_means`, with the mean of what is left without the options.trim largest and smallest share.

    Of G groups floor(trim G) are left out at each end, coordinate by coordinate: liars in as many groups move it by a
    bounded amount. Costs less variance than the median while trim is small.
    Guarantee: that of the reported labels, or of the curator's sums by group; this is post-processing.
    Raises what `median_of_means` does.
    Source: Yin, Chen, Ramchandran, Bartlett 2018, Definition 2; on scores of randomised labels derived, see
    docs/ATTACKS.md.
    """
    return _estimate(known, options, lambda values: trimmed(values, options.trim))


def trimmed(values: Array, share: float) -> Array:
    """The mean over the first axis without the floor(share G) smallest and largest of each column, exactly rounded."""
    left = int(share * len(values))
    kept = np.sort(values, axis=0)[left : len(values) - left]
    return np.array([math.fsum(column) / len(kept) for column in kept.T])


def _estimate(known: Reports, options: Options, centre: Callable[[Array], Array]) -> Estimate:
    if not isinstance(known, Workspace):
        raise ValueError("expected reports of one channel in memory for groups of rows, got others: use debiased")
    groups = row_groups(known.count, int(options.groups))
    means = _sums(known, groups) / (np.array([len(group) for group in groups])[:, None] * known.contrast)
    features = [known.features.take(slice(group.start, group.stop)) for group in groups]
    minimum = logistic_minimum(known.features, centre(means), options.bound, 0.0)
    for _ in range(ROUNDS - 1):
        own = np.array([part.cumulant(minimum.u)[1] for part in features])
        mean = known.features.cumulant(minimum.u)[1] + centre(means - own)
        minimum = logistic_minimum(known.features, mean, options.bound, 0.0, minimum.u)
    return with_interval(minimum, None, (_NO_INTERVAL,))


def _sums(known: Workspace, groups: list[range]) -> Array:
    """S_k of every group, (groups, p): the curator's, or those of reports, exact on the grid."""
    evidence = known.evidence
    if evidence.group_sums is not None:
        if len(evidence.group_sums) != len(groups):
            raise ValueError(f"expected the curator's sums of {len(groups)} groups, got {len(evidence.group_sums)}")
        return evidence.group_sums
    if evidence.symbols is None:
        raise ValueError("expected labels or a curator's sums by group, got one sum of all: use mle")
    halves = wins(evidence.symbols) - 0.5
    return np.array([halves[group.start : group.stop] @ evidence.rows[group.start : group.stop] for group in groups])
