"""The sensitivity of an exact sum under label privacy: how far one label moves it, in integers."""

import numpy as np
from numpy.typing import NDArray

from protocol.grid import to_integers


def largest_squared_norm(rows: NDArray[np.float64], exponent: int) -> int:
    """max_i ||k_i||^2 over rows v_i = 2^exponent k_i, exactly.

    One label moves sum_i y_i v_i by exactly v_i, so this is the squared sensitivity in grid units when labels are
    replaced and features are public. Shape (n, p). Raises ValueError for rows off the grid.

    Source: derived, see docs/PRIVACY.md.

    >>> largest_squared_norm(np.array([[3.0, 4.0], [5.0, 1.0]]), 0)
    26
    """
    scaled = rows * 2.0**-exponent  # integers of at most 2^53: their squares neither overflow nor vanish
    total = np.zeros(len(rows))
    for j in range(rows.shape[1]):
        total += scaled[:, j] ** 2
    # Doubles find the candidates; integers decide. The relative error of `total` is below (p + 1) 2^-53.
    slack = 1 - 4 * (rows.shape[1] + 1) * 2.0**-53
    candidates = to_integers(rows[total >= slack * total.max()], exponent)
    return max(sum(int(value) ** 2 for value in row) for row in candidates.tolist())
