"""How far the contribution of one labeler may reach: a radius chosen from public features alone."""

import numpy as np
from numpy.typing import NDArray

from protocol.features import group_norm, split_groups

MOST_CANDIDATES = 256


def best_radius(rows: NDArray[np.float64], groups: NDArray[np.int32], noise_multiplier: float) -> float:
    """The clipping radius of labelers under which a noisy sum is expected to serve best; rows (n, p), groups (n,).

    With b_l = `group_norm` of labeler l, a_l = sum of ||x_i||^2 over their rows and w_l = min(1, C / b_l): the C among
    the b_l that minimises (sum_l w_l^2 a_l / 4 + p (noise_multiplier C)^2) / (sum_l w_l a_l / 4)^2, the variance of the
    score over its slope squared, all items being equal. Larger C keeps more of busy labelers, and adds more noise.

    Guarantee: none needed, labels do not enter. Source: derived, see docs/PRIVACY.md.
    """
    members = split_groups(groups)
    reach = np.array([group_norm(rows[group]) for group in members])
    weight = np.array([float((rows[group] ** 2).sum()) for group in members])
    candidates = np.unique(reach[reach > 0])
    if not len(candidates):
        return 1.0
    candidates = candidates[:: -(-len(candidates) // MOST_CANDIDATES)]

    def spread(radius: float) -> float:
        share = np.minimum(1.0, radius / np.maximum(reach, radius))
        noise = rows.shape[1] * (noise_multiplier * radius) ** 2
        return float(((share**2 * weight).sum() / 4 + noise) / ((share * weight).sum() / 4) ** 2)

    return float(min(candidates.tolist(), key=spread))
