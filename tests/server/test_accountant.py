"""Several releases together: never below the exact law of what is executed, never above the sum of claims by much."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.privacy import Unit
from server.accountant import Noise, composed_delta_bound, composed_epsilon, composed_mu, composition
from server.mechanisms.discrete_gaussian import calibrate, calibrate_run, delta_upper_bound, scaled_stddev
from server.mechanisms.gaussian import gaussian_delta
from server.release_record import Release, ReleaseRequest

FINE = 1 << 40


def release(epsilon: str, delta: str, unit: Unit = Unit.LABEL, task: int = 0) -> Release:
    request = ReleaseRequest(
        task=bytes([task + 1]),
        repetition=0,
        accepted=(b"r",),
        count=9,
        exponent=-40,
        sensitivity_squared=FINE**2,
        mechanism="gaussian-statistic",
        epsilon=Decimal(epsilon),
        delta=Decimal(delta),
        unit=unit,
        cap=4 if unit is Unit.LABELER else 0,
    )
    stddev = calibrate(request.epsilon, request.delta, FINE**2, 4, request.noise_multiplier)
    return Release(request, (0, 0, 0, 0), stddev)


def enumerated(epsilon: float, laws: Sequence[tuple[int, int]], moved: Sequence[int]) -> float:
    """delta of several discrete Gaussians (stddev s, shift v), by summing over a grid of what they show.

    The second shift may depend on the first result: `moved` are its signs for a first result <= 0 and above.
    """
    (s1, v1), (s2, v2) = laws
    y1, y2 = np.arange(-15 * s1 - v1, 15 * s1 + v1 + 1), np.arange(-15 * s2 - v2, 15 * s2 + v2 + 1)
    first, second = np.exp(-(y1**2) / (2 * s1**2)), np.exp(-(y2**2) / (2 * s2**2))
    joint = np.outer(first / first.sum(), second / second.sum())
    sign = np.where(y1 <= 0, moved[0], moved[1])[:, None] * v2
    loss = ((y1 - v1) ** 2 - y1**2)[:, None] / (2 * s1**2) + ((y2 - sign) ** 2 - y2**2) / (2 * s2**2)
    return float((joint * np.maximum(0.0, -np.expm1(epsilon - loss))).sum())


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
@pytest.mark.parametrize("laws", [((4, 2), (3, 3)), ((5, 5), (5, 5)), ((2, 1), (9, 4))])
@pytest.mark.parametrize("moved", [(1, 1), (1, -1), (-1, 1), (0, 1)])
def test_the_bound_holds_by_enumeration_also_where_the_second_sum_adapts(
    epsilon: str, laws: tuple[tuple[int, int], tuple[int, int]], moved: tuple[int, int]
) -> None:
    bound = composed_delta_bound(Decimal(epsilon), [Noise(s, v * v, 1) for s, v in laws])
    assert enumerated(float(epsilon), laws, moved) <= bound


@given(st.integers(1 << 10, 1 << 60), st.integers(1, 1 << 60), st.integers(1, 50), st.sampled_from(["0.1", "1", "9"]))
def test_one_release_has_its_own_bound(stddev: int, sensitivity: int, dimension: int, epsilon: str) -> None:
    alone = delta_upper_bound(Decimal(epsilon), stddev, sensitivity, dimension)
    assert composed_delta_bound(Decimal(epsilon), [Noise(stddev, sensitivity, dimension)]) == pytest.approx(
        alone, rel=1e-9
    )


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=6), st.sampled_from(["0.2", "1", "6"]))
def test_on_a_fine_grid_it_is_gaussian_with_the_root_of_summed_squares(mus: list[float], epsilon: str) -> None:
    noises = [Noise(Fraction(FINE) / Fraction(mu), FINE**2, 3) for mu in mus]
    total = math.sqrt(math.fsum(mu * mu for mu in mus))
    assert composed_mu(noises) == pytest.approx(total, rel=1e-12)
    exact = gaussian_delta(float(epsilon), total)
    assert exact <= composed_delta_bound(Decimal(epsilon), noises) <= exact * (1 + 1e-8) + 1e-12


def test_the_level_keeps_delta_and_no_smaller_one_of_four_digits_does() -> None:
    noises = [Noise(4 * FINE, FINE**2, 5)] * 3
    level = composed_epsilon(Decimal("1e-5"), noises)
    assert level is not None and len(level.as_tuple().digits) <= 4
    assert composed_delta_bound(level, noises) <= 1e-5 < composed_delta_bound(level * Decimal("0.999"), noises)
    assert composed_epsilon(Decimal("1e-5"), [Noise(1, FINE**2, 5)]) is None


def test_ten_releases_cost_less_than_ten_claims_and_one_costs_what_it_claims() -> None:
    one, ten = (composition([release("1", "0.00001", task=k) for k in range(count)], Unit.LABEL) for count in (1, 10))
    assert one is not None and one.basic is not None and one.epsilon is not None
    assert one.basic.epsilon == 1 and Decimal("0.999") <= one.epsilon <= Decimal("1.001")
    assert ten is not None and ten.basic is not None and ten.epsilon is not None
    assert ten.basic.epsilon == 10 and ten.basic.delta == Decimal("0.0001")
    assert ten.mu == pytest.approx(math.sqrt(10) * one.mu)
    assert ten.epsilon < 4


def test_a_labeler_is_promised_something_only_where_every_release_protects_labelers() -> None:
    label, labeler = release("1", "1e-6"), release("1", "1e-6", Unit.LABELER, task=1)
    assert composition([label, labeler], Unit.LABELER) is None
    assert composition([], Unit.LABEL) is None
    for releases, unit in (([label, labeler], Unit.LABEL), ([labeler], Unit.LABELER)):
        found = composition(releases, unit)
        assert found is not None and found.unit is unit and found.releases == len(releases)


def test_a_delta_of_one_promises_nothing_by_addition() -> None:
    found = composition([release("1", "0.6", task=k) for k in range(2)], Unit.LABEL)
    assert found is not None and found.basic is None and found.epsilon is None


def rounds_of(count: int, rounds: int, unit: Unit = Unit.RECORD) -> list[Release]:
    """Releases of rounds whose thresholds, and with them sensitivities, differ."""
    plain, found = release("1", "0.00001").request, []
    for place in range(count):
        moved = (FINE + 12345 * place) ** 2
        request = replace(
            plain, task=bytes([place + 1]), mechanism="gaussian", unit=unit, rounds=rounds, sensitivity_squared=moved
        )
        least = calibrate_run(request.epsilon, request.delta, 4, request.noise_multiplier, rounds)
        found.append(Release(request, (0, 0, 0, 0), scaled_stddev(least, moved)))
    return found


def test_rounds_that_share_a_claim_cost_it_once() -> None:
    for count, claims in ((1, 1), (7, 1), (8, 2)):
        found = composition(rounds_of(count, 7), Unit.RECORD)
        assert found is not None and found.basic is not None and found.epsilon is not None
        assert found.releases == count and found.basic.epsilon == claims
        assert found.epsilon <= Decimal("1.001") * claims
    whole = composition(rounds_of(7, 7), Unit.RECORD)
    assert whole is not None and whole.epsilon is not None and whole.epsilon > Decimal("0.999")


def test_records_and_labels_are_added_up_apart() -> None:
    """A claim for records says nothing about labels of somebody, and the other way round."""
    both = [release("1", "1e-6"), *rounds_of(2, 2)]
    for unit, count in ((Unit.LABEL, 1), (Unit.RECORD, 2)):
        found = composition(both, unit)
        assert found is not None and (found.unit, found.releases) == (unit, count)
    assert composition(rounds_of(2, 2), Unit.LABEL) is None
    assert composition(rounds_of(2, 2), Unit.HOLDER) is None
    holders = composition(rounds_of(2, 2, Unit.HOLDER), Unit.RECORD)  # each record of a holder is protected with it
    assert holders is not None and holders.basic is not None and holders.basic.unit is Unit.RECORD
