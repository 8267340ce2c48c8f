"""How far estimates spread around the parameter: the two matrices of a sandwich at the estimate, ball or no ball."""

from dataclasses import dataclass, field

import numpy as np

from server.estimators.features import Features
from server.kernels import Array


@dataclass(frozen=True, eq=False)
class Spread:
    """bread H and meat V, both (p, p): the estimate's covariance is H^-1 V H^-1 / count where nothing constrains it."""

    bread: Array = field(repr=False)
    meat: Array = field(repr=False)
    count: int


def of_likelihood(features: Features, u: Array, contrast: float, flip: float, ridge: float = 0.0) -> Spread:
    """The spread of `rr-mle` (ridge = 0), and of `rr-map` with ridge 1 / (n tau^2): H = V = I(u) + ridge I.

    I is the expected information of one randomised label. Rows without weights.
    Source: derived, see docs/ESTIMATORS.md.
    """
    signs = np.ones(features.count)  # expected information does not depend on what was reported
    information = features.likelihood(signs, contrast, flip, False, u)[2] + ridge * np.eye(len(u))
    return Spread(information, information, features.count)


def of_score(
    features: Features, u: Array, contrast: float = 1.0, flip: float = 0.0, stddev: float = 0.0, ridge: float = 0.0
) -> Spread:
    """The spread of `mle` (contrast 1, flip 0) and `debiased`, with noise of `stddev` on each coordinate of the sum.

    H = (1/n) sum w_i s'_i x_i x_i' + ridge I, V = (1/n) sum (s'_i + flip (flip + contrast) / contrast^2) v_i v_i' +
    stddev^2 / (n contrast^2) I.
    Source: derived, see docs/ESTIMATORS.md.
    """
    hessian = features.cumulant(u)[2]
    meat = features.score_variance(u, hessian, flip * (flip + contrast) / contrast**2)
    if stddev == ridge == 0.0 and meat is hessian:
        return Spread(hessian, hessian, features.count)
    identity = np.eye(len(u))
    noise = stddev**2 / (features.count * contrast**2)
    return Spread(hessian + ridge * identity, meat + noise * identity, features.count)
