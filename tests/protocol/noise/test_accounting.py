"""Claims of noise in shares: never below the exact loss, and next to those of Gaussian noise."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.gaussian import gaussian_delta, gaussian_delta_bound, gaussian_mu
from protocol.noise import LAWS
from protocol.noise.accounting import Shares, delta_bound, keeps, least_variance
from protocol.noise.increments import increment
from protocol.noise.law import Floats
from protocol.noise.losses import convolved_delta, exact_delta
from protocol.noise.skellam import divergence

NAMES = sorted(LAWS)
DELTA = Decimal("0.00001")
STEP = 2e-3


def shape_of(law: str, variance: float) -> Floats:
    return LAWS[law].shape(float(LAWS[law].possible(Fraction(variance), 1)))


def test_the_oracle_of_one_coordinate(oracle: dict[int, float]) -> None:
    """The test value is on a grid of 1e-6, rounded upwards; the exact one is below it."""
    shape = shape_of("skellam", 40)
    assert exact_delta(shape, 3, 1.0) == pytest.approx(oracle[53], rel=1e-12)
    assert convolved_delta(shape, [3], 1.0, step=1e-6) == pytest.approx(0.004453528071990396, rel=1e-8)


@pytest.mark.parametrize(("shift", "expected"), [((30, -20, 10, 5), 9.994e-6), ((3, -2, 1, 0), 9.34e-6)])
def test_the_gaussian_s_variance_costs_what_is_known(shift: tuple[int, ...], expected: float) -> None:
    variance = sum(part**2 for part in shift) / gaussian_mu(Decimal(1), DELTA) ** 2
    found = convolved_delta(LAWS["skellam"].shape(variance), shift, 1.0, step=1e-5)
    assert expected * (1 - 1e-4) <= found <= expected * (1 + 5e-4)


@pytest.mark.slow
def test_a_finer_grid_comes_to_the_same_from_above() -> None:
    variance = 1425 / gaussian_mu(Decimal(1), DELTA) ** 2
    shape = LAWS["skellam"].shape(variance)
    coarse, fine = (convolved_delta(shape, (30, -20, 10, 5), 1.0, step=step) for step in (1e-5, 1e-6))
    assert fine <= coarse and fine == pytest.approx(9.994e-6, rel=5e-5)


@given(
    st.sampled_from(NAMES),
    st.integers(2, 400),
    st.lists(st.integers(-12, 12).filter(bool), min_size=1, max_size=3),
    st.floats(0.01, 6),
)
@settings(max_examples=60)
def test_a_shift_is_hidden_as_well_as_by_gaussian_noise(
    law: str, variance: int, shifts: list[int], epsilon: float
) -> None:
    """The theorem of increments, against sums over the laws themselves: in one coordinate, and convolved in up to 3."""
    shape = shape_of(law, variance)
    if len(shape) < 15:
        return
    found = increment(shape, within=1e-6)
    lost = (1 + math.exp(epsilon)) * len(shifts) * found.beyond
    for shift in shifts:
        exact = exact_delta(shape, shift, epsilon)
        assert exact <= gaussian_delta_bound(epsilon, abs(shift) * found.largest) + lost + 1e-14
        assert exact == pytest.approx(exact_delta(shape, -shift, epsilon), abs=1e-13)  # the same in both directions
    rounded = epsilon + STEP * len(shifts)  # what a loss on the grid is above the loss itself
    length = math.hypot(*shifts) * found.largest
    assert convolved_delta(shape, shifts, rounded, STEP) <= gaussian_delta(epsilon, length) + lost + 1e-12


@given(
    st.sampled_from(NAMES),
    st.integers(4, 3000),
    st.integers(1, 25),
    st.lists(st.integers(-9, 9).filter(bool), min_size=1, max_size=3),
    st.sampled_from(["0.1", "0.5", "1", "3", "8"]),
)
@settings(max_examples=60)
def test_a_claim_is_never_below_the_exact_loss(
    law: str, variance: int, honest: int, shifts: list[int], epsilon: str
) -> None:
    total = LAWS[law].possible(Fraction(max(variance, honest)), honest)
    shares, squared = Shares(law, total, honest, len(shifts)), sum(part**2 for part in shifts)
    shape = LAWS[law].shape(float(total))
    if len(shape) < 12:
        return
    if law == "binomial" and total < 200:  # so small that its table ends before its tail is light
        return
    claimed = delta_bound(shares, Decimal(epsilon), squared)
    for shift in shifts:
        assert exact_delta(shape, shift, float(epsilon)) <= claimed
    below = convolved_delta(shape, shifts, float(epsilon) + STEP * len(shifts), STEP)
    assert below <= claimed * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("law", NAMES)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
def test_the_noise_is_next_to_the_curator_s(law: str, epsilon: str) -> None:
    mu = gaussian_mu(Decimal(epsilon), DELTA)
    squared = int((mu * 2**11) ** 2)
    variance = least_variance(law, Decimal(epsilon), DELTA, squared, 5, 900)
    assert 1 <= variance * Fraction(mu) ** 2 / squared < 1 + Fraction(1, 2000)
    shares = Shares(law, variance, 900, 5)
    assert keeps(shares, Decimal(epsilon), DELTA, squared)
    assert delta_bound(shares, Decimal(epsilon), squared) <= 1.0001e-5
    less = LAWS[law].possible(variance * Fraction(99, 100), 900)
    assert not keeps(Shares(law, less, 900, 5), Decimal(epsilon), DELTA, squared)
    assert not keeps(shares, Decimal(epsilon), DELTA, squared + squared // 100)


def test_the_middle_is_where_skellam_noise_says_most() -> None:
    """m = (1 + 1 / (8 v) + O(1 / v^2)) / sqrt(v): tails are heavier than Gaussian ones."""
    for variance in (50.0, 500.0, 5000.0):
        middle = increment(LAWS["skellam"].shape(variance), 1e-18).largest * math.sqrt(variance) - 1
        assert 1 / (8 * variance) <= middle <= 1.4 / (8 * variance) + 1e-7


def test_the_renyi_bound_says_more_than_is_lost() -> None:
    """At the variance that keeps (1, 1e-5), the best order of the bound asks for an epsilon 5 to 15 % larger."""
    shift = (30, -20, 10, 5)
    l2, l1 = math.sqrt(1425), 65
    variance = float(least_variance("skellam", Decimal(1), DELTA, 1425, 4, 1))
    orders = np.linspace(2, 60, 2000)
    spent = [
        divergence(order, l1, l2, variance)
        + (math.log(1 / float(DELTA) / order) + math.log1p(-1 / order) * (order - 1)) / (order - 1)
        for order in orders
    ]
    assert 1.05 < min(spent) < 1.15
    assert convolved_delta(LAWS["skellam"].shape(variance), shift, 1.0) <= 1e-5


def test_fewer_honest_rows_than_said_hide_less() -> None:
    """With a quarter of the honest rows the noise of the rest has a quarter of the variance: twice the Gaussian mu."""
    variance = least_variance("skellam", Decimal(1), DELTA, 1 << 20, 4, 100)
    few = delta_bound(Shares("skellam", Fraction(math.ceil(variance / 4)), 25, 4), Decimal(1), 1 << 20)
    assert few == pytest.approx(gaussian_delta(1.0, 2 * gaussian_mu(Decimal(1), DELTA)), rel=1e-3)
    assert few > 100 * 1e-5


def test_refusals() -> None:
    for wrong in ({"law": "laplace"}, {"honest": 0}, {"dimension": 0}, {"variance": Fraction(1, 2)}):
        with pytest.raises(ValueError, match="expected"):
            Shares(**({"law": "skellam", "variance": Fraction(40), "honest": 3, "dimension": 2} | wrong))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="share"):
        Shares("binomial", Fraction(40), 3, 2)  # 160 bits among three rows
    with pytest.raises(ValueError, match="share"):
        Shares("skellam", Fraction(81, 2), 3, 2)
    shares = Shares("skellam", Fraction(400), 3, 2)
    for squared in (0, True, 1.0):
        with pytest.raises(ValueError, match="sensitivity"):
            delta_bound(shares, Decimal(1), squared)  # type: ignore[arg-type]
    for level in ("41", "0", "NaN"):
        with pytest.raises(ValueError, match="epsilon"):
            delta_bound(shares, Decimal(level), 4)
    with pytest.raises(ValueError, match="finer grid"):
        least_variance("discrete-gaussian", Decimal(1), DELTA, 4, 4, 10_000)  # shares below 1/4
    with pytest.raises(ValueError, match="coarser"):
        least_variance("skellam", Decimal("0.01"), DELTA, 1 << 26, 4, 10)
    for table in (np.ones(1), np.array([1.0, 2.0]), np.array([1.0, np.nan])):
        with pytest.raises(ValueError, match="probabilities"):
            increment(table, 1e-9)
