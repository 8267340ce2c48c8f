"""What shuffling makes of randomised response: m reports about one question, of which nobody knows whose is which.

All bounds are for one label of a group of m, whatever the other m - 1 labels are; neighbours replace that label.
"""

import math
from collections.abc import Collection
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EXACT = 1000  # groups of two answers up to this size are computed exactly, larger ones bounded
MOST_LEVEL = Decimal(40)  # of one report: e^-40 is as good as never flipped
LEAST_GROUP, MOST_GROUP = 2, 1 << 32
DIGITS = 6  # of a level that is looked for
_BEYOND = 1e-22  # what tails of each binomial law are left out, which is added to delta
_ROUNDING = 1 + 1e-9  # more than rounding of doubles takes away
_DOWN = Context(prec=DIGITS, rounding=ROUND_FLOOR)


def kept_and_other(local: float, outcomes: int = 2) -> tuple[float, float]:
    """Probabilities of randomised response at the level e0: that it keeps a label, and of one given other outcome.

    a = e^e0 / (e^e0 + K - 1), b = 1 / (e^e0 + K - 1).
    """
    rest = 1 + (outcomes - 1) * math.exp(-local)
    return 1 / rest, math.exp(-local) / rest


def exact_delta(local: float, group: int, epsilon: float, ones: int) -> float:
    """delta of the number of ones among m binary reports at `epsilon`, where k = `ones` of the other labels are 1.

    N = Bin(k, a) + Bin(m - 1 - k, b), P = N + Ber(a), Q = N + Ber(b): the larger of sum_j (P_j - e^epsilon Q_j)_+ and
    sum_j (Q_j - e^epsilon P_j)_+, which is the first one of m - 1 - k.

    Guarantee: (epsilon, this) exactly, up to 1e-9 of it and 1e-21; unit: one label; neighbours: replace the label.
    Source: derived, see docs/PRIVACY.md.

    >>> round(exact_delta(1.0, 50, 0.5, 0), 12)
    0.000100849212
    """
    return max(_one_way(local, group, epsilon, ones), _one_way(local, group, epsilon, group - 1 - ones))


def _one_way(local: float, group: int, epsilon: float, ones: int) -> float:
    """The label in question is 1, against 0."""
    a, b = kept_and_other(local)
    others = np.convolve(_law(ones, a), _law(group - 1 - ones, b))
    more, fewer = np.append(0.0, others), np.append(others, 0.0)
    gain = a * more + b * fewer - math.exp(epsilon) * (b * more + a * fewer)
    return float(gain[gain > 0].sum()) * _ROUNDING + 2 * _BEYOND


@lru_cache(maxsize=1024)
def worst_delta(local: float, group: int, epsilon: float) -> tuple[float, int]:
    """The largest `exact_delta` over all labels that the others can have, and a number of ones among them that has it.

    The largest is at no known place, so all are looked at. Raises ValueError for a group out of 2..`EXACT`.
    """
    if not LEAST_GROUP <= group <= EXACT:
        raise ValueError(f"expected a group of {LEAST_GROUP} to {EXACT} reports for the exact law, got {group}")
    return max((_one_way(local, group, epsilon, ones), ones) for ones in range(group))


@lru_cache(maxsize=1024)
def blanket_delta(local: float, group: int, epsilon: float, outcomes: int = 2, clone: float | None = None) -> float:
    """A bound on delta of the counts of m reports out of K outcomes, each at the level e0, at `epsilon`.

    Each other report is, with probability 2 b, one of two outcomes with equal chance, whatever its label is: C of them,
    C ~ Bin(m - 1, 2 b), and A ~ Bin(C, 1/2) are the first. E_C sum_k (a B_{k-1} + b B_k - e^epsilon (b B_{k-1} + a
    B_k))_+, B_k = P(A = k | C): the summand is positive from one k on, so each sum is two tails of A. `clone` is
    another probability than 2 b; with e^-e0, and `outcomes` two, it is the bound of 2021.

    Guarantee: (epsilon, this), an upper bound; unit: one label; neighbours: replace one label.
    Source: Feldman, McMillan, Talwar 2023, Theorem 3.1 ("stronger clones") for randomised response.

    >>> round(blanket_delta(1.0, 50, 0.5), 12)
    0.000199090138
    """
    from scipy.stats import binom  # slow to import: a third of the start of every process

    a, b = kept_and_other(local, outcomes)
    growth = math.exp(epsilon)
    if a <= growth * b:
        return 0.0
    low, weights = _window(group - 1, 2 * b if clone is None else clone)
    clones = np.arange(low, low + len(weights), dtype=np.float64)
    odds = (growth * a - b) / (a - growth * b)
    first = np.floor(odds / (1 + odds) * (clones + 1)) + 1  # the least k with k / (C + 1 - k) > odds, or one more
    near = first - 1
    first = np.where(near * (1 + odds) > odds * (clones + 1), near, first)
    at_least = binom.sf(first - 2, clones, 0.5)  # P(A >= k - 1)
    above = binom.sf(first - 1, clones, 0.5)
    gain = (a - growth * b) * at_least - (growth * a - b) * above
    return float((weights * np.maximum(gain, 0.0)).sum()) * _ROUNDING + _BEYOND


