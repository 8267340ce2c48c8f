"""The discrete Gaussian: the sampler's exact law, and the bound on delta against enumeration."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.stats import chisquare, kstest

from server.mechanisms.discrete_gaussian import (
    SMALLEST_SENSITIVITY,
    SMALLEST_STDDEV,
    bernoulli_exp,
    calibrate,
    check_claim,
    delta_upper_bound,
    sample_discrete_gaussian,
    uniform_below,
)
from server.mechanisms.gaussian import analytic_noise_multiplier, paper_noise_multiplier

mp.dps = 60
FALSE_ALARM = 1e-9  # of each statistical test below


def hockey_stick(epsilon: float, stddev: Fraction, shift: tuple[int, ...]) -> float:
    """delta of the discrete law by summing over the grid: sum of P(y) (1 - e^(epsilon - loss(y)))_+ ."""
    variance = np.longdouble(stddev.numerator) ** 2 / np.longdouble(stddev.denominator) ** 2
    reach = math.ceil(14 * stddev) + max(map(abs, shift))
    axis = np.arange(-reach, reach + 1).astype(np.longdouble)
    weights = np.exp(-(axis**2) / (2 * variance))
    mass = weights / weights.sum()
    law, loss = np.ones(1, np.longdouble), np.zeros(1, np.longdouble)
    for step in shift:
        law = np.multiply.outer(law, mass)
        loss = np.add.outer(loss, (step**2 - 2 * axis * step) / (2 * variance))
    return float((law * np.maximum(-np.expm1(np.longdouble(epsilon) - loss), 0)).sum())


@pytest.mark.parametrize("limit", range(1, 40))
def test_uniform_below_gives_every_value_by_the_same_bits(limit: int) -> None:
    bits = (limit - 1).bit_length()
    for word in range(1 << bits):
        words = iter([word, 0])
        result = uniform_below(limit, lambda k, words=words: next(words) if k == bits else -1)
        assert result == (word if word < limit else 0)


def decide(numerator: int, denominator: int, script: tuple[bool, ...]) -> tuple[bool | None, Fraction]:
    """One branch of `bernoulli_exp`: its outcome (None where the script ends first) and the branch's probability."""
    weight, place = Fraction(1), 0

    class Uniform(int):
        def __lt__(self, threshold: int) -> bool:
            nonlocal weight, place
            if place == len(script):
                raise StopIteration
            outcome = script[place]
            below = Fraction(threshold, int(self))
            weight *= below if outcome else 1 - below
            place += 1
            return outcome

    try:
        return bernoulli_exp(numerator, denominator, Uniform), weight
    except StopIteration:
        return None, weight


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 5), (1, 7), (1, 2), (1, 1), (3, 2), (9, 4)])
def test_bernoulli_exp_has_its_exact_law(numerator: int, denominator: int) -> None:
    """All branches of comparisons, with exact probabilities: what is undecided bounds the difference from e^-x."""
    true, undecided, open_scripts = Fraction(0), Fraction(0), [()]
    while open_scripts:
        script = open_scripts.pop()
        outcome, weight = decide(numerator, denominator, script)
        if outcome is None and weight > Fraction(1, 10**15):
            open_scripts += [(*script, False), (*script, True)]
        elif outcome is None:
            undecided += weight
        elif outcome:
            true += weight
    wanted = mp.exp(-mpf(numerator) / denominator)
    low, high = (mpf(v.numerator) / v.denominator for v in (true, true + undecided))
    assert low - mpf(10) ** -50 <= wanted <= high + mpf(10) ** -50
    assert undecided < Fraction(1, 10**13)


@pytest.mark.parametrize("sigma_squared", [1, 2, 7, 100])
def test_sampler_follows_the_law(sigma_squared: int) -> None:
    """Chi-square against exact probabilities, cells of at least 20 expected; false alarm 1e-9 each."""
    size = 20_000
    counts = Counter(sample_discrete_gaussian(sigma_squared, size, random.Random(5).getrandbits))
    axis = np.arange(-200, 201)
    law = np.exp(-(axis**2) / (2 * sigma_squared))
    expected = size * law / law.sum()
    observed = np.array([counts[int(k)] for k in axis])
    assert observed.sum() == size
    inner = expected >= 20
    cells = np.append(expected[inner], expected[~inner].sum()), np.append(observed[inner], observed[~inner].sum())
    assert chisquare(cells[1], cells[0]).pvalue > FALSE_ALARM


def test_sampler_at_a_large_scale() -> None:
    """Kolmogorov-Smirnov against the normal law, and uniform low bits; false alarm 1e-9 each."""
    stddev = 1 << 60
    values = sample_discrete_gaussian(stddev**2, 4_000, random.Random(6).getrandbits)
    assert kstest([v / stddev for v in values], "norm").pvalue > FALSE_ALARM
    low_bits = Counter(v % 16 for v in values)
    assert chisquare([low_bits[k] for k in range(16)]).pvalue > FALSE_ALARM


