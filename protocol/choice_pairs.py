"""The public pair of choices that a row is asked about: fixed before any label is seen, the same on both sides."""

import numpy as np
from numpy.typing import NDArray

from protocol.choice_features import Sizes
from protocol.coins import Address, Stream, words
from protocol.messages import Task

BITS = 56  # of a word: times a number below 2^8 they still fit 64 bits


def scaled(drawn: NDArray[np.uint64], count: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """floor(u count / 2^56), u the top 56 bits of a word: so each value below `count` has floor or
    ceil(2^56 / count) of them.

    Raises ValueError for a count above 256 or below 1.
    """
    many = np.asarray(count, dtype=np.uint64)
    if many.size and (int(many.min()) < 1 or int(many.max()) > 256):
        raise ValueError("expected 1 <= count <= 256")
    found: NDArray[np.int64] = (((drawn >> np.uint64(64 - BITS)) * many) >> np.uint64(BITS)).astype(np.int64)
    return found


def public_pairs(task: Task, repetition: int, rows: NDArray[np.int64], sizes: Sizes) -> NDArray[np.int64]:
    """The pair (j, k) of each row, j < k, nearly uniform over the pairs of its choices: shape (rows, 2).

    A hash of (study fingerprint, repetition, row) names it, so it is the same for every n, epsilon, round and attempt.
    Two words: j' uniform below K, k' uniform below K - 1 skipping j'; then sorted. Rows in increasing order.
    """
    name = int.from_bytes(task.study[:16], "big")
    first, last = int(rows[0]), int(rows[-1])
    drawn = words(Address(name, Stream.PAIRS, 0, repetition), 2 * first, 2 * (last - first + 1)).reshape(-1, 2)
    own = drawn[rows - first]
    left = scaled(own[:, 0], sizes.astype(np.int64))
    right = scaled(own[:, 1], sizes.astype(np.int64) - 1)
    right += right >= left
    return np.sort(np.stack([left, right], axis=1), axis=1)
