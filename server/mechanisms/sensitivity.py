"""The sensitivity of an exact sum: how far one label, or all labels of one labeler, move it, in integers."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from protocol.features import MOST_IN_PAIRS
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


def squared_group_norm(rows: NDArray[np.float64], exponent: int) -> int:
    """An upper bound on ||sum_i c_i k_i||^2 over all c with |c_i| <= 1, for rows v_i = 2^exponent k_i of one labeler.

    Replacing their labels y_i, whatever they are in [0, 1], moves sum_i y_i v_i by sum_i c_i v_i with such c, and
    ||sum_i c_i k_i||^2 = sum_ij c_i c_j k_i . k_j <= sum_ij |k_i . k_j| <= sum_a (sum_i |k_ia|)^2 <= (sum_i ||k_i||)^2.
    The second of these up to `MOST_IN_PAIRS` rows, the third, exactly, beyond, as `protocol.features.group_norm` does.
    Shape (m, p). Raises ValueError for rows off the grid.

    Source: derived, see docs/PRIVACY.md.

    >>> squared_group_norm(np.array([[3.0, 0.0], [0.0, 4.0]]), 0)
    26
    >>> squared_group_norm(np.array([[3.0, 4.0], [-3.0, -4.0]]), 0)
    101
    """
    integers = to_integers(rows, exponent)
    if len(rows) > MOST_IN_PAIRS:
        return sum(sum(column) ** 2 for column in np.abs(integers).T.tolist())
    return _over_pairs(integers.astype(np.float64))


def _over_pairs(rows: NDArray[np.float64]) -> int:
    """sum_ij |k_i . k_j| in doubles, rounded up past every rounding error.

    Products and sums of p of them differ from exact ones by less than (p + 2) 2^-52 of the sum of absolute values.
    """
    gram, size = np.zeros((len(rows), len(rows))), np.zeros((len(rows), len(rows)))
    for column in rows.T:  # plain loops: the same bits on every machine
        product = column[:, None] * column
        gram += product
        size += np.abs(product)
    slack = (rows.shape[1] + 2) * 2.0**-52
    total = Fraction(math.fsum(np.abs(gram).ravel())) + Fraction(slack) * Fraction(math.fsum(size.ravel()))
    return math.ceil(total * (1 + Fraction(1, 1 << 50)))