def test_sampler_takes_no_time_at_a_large_scale() -> None:
    start = time.process_time()
    sample_discrete_gaussian((1 << 60) ** 2, 200, random.Random(7).getrandbits)
    assert time.process_time() - start < 200 * 0.005


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "1", "3"])
@pytest.mark.parametrize("stddev", [Fraction(7, 10), Fraction(1), Fraction(2), Fraction(5), Fraction(20)])
@pytest.mark.parametrize("shift", [(1,), (2,), (-7,), (30,), (1, 0), (1, 1), (2, -1), (3, 4), (20, 20)])
def test_bound_holds_by_enumeration(epsilon: str, stddev: Fraction, shift: tuple[int, ...]) -> None:
    exact = hockey_stick(float(epsilon), stddev, shift)
    square = sum(step * step for step in shift)
    assert exact <= delta_upper_bound(Decimal(epsilon), stddev, square, len(shift)) + 1e-17
    mirrored = tuple(-step for step in shift)
    assert hockey_stick(float(epsilon), stddev, mirrored) == pytest.approx(exact, rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("direction", [(5,), (3, 4)])
def test_bound_becomes_tight_as_the_grid_becomes_fine(direction: tuple[int, ...]) -> None:
    ratios = []
    for scale in (1, 2, 8):
        shift = tuple(scale * step for step in direction)
        bound = delta_upper_bound(Decimal(1), 5 * scale, 25 * scale**2, len(shift))
        ratios.append(bound / hockey_stick(1.0, Fraction(5 * scale), shift))
    assert ratios == sorted(ratios, reverse=True)
    assert 1 <= ratios[-1] < 1.05


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-5"), ("1", "1e-5"), ("4", "1e-3"), ("20", "1e-6")])
def test_calibrated_scale_keeps_its_claim_by_enumeration(epsilon: str, delta: str) -> None:
    level, limit, shift = Decimal(epsilon), Decimal(delta), 5_000
    stddev = calibrate(level, limit, shift**2, 1, analytic_noise_multiplier(level, limit))
    assert stddev >= SMALLEST_STDDEV
    exact = hockey_stick(float(epsilon), Fraction(stddev), (shift,))
    assert 0.98 * float(delta) <= exact <= float(delta)


@pytest.mark.parametrize("multiplier", [analytic_noise_multiplier, paper_noise_multiplier])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "1", "40"])
def test_fine_grids_cost_nothing(epsilon: str, multiplier: Callable[[Decimal, Decimal], float]) -> None:
    level, limit, square = Decimal(epsilon), Decimal("1e-5"), 3 << 90
    asked = multiplier(level, limit)
    stddev = calibrate(level, limit, square, 1000, asked)
    assert delta_upper_bound(level, stddev, square, 1000) <= 1e-5
    assert Fraction(asked) ** 2 * square <= stddev**2
    assert stddev / (asked * math.sqrt(square)) - 1 < 1e-9


def test_calibrate_rounds_up_exactly() -> None:
    assert calibrate(Decimal(1), Decimal("1e-5"), 1 << 40, 1, 5.0) == 5 << 20
    assert calibrate(Decimal(1), Decimal("1e-5"), (1 << 40) + 1, 1, 5.0) == (5 << 20) + 1


def test_coarse_grids_and_small_multipliers_are_refused() -> None:
    level, limit = Decimal(1), Decimal("1e-5")
    asked = analytic_noise_multiplier(level, limit)
    with pytest.raises(ValueError, match="at least 1024 grid units, got 374: use a finer grid"):
        calibrate(level, limit, 100**2, 1, asked)
    with pytest.raises(ValueError, match=r"within 2\^-10 of what \(1, 0.00001\) needs"):
        calibrate(level, limit, 1000**2, 10_000, asked)
    with pytest.raises(ValueError, match="use a finer grid or more noise"):
        calibrate(level, limit, 1 << 80, 1, asked * 0.99)


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.nan, math.inf])
def test_bad_multipliers_are_refused(multiplier: float) -> None:
    with pytest.raises(ValueError, match="noise_multiplier > 0"):
        calibrate(Decimal(1), Decimal("1e-5"), 1 << 80, 1, multiplier)


def test_bad_shapes_are_refused() -> None:
    for square, dimension in ((0, 1), (-4, 1), (4, 0)):
        with pytest.raises(ValueError, match=">= 1"):
            delta_upper_bound(Decimal(1), 2048, square, dimension)
    with pytest.raises(TypeError, match="exact int, got float"):
        delta_upper_bound(Decimal(1), 2048, 4.0, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stddev > 0"):
        delta_upper_bound(Decimal(1), 0, 4, 1)
    with pytest.raises(ValueError, match="sigma_squared >= 1"):
        sample_discrete_gaussian(0, 1, random.Random(1).getrandbits)


@pytest.mark.parametrize("noise", [analytic_noise_multiplier, paper_noise_multiplier])
@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", "1", "40", "1000"])
@pytest.mark.parametrize("delta", ["1e-60", "1e-5", "0.5", "0.999999", "0.99999999999999999999"])
@pytest.mark.parametrize("dimension", [1, 1000, 1 << 20])
def test_a_claim_that_passes_finds_a_scale_at_every_sensitivity(
    noise: Callable[[Decimal, Decimal], float], epsilon: str, delta: str, dimension: int
) -> None:
    """So nothing that is known only after labels paid can refuse a release; and useful claims pass."""
    claim = Decimal(epsilon), Decimal(delta)
    multiplier = noise(*claim)
    try:
        check_claim(*claim, dimension, multiplier)
    except ValueError:
        assert claim[1] >= Decimal("0.5")
        return
    for squared in (SMALLEST_SENSITIVITY**2, 3 * SMALLEST_SENSITIVITY**2 + 1, 10**21, 1 << 80, 1 << 104):
        calibrate(*claim, squared, dimension, multiplier)


def test_a_claim_without_noise_is_refused() -> None:
    for multiplier in (math.nan, math.inf, 0.0, 1e-5):
        with pytest.raises(ValueError, match="asks for some noise"):
            check_claim(Decimal(1), Decimal("1e-5"), 1, multiplier)
