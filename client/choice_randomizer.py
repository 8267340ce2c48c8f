"""The border for top choices: raw choices in, randomised choices, sets of choices, or bits about a public pair out."""

import numpy as np
from numpy.typing import NDArray

from client.account import Symbols
from client.draws import ESCALATION_BITS, Draws
from client.randomizer import randomize
from protocol.choice_features import Sizes
from protocol.choice_law import PAIR, SUBSET, ChoiceLaw
from protocol.choice_pairs import scaled
from protocol.mechanisms.subset_selection import SubsetChannel

Values = NDArray[np.uint8]
Rows = NDArray[np.int64]
NEITHER = 2


def randomize_choices(
    values: Values, law: ChoiceLaw, sizes: Sizes, pairs: NDArray[np.int64] | None, draws: Draws, rows: Rows
) -> Symbols:
    """One report for each top choice: a symbol, or a set of choices as the number with bit k for choice k.

    Each row goes through the channel of its own size; `pairs` (rows, 2) are the public ones of `random-pair`, fixed
    without the labels. Shapes: values, sizes, rows (rows,), rows in increasing order; result (rows,).
    Guarantee: law.level-local differential privacy of each value, given secret coins; neighbours: replace the value.
    Which coins are read, and how many, depends on sizes alone.
    Raises ValueError for values that are not below their row's size, and for sizes that the law does not name.
    Source: derived, see docs/PRIVACY.md.
    """
    if values.dtype != np.uint8 or values.shape != rows.shape or (values >= sizes).any():
        raise ValueError("expected one uint8 value a row, below the number of its choices")
    if not set(np.unique(sizes).tolist()) <= set(law.sizes) or (pairs is not None) != (law.name == PAIR):
        raise ValueError(f"expected rows of sizes {law.sizes}, and pairs exactly for {PAIR}")
    if pairs is not None:
        sides = np.where(values == pairs[:, 0], 0, np.where(values == pairs[:, 1], 1, NEITHER)).astype(np.uint8)
        return randomize(sides, law.table(law.sizes[0]), draws, rows)
    symbols: Symbols = np.empty(len(rows), dtype=law.symbol_type)
    for size in law.sizes:
        own = np.flatnonzero(sizes == size)
        if law.name == SUBSET:
            symbols[own] = select_subsets(values[own], law.subsets(size), draws, rows[own])
        else:
            symbols[own] = randomize(values[own], law.table(size), draws, rows[own])
    return symbols


def select_subsets(values: Values, channel: SubsetChannel, draws: Draws, rows: Rows) -> NDArray[np.uint64]:
    """Sets of `channel.subset` choices, as numbers with bit k for choice k; shape (rows,).

    The coin says whether the label is in: u < hit. A shuffle of the others, in which choice y + 1 + j mod K is number
    j, fills the set: of its `subset` first steps the last one counts only where the label is out. All are drawn.
    Guarantee: channel.level-local differential privacy of each value; neighbours: replace the value.
    """
    chosen = shuffled(draws.steps(rows, channel.subset), channel.choices - 1)
    coins = draws.lanes(rows).astype(np.uint64) << np.uint64(ESCALATION_BITS) | draws.escalations(rows)
    inside = coins < np.uint64(channel.hit)
    one, own = np.uint64(1), values.astype(np.int64)
    members = one << ((own + 1 + chosen) % channel.choices).astype(np.uint64)
    members[-1] = np.where(inside, one << own.astype(np.uint64), members[-1])
    found: NDArray[np.uint64] = np.bitwise_or.reduce(members, axis=0)
    return found


def shuffled(steps: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """The first steps of a shuffle of 0, ..., count - 1 in each column: (steps, rows) words -> different numbers.

    Step j picks one of the count - j that are left, in rising order of their numbers: the `scaled`-th of them.
    """
    picked = np.empty(steps.shape, dtype=np.int64)
    for step, drawn in enumerate(steps):
        place = scaled(drawn, count - step)
        for before in np.sort(picked[:step], axis=0):  # past those that are gone, from the lowest on
            place += place >= before
        picked[step] = place
    return picked
