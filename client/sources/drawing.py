"""Top choices drawn from given scores, one coin a row."""

import numpy as np
from numpy.typing import NDArray


def top_choices(scores: NDArray[np.float64], sizes: NDArray[np.int32], coins: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """y with P(y = k) = exp(z_k) / sum_j exp(z_j) over the choices of a row, by the inverse distribution function.

    y is how many k >= 1 have coin // 2 < floor(P(label >= k) 2^63), so with two choices the second wins where the label
    of a pair is 1. Shapes: scores (rows, K), sizes and coins (rows,); one 64-bit word a row. Plain loops over choices.
    """
    count, most = scores.shape
    top = np.full(count, -np.inf)
    for k in range(most):
        np.maximum(top, np.where(k < sizes, scores[:, k], -np.inf), out=top)
    tails = np.zeros((count, most))  # sum of exp over choices k, k + 1, ...
    running = np.zeros(count)
    for k in range(most - 1, -1, -1):
        running = running + np.where(k < sizes, np.exp(np.where(k < sizes, scores[:, k] - top, 0.0)), 0.0)
        tails[:, k] = running
    chosen = np.zeros(count, dtype=np.uint8)
    for k in range(1, most):
        threshold = np.floor(tails[:, k] / tails[:, 0] * 2.0**63).astype(np.uint64)
        chosen += coins >> np.uint64(1) < threshold
    return chosen