def shuffled_delta(local: float, group: int, epsilon: float, outcomes: int = 2) -> float:
    """delta at `epsilon` of a group of m shuffled reports at the level `local`: exact for two outcomes and m <= 1,000.

    A larger group has the smaller of `blanket_delta` and the exact one of 1,000: more reports can be added by anybody.

    Guarantee: (epsilon, this); unit: one label; neighbours: replace one label, whatever all others are, where m - 1 of
    them were randomised by their own coins, and nobody who sees the counts knows whose a report is.
    Raises ValueError for numbers out of range. Source: derived, see docs/PRIVACY.md; beyond: `blanket_delta`.
    """
    if not (0 < local <= float(MOST_LEVEL) and 0 < epsilon < math.inf):
        raise ValueError(f"expected 0 < local <= {MOST_LEVEL} and epsilon > 0, got {local} and {epsilon}")
    if not (LEAST_GROUP <= group < MOST_GROUP and outcomes >= 2):
        raise ValueError(f"expected a group of at least 2 and 2 outcomes or more, got {group} and {outcomes}")
    if local <= epsilon:
        return 0.0  # the report by itself keeps the claim
    if outcomes == 2 and group <= EXACT:
        return worst_delta(local, group, epsilon)[0]
    bound = blanket_delta(local, group, epsilon, outcomes)
    return min(bound, worst_delta(local, EXACT, epsilon)[0]) if outcomes == 2 else bound


@lru_cache(maxsize=256)
def local_level(epsilon: Decimal, delta: Decimal, group: int, outcomes: int = 2) -> Decimal:
    """The largest level of one report with which m shuffled ones keep (epsilon, delta), rounded down to six digits.

    It is at least epsilon. `shuffled_delta` grows with the level: reports at a lower one are made of those at a higher
    one by further randomisation.

    Guarantee: (epsilon, delta), as `shuffled_delta` says. Raises ValueError for numbers out of range.

    >>> local_level(Decimal(1), Decimal("1e-5"), 1000) > 3
    True
    """
    _probability(float(delta))
    if outcomes == 2 and group > EXACT:
        bound = min(_largest(epsilon, delta, group, outcomes, ()), MOST_LEVEL)
        return max(bound if keeps(bound, group, epsilon, delta) else epsilon, local_level(epsilon, delta, EXACT))
    looked = _looked(group)
    most = MOST_LEVEL
    while True:
        found = min(_largest(epsilon, delta, group, outcomes, looked), most)
        if found <= epsilon or keeps(found, group, epsilon, delta, outcomes):
            return max(found, epsilon)
        if outcomes == 2 and group <= EXACT:
            looked.add(worst_delta(float(found), group, float(epsilon))[1])
        most = _DOWN.subtract(found, Decimal(1).scaleb(found.adjusted() - DIGITS + 1))


def nearly_level(epsilon: Decimal, delta: Decimal, group: int, outcomes: int = 2) -> Decimal:
    """`local_level` for a curve: a group of two answers is looked at where the worst often is, and nowhere else.

    Guarantee: none; it is not below `local_level`, and above it by little. Raises ValueError for no delta.
    """
    _probability(float(delta))
    found = max(min(_largest(epsilon, delta, group, outcomes, _looked(group)), MOST_LEVEL), epsilon)
    if outcomes == 2 and group > EXACT:
        return max(found, nearly_level(epsilon, delta, EXACT))
    return found


