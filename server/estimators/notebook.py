"""Replica of a published notebook's descent, kept to show what its plot says; not a method to use."""

import math
from dataclasses import replace

import numpy as np

from protocol.coins import Stream, normal, words
from protocol.warned import warn
from server.estimators.base import Estimate, Options
from server.estimators.workspace import Reports
from server.kernels import Array
from server.kernels_notebook import descend_noisily
from server.kernels_solve import norm
from server.mechanisms.gaussian import gaussian_delta

DELTA = 1e-3  # the notebook's
_REPLICA = warn(
    "replica", "of a published notebook, to compare with: its step does not shrink, so its error does not either"
)


def notebook_sgd(known: Reports, options: Options) -> Estimate:
    """One pass with un-normalised de-biased gradients and step 1; with options.nominal, noise in every step.

    u <- Proj(u - g_i - b_i), g_i = (c sigma(u . v_i) - (y_i - flip)) v_i; b_i = 0, or fresh N(0, s^2 I) with
    s = L sqrt(log(1/delta)) / (nominal sqrt(n)), L = max ||v_i||, delta = 0.001.
    Guarantee: that of the reported labels. The noise makes no claim: see `last_label`.
    Raises ValueError for a nominal level where labels are randomised, or where there are no addressed coins.
    Source: the notebook published with Chowdhury, Zhou, Natarajan 2024; equation (10) there has shrinking steps, and
    objective perturbation adds one vector once.
    """
    noisy = math.isfinite(options.nominal)
    if noisy and (known.contrast != 1.0 or known.coins is None):
        raise ValueError(f"expected clear labels and addressed coins beside nominal, got contrast {known.contrast}")
    u, done = np.zeros(known.dimension), 0
    for columns, symbols, contrast, flip, _ in known.stretches():
        noise = _noise(known, options.nominal, done, len(symbols)) if noisy else np.zeros(columns.shape[::-1])
        descend_noisily(columns, symbols, contrast, flip, options.bound, noise, u)
        done += len(symbols)
    warnings = (_REPLICA, _no_claim(known.count, options.nominal)) if noisy else (_REPLICA,)
    return Estimate(u, None, norm(u) >= options.bound * (1.0 - 1e-9), warnings, 1, math.nan)


def last_label(n: int, nominal: float, share: float = 1.0) -> tuple[float, float]:
    """(mu, epsilon at delta = 0.001) of the last label under noise of this nominal level in every step.

    mu = share sqrt(n) nominal / sqrt(log(1/delta)), share = ||x_n|| / L <= 1: the noise of the last step alone covers
    the last label, and mu grows with n.
    Source: derived; epsilon by Balle, Wang 2018, Theorem 8.

    >>> mu, epsilon = last_label(10_000, 1.0)
    >>> round(mu, 1), round(epsilon)
    (38.0, 840)
    """
    from scipy.optimize import brentq  # slow to import, in every worker

    mu = share * math.sqrt(n) * nominal / math.sqrt(math.log(1 / DELTA))
    if gaussian_delta(1e-9, mu) <= DELTA:
        return mu, 0.0
    return mu, float(brentq(lambda epsilon: gaussian_delta(epsilon, mu) - DELTA, 1e-9, mu * mu / 2 + 10 * mu))


def _noise(known: Reports, nominal: float, start: int, count: int) -> Array:
    """Rows start, ..., start + count - 1 of the noise: the same normal numbers at every level, scaled."""
    p = known.dimension
    longest = max(math.sqrt(float((columns * columns).sum(axis=0).max())) for columns, _ in known.chunks())
    stddev = longest * math.sqrt(math.log(1 / DELTA)) / (nominal * math.sqrt(known.count))
    assert known.coins is not None
    drawn = normal(words(replace(known.coins, stream=Stream.CURATOR), start * p, count * p))
    return stddev * drawn.reshape(count, p)


def _no_claim(n: int, nominal: float) -> str:
    mu, epsilon = last_label(n, nominal)
    return warn(
        "no-claim",
        f"noise named epsilon = {nominal:g} leaves the last label mu = {mu:.3g} where its row is the "
        f"longest, which is epsilon = {epsilon:.3g} at delta = {DELTA:g}",
    )
