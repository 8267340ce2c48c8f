"""The s largest coordinates in one shot: Gumbel noise on all sizes, Gaussian noise on values. Simulation only."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from protocol.coins import Floats, Words, normal
from server.mechanisms.discrete_gaussian import root_up, up
from server.mechanisms.peeling import ROOM
from server.mechanisms.selection_noise import Cost, Selected, check, gumbel
from server.mechanisms.zcdp import rho_of


def one_shot(vector: Floats, sparsity: int, scale: float, words: Words, value_scale: float | None = None) -> Selected:
    """The s largest |w_j| + Gumbel(scale), then w_j + N(0, value_scale^2) of those; `value_scale` None is `scale`.

    In law s exponential mechanisms one after the other. words: uint64, (2, d), one row for sizes, one for values. Ties
    go to the lowest index. Scale 0: no noise.

    Guarantee: `one_shot_cost` at scales over lambda, over real numbers: simulation only. Unit and neighbours are those
    of lambda. Raises TypeError and ValueError as `check`. Source: Durfee, Rogers 2019, Lemma 4.2.
    """
    check(vector, sparsity, scale, words, 2)
    other = scale if value_scale is None else value_scale
    check(vector, sparsity, other, words, 2)
    scores = np.abs(vector) + scale * gumbel(words[0])
    support = np.argsort(-scores, kind="stable")[:sparsity].astype(np.int64)
    return Selected(support, vector[support] + other * normal(words[1])[support])


def one_shot_cost(sparsity: int, scale: float, value_scale: float | None = None) -> Cost:
    """rho = s / (2 scale^2) + s / (2 value_scale^2): no pure level.

    A selection has a bounded range of 2 / scale, which is (2 / scale)^2 / 8-zCDP; values on a known support move by at
    most sqrt(s) in l2.

    Guarantee: rho-zCDP for whatever moves each coordinate by at most 1. Raises ValueError for what is not positive.
    Source: Dong, Durfee, Rogers 2020; Cesar, Rogers 2021; Bun, Steinke 2016, Proposition 1.6.
    """
    other = scale if value_scale is None else value_scale
    if not (sparsity >= 1 and 0 < scale < math.inf and 0 < other < math.inf):
        raise ValueError(f"expected sparsity >= 1 and scales > 0, got {sparsity}, {scale} and {other}")
    half = Fraction(sparsity, 2)
    return Cost(up(half / Fraction(scale) ** 2 + half / Fraction(other) ** 2), math.inf)


def one_shot_scale(epsilon: Decimal, delta: Decimal, sparsity: int) -> float:
    """sqrt(s / rho), rho of (epsilon, delta): half for selections, half for values, both of this scale.

    Source: derived, see docs/HEAVY_TAILS.md.
    """
    return root_up(sparsity / Fraction(rho_of(epsilon, delta))) * ROOM


def shared_scales(epsilon: Decimal, delta: Decimal, sparsity: int, share: Fraction) -> tuple[float, float]:
    """(scale, value_scale) with a `share` of rho in (0, 1) for selections: sqrt(s / (2 rho share)), and of the rest.

    Raises ValueError for another share. Source: derived, see docs/HEAVY_TAILS.md.
    """
    if not 0 < share < 1:
        raise ValueError(f"expected a share in (0, 1), got {share}")
    half = Fraction(sparsity, 2) / Fraction(rho_of(epsilon, delta))
    return root_up(half / share) * ROOM, root_up(half / (1 - share)) * ROOM
