"""Intervals from resampled reports."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from protocol.coins import uniform, words
from protocol.warned import code_of, warn
from server.estimators.base import Estimate
from server.estimators.newton import EstimationError
from server.estimators.workspace import Reports
from server.kernels import Array

RESAMPLES = 399  # the 2.5 % quantile is the tenth of them


def with_replicas(known: Reports, estimate: Estimate, refit: Callable[[Reports], Array]) -> Estimate:
    """The estimate with what `refit` makes of 399 resamples of the reports, in place of a covariance.

    Parametric: features are public and stay, a report is drawn anew with P(1) = flip + contrast sigma(u . v_i) of its
    channel at the estimate u; refit answers as the estimator does, ball included. The interval of a coordinate is from
    the tenth smallest to the tenth largest. Coins come from evidence.coins, n words a resample: anybody can repeat it.
    Guarantee: that of the reported labels; this is post-processing, and the coins protect nothing.
    Raises ValueError for evidence without coins, a stream, a curator's sum, or ties.
    Source: Efron 1982, percentile intervals. Where the ball is active they are not exact: docs/ESTIMATORS.md.
    """
    coins, count = known.coins, known.count
    if coins is None:
        raise ValueError('expected reports in memory and coins for interval = "bootstrap", got none: use "wald"')
    likely = known.chances(estimate.u)
    found = np.empty((RESAMPLES, known.dimension))
    for resample in range(RESAMPLES):
        symbols = (uniform(words(coins, resample * count, count)) < likely).astype(np.uint8)
        try:
            found[resample] = refit(known.answering(symbols))
        except EstimationError:
            reason = warn("interval-not-valid", "resampled reports have no minimiser")
            return replace(estimate, covariance=None, warnings=(*estimate.warnings, reason))
    kept = tuple(warning for warning in estimate.warnings if code_of(warning) != "interval-not-valid")
    if estimate.hit_boundary:
        kept += (warn("interval-approximate", "by bootstrap on the border of the ball"),)
    return replace(estimate, covariance=None, warnings=kept, replicas=found)
