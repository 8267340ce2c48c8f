"""One view of all reports about top choices: what a report says of each choice, and the numbers of its law."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from protocol.channel import TOTAL
from protocol.choice_law import ONE, PAIR, SUBSET, ChoiceLaw
from protocol.problem import MOST_CHOICES
from server.kernels_choice_reports import ONE_CHOICE, SETS, TWO_SIDES

Table = NDArray[np.float64]
Rows = tuple[tuple[Fraction, ...], ...]
REPORTS = {ONE: ONE_CHOICE, PAIR: TWO_SIDES}


@dataclass(frozen=True, eq=False)
class View:
    """A report marks each choice k of its row with g_k = 1 (for it), 0 (against it), 1/2 (neither).

    `law`[K] = (base, slope): P(report | y = k) = f (base + slope g_k), f the same for all k.
    `shares`[K] = (alpha, scale): D_k = alpha + scale g_k has sum_k D_k = 1 and E[D_k | y] = 1{y = k}, over reports, and
    over public pairs where there are any.
    `spread`[K] = (a, b, c): the variance of sum_k D_k v_k is sum_k (a + b p_k) x_k x_k' + c X X' where y has the
    probabilities p, x_k = v_k - sum_j p_j v_j, X = sum_k x_k.
    All are tables by the number of choices K. `reports`: see `server.kernels_choice_reports`.
    Source: derived, see docs/CHOICES.md.
    """

    law: Table = field(repr=False)
    shares: Table = field(repr=False)
    spread: Table = field(repr=False)
    reports: int


def clear_view() -> View:
    """Labels themselves: P = g_k, D = g."""
    height = MOST_CHOICES + 1
    law, shares, spread = (np.tile(row, (height, 1)) for row in ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0, 0.0)))
    return View(law, shares, spread, ONE_CHOICE)


def view(law: ChoiceLaw) -> View:
    """The view of reports that went through `law`."""
    height, reports = MOST_CHOICES + 1, REPORTS.get(law.name, SETS)
    if law.name == SUBSET and all(law.subsets(size).subset == 1 for size in law.sizes):
        reports = ONE_CHOICE
    found = View(np.zeros((height, 2)), np.zeros((height, 2)), np.zeros((height, 3)), reports)
    for size in law.sizes:
        if law.name == PAIR:
            rows = _pair(size, Fraction(law.table(size).table[0][1], TOTAL))
        elif law.name == ONE:
            kept = law.table(size).table[0][0]
            rows = _set(size, 1, Fraction(kept, TOTAL))
        else:
            channel = law.subsets(size)
            rows = _set(size, channel.subset, Fraction(channel.hit, TOTAL))
        found.law[size], found.shares[size], found.spread[size] = (list(map(float, row)) for row in rows)
    return found


def _set(size: int, chosen: int, hit: Fraction) -> Rows:
    """A set of `chosen` choices, the label among them with probability `hit`; one choice is a set of one.

    P(S | y) C(K-1, k-1) = hit for y in S, (1 - hit) k / (K - k) otherwise. P(j in S | y) = hit for j = y, else other =
    (k - hit) / (K - 1). P(i, j in S | y) = neither, or neither + more for y out of i, j.
    """
    miss = 1 - hit
    base = miss * chosen / (size - chosen)
    other = (chosen - hit) / (size - 1)
    neither = (chosen - 1) * ((chosen - 2) * hit + chosen * miss) / max(1, (size - 1) * (size - 2))
    more = hit * (chosen - 1) / (size - 1) - neither
    scale = 1 / (hit - other)
    alpha = -other * scale
    spread = (scale**2 * (other - neither), scale**2 * (hit - other - 2 * more), scale**2 * neither - alpha**2)
    return (base, hit - base), (alpha, scale), spread


def _pair(size: int, flip: Fraction) -> Rows:
    """One side of a pair: for the one, against the other, half of each for the rest."""
    contrast = 1 - 2 * flip
    half = Fraction(size - 1, 2) / contrast
    spread = (2 * half**2 / (size - 1), Fraction(0), -2 * half**2 / (size * (size - 1)) - Fraction(1, size**2))
    return (flip, contrast), (Fraction(1, size) - half, 2 * half), spread
