"""Distributed noise: oracles, and each bound against the law that it is a bound for."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import skellam

from protocol.noise.discrete_gaussian import USUAL_LOSS, gap, rho, rounded_norm
from protocol.noise.skellam import divergence

Oracle = Callable[[str], float]


def test_oracles(heavy_oracle: Oracle) -> None:
    assert gap(100, 0.25) == pytest.approx(heavy_oracle("ddg_tau(n=100"), rel=1e-13)
    assert rho(10, 100, 4, 1000) == pytest.approx(heavy_oracle("ddg rho (D2=10"), rel=1e-13)
    assert rounded_norm(100, 1024) == pytest.approx(heavy_oracle("rounded norm (c=100"), rel=1e-13)
    assert divergence(8, 300, 10, 1e4) == pytest.approx(heavy_oracle("Skellam RDP(alpha=8"), rel=1e-13)


@pytest.mark.parametrize("parts", [(0.3, 0.5, 0.7, 0.2), (2.5,) * 6, (0.01,) * 8, (10.25, -3.5, 0.5)])
def test_most_roundings_are_within_the_norm(parts: tuple[float, ...]) -> None:
    """All 2^d roundings of a vector, each coordinate up or down with the mean kept."""
    norm, chance = math.dist(parts, [0] * len(parts)), 0.0
    limit = rounded_norm(norm, len(parts))
    for ups in product((0, 1), repeat=len(parts)):
        point = [math.floor(x) + up for x, up in zip(parts, ups, strict=True)]
        shares = [x - math.floor(x) if up else 1 - x + math.floor(x) for x, up in zip(parts, ups, strict=True)]
        chance += math.prod(shares) * (math.hypot(*point) <= limit)
    assert chance >= 1 - USUAL_LOSS


@pytest.mark.parametrize(("n", "variance"), [(2, 0.25), (3, 0.5), (6, 0.5), (4, 1.0)])
def test_a_sum_of_discrete_gaussians_is_nearly_one(n: int, variance: float) -> None:
    places = np.arange(-30, 31)
    one = np.exp(-(places**2) / (2 * variance))
    one /= one.sum()
    total = one
    for _ in range(n - 1):
        total = np.convolve(total, one)
    reach = np.arange(len(total)) - len(total) // 2
    whole = np.exp(-(reach**2) / (2 * n * variance))
    whole /= whole.sum()
    inside = np.abs(reach) <= 25  # where sums of truncated laws are those of whole ones
    between = np.abs(np.log(total[inside]) - np.log(whole[inside])).max()
    assert between <= gap(n, variance) + 1e-12


def test_large_noise_costs_what_gaussian_noise_does() -> None:
    assert rho(3, 50, 2.0, 10) == pytest.approx(9 / (2 * 50 * 2.0), rel=1e-3)
    assert rho(3, 50, 0.25, 10) > 10 * 9 / (2 * 50 * 0.25)


@pytest.mark.parametrize(("shift", "variance", "order"), [(1, 4.0, 2), (3, 25.0, 8), (1, 1.0, 3), (10, 400.0, 4)])
def test_skellam_noise_costs_no_more_than_is_said(shift: int, variance: float, order: int) -> None:
    """Against the divergence of Sk(mu) and its shift, summed up: one coordinate, so D1 = D2."""
    reach = np.arange(-int(12 * math.sqrt(variance)) - 12, int(12 * math.sqrt(variance)) + 13)
    log = [skellam.logpmf(reach - at, variance / 2, variance / 2) for at in (shift, 0)]
    found = float(logsumexp(order * log[0] + (1 - order) * log[1])) / (order - 1)
    assert found <= divergence(order, shift, shift, variance)
    assert found >= 0.7 * order * shift**2 / (2 * variance)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="loss"):
        rounded_norm(1, 2, 1.0)
    with pytest.raises(ValueError, match="1/4"):
        gap(10, 0.2)
    with pytest.raises(ValueError, match="sensitivity"):
        rho(math.nan, 10, 1, 1)
    with pytest.raises(ValueError, match="order"):
        divergence(1, 1, 1, 1)