def _looked(group: int) -> set[int]:
    """Numbers of ones among the others of which one often has the worst delta."""
    return {0, 1, 2, group // 2, group - 1} & set(range(group))


def _largest(epsilon: Decimal, delta: Decimal, group: int, outcomes: int, looked: Collection[int]) -> Decimal:
    """The largest level that keeps a claim, as far as these numbers of ones say, by bisection."""
    level, wanted = float(epsilon), float(delta)

    def fits(local: float) -> bool:
        if outcomes == 2 and group <= EXACT:
            return all(_one_way(local, group, level, ones) <= wanted for ones in looked)
        return blanket_delta(local, group, level, outcomes) <= wanted

    low, high = level, float(MOST_LEVEL)
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _DOWN.create_decimal_from_float(low)


def keeps(local: Decimal, group: int, epsilon: Decimal, delta: Decimal, outcomes: int = 2) -> bool:
    """Whether m shuffled reports at the level `local` keep (epsilon, delta): `shuffled_delta` is at most delta."""
    level, target, wanted = float(local), float(epsilon), float(delta)
    if local <= epsilon or (group > EXACT and blanket_delta(level, group, target, outcomes) <= wanted):
        return True  # the exact one takes longer, and is not above it
    return shuffled_delta(level, group, target, outcomes) <= wanted


def closed_2021(local: float, group: int, delta: float) -> float:
    """epsilon of m shuffled reports at the level e0 in closed form: several times what randomised response attains.

    log(1 + (e^e0 - 1) / (e^e0 + 1) (8 sqrt(e^e0 log(4/delta) / m) + 8 e^e0 / m)), e0 <= log(m / (16 log(2/delta))).

    Guarantee: (epsilon, delta); unit: a report; neighbours: replace one.
    Raises ValueError for a level above that. Source: Feldman, McMillan, Talwar 2021, Theorem 3.1.

    >>> round(closed_2021(1.0, 10_000, 1e-6), 9)
    0.214025652
    """
    _within(local, math.log(group / (16 * math.log(2 / _probability(delta)))))
    growth = math.exp(local)
    spread = 8 * math.sqrt(growth * math.log(4 / delta) / group) + 8 * growth / group
    return math.log1p(math.tanh(local / 2) * spread)


def closed_2023(local: float, group: int, delta: float) -> float:
    """The same by stronger clones.

    log(1 + (e^e0 - 1) (4 sqrt(2 log(4/delta)) / sqrt((e^e0 + 1) m) + 4 / m)), e0 <= log(m / (8 log(2/delta)) - 1).

    Guarantee: (epsilon, delta); unit: a report; neighbours: replace one.
    Raises ValueError for a level above that. Source: Feldman, McMillan, Talwar 2023, Theorem 3.2.

    >>> round(closed_2023(1.0, 10_000, 1e-6), 9)
    0.180006368
    """
    _within(local, math.log(max(group / (8 * math.log(2 / _probability(delta))) - 1, 1e-300)))
    spread = 4 * math.sqrt(2 * math.log(4 / delta)) / math.sqrt((math.exp(local) + 1) * group) + 4 / group
    return math.log1p(math.expm1(local) * spread)


def _probability(delta: float) -> float:
    if not 0 < delta < 1:
        raise ValueError(f"expected 0 < delta < 1, got {delta}")
    return delta


def _within(local: float, most: float) -> None:
    if not 0 < local <= most:
        raise ValueError(f"expected 0 < local <= {most:.4g} for a closed form, got {local}: more reports allow more")


@lru_cache(maxsize=1 << 12)
def _law(count: int, chance: float) -> Floats:
    """P(Bin = k), k = 0..count; what is beyond `_BEYOND` in both tails is 0."""
    low, weights = _window(count, chance)
    law = np.zeros(count + 1)
    law[low : low + len(weights)] = weights
    return law


def _window(count: int, chance: float) -> tuple[int, Floats]:
    """(k, P(Bin = k), P(Bin = k + 1), ...): all but a mass of `_BEYOND` at most, by Hoeffding's bound."""
    from scipy.stats import binom  # slow to import

    reach = math.sqrt(count * math.log(2 / _BEYOND) / 2) + 1
    low, high = max(0, math.floor(count * chance - reach)), min(count, math.ceil(count * chance + reach))
    return low, binom.pmf(np.arange(low, high + 1), count, chance)
