"""A public random rotation: it spreads a vector that is bounded in length evenly over its coordinates.

x -> H D x / sqrt(p): p is the dimension's next power of two, x has zeros behind it, D random signs, H the Hadamard
matrix in Sylvester's order. Signs are public: a rotation hides nothing. It makes coordinates of a sum smaller, so that
residues of it need fewer bits.
"""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream, words
from protocol.messages import Task

Floats = NDArray[np.float64]

BEYOND = 2.0**-40  # the chance over the signs that some coordinate of a rotated vector is above `coordinate_bound`
MOST = 2.0**900  # of a number that is turned: sums of such stay finite
_SHORTER = 1 - 2.0**-44  # relative: more than all roundings of a rotation make a vector longer
_UP = 1 + 2.0**-40


def padded(dimension: int) -> int:
    """p, the least power of two that is not below the dimension. Raises ValueError for a dimension < 1.

    >>> padded(1), padded(10), padded(1024)
    (1, 16, 1024)
    """
    if dimension < 1:
        raise ValueError(f"expected a dimension >= 1, got {dimension}")
    return 1 << (dimension - 1).bit_length()


def signs_of(task: Task, repetition: int) -> Floats:
    """The signs of D for a repetition of a task, shape (p,), each 1 or -1: the top bits of a public Philox sequence.

    Whoever has the task has them: its study, n, repetition and round name the sequence, and no secret does.
    """
    seed = int.from_bytes(hashlib.sha256(b"rotation " + task.study).digest()[:16], "big")
    drawn = words(Address(seed, Stream.ROTATION, task.n, repetition, task.round), 0, padded(task.problem.dimension))
    return np.where(drawn >> np.uint64(63), -1.0, 1.0)


def rotated(values: Floats, signs: Floats) -> Floats:
    """H D x / sqrt(p) of each row x, shape (rows, p), of values (rows, d); of finite numbers, none above 2^900.

    The same bits on every machine: log2 p rounds of single additions in a fixed order, and one product. A round's sums
    are off by a relative 2^-53 each, which makes a vector longer by no more; the product is with a number that is
    smaller by 2^-44 than 1 / sqrt(p), and 2^-44 > (log2 p + 4) 2^-53.

    Guarantee: no row of the result, truncated to a grid whose unit is 2^-1022 or more, is longer than it was. (Not the
    privacy of anything.) Raises ValueError for numbers that are not finite or too large, and too few signs.
    Source: Ailon, Chazelle 2009; Suresh, Yu, Kumar, McMahan 2017, section 3; lengths: derived, see docs/SECURE.md.
    """
    count, width = len(values), len(signs)
    if values.ndim != 2 or width != padded(values.shape[1]):
        raise ValueError(f"expected rows of numbers and a sign for each of p, got {values.shape} and {width}")
    if not (np.abs(values) <= MOST).all():
        raise ValueError("expected finite values of at most 2^900 to rotate")
    found = np.zeros((count, width))
    np.multiply(values, signs[: values.shape[1]], out=found[:, : values.shape[1]])
    return _hadamard(found) * (_SHORTER / math.sqrt(width))


def restored(values: Floats, signs: Floats, dimension: int) -> Floats:
    """D H w / sqrt(p) without what stands behind the dimension, shape (rows, d), of values (rows, p).

    Of noise with independent coordinates of one variance it has that variance. Raises ValueError as `rotated`.
    """
    if values.ndim != 2 or values.shape[1] != len(signs) or len(signs) != padded(dimension):
        raise ValueError(f"expected rows of p = {padded(dimension)} numbers, and as many signs, got {values.shape}")
    back: Floats = _hadamard(values.copy())[:, :dimension] * signs[:dimension]
    return back / math.sqrt(len(signs))


def coordinate_bound(length: float, dimension: int) -> float:
    """What no coordinate of a rotated vector exceeds in size, which was at most so long: but with chance `BEYOND`.

    min(L, L sqrt(2 ln(2 p / beta) / p)), rounded up: each is a sum of L-bounded numbers with independent random signs
    (Hoeffding), and there are p of them. The vector must not depend on the signs; one that was chosen by them can be
    as long in one coordinate as it is. Privacy relies on none of this.

    >>> round(coordinate_bound(1.0, 1000), 3), coordinate_bound(1.0, 10)
    (0.263, 1.0)
    """
    width = padded(dimension)
    return length * min(1.0, math.sqrt(2 * math.log(2 * width / BEYOND) / width) * _UP)


def _hadamard(values: Floats) -> Floats:
    """H x of each row, in place."""
    count, width = values.shape
    step = 1
    while step < width:
        pairs = values.reshape(count, width // (2 * step), 2, step)
        total = pairs[:, :, 0] + pairs[:, :, 1]
        np.subtract(pairs[:, :, 0], pairs[:, :, 1], out=pairs[:, :, 1])
        pairs[:, :, 0] = total
        step *= 2
    return values
