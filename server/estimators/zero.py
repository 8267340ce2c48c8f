"""The trivial answer."""

import math

import numpy as np

from server.estimators.base import Estimate, Options
from server.estimators.workspace import Workspace


def zero(known: Workspace, _options: Options) -> Estimate:
    """u = 0 whatever was reported: what an estimate has to beat.

    Guarantee: depends on no label.
    """
    return Estimate(np.zeros(known.features.columns.shape[0]), None, False, (), 0, math.nan)
