"""Identities that hold exactly, on whatever hypothesis thinks of:.

(a) the mean of the un-normalised gradient over flips is c times the clear one; (b) the same for K-ary response;
(c) K-ary response with K = 2 is the binary one; (d) no order of rows changes an exact estimator; (e) labels enter
through one sum; (f) flipped labels are a negated parameter; (g) second derivatives know no label; (h) un-normalised
descent with eta / c is normalised descent with eta; (i) without flips all estimators are one; (j) projections.
"""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from protocol.channel import TOTAL
from protocol.mechanisms import channel
from protocol.mechanisms.randomized_response import k_randomized_response
from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Evidence, Options
from server.estimators.workspace import penalised
from server.kernels_descent import descend, residual
from server.kernels_logistic import cumulant
from server.kernels_solve import project_on_ball

EPSILONS = [1e-6, 0.1, 1.0, 40.0]
RANDOMISED = ("debiased", "one-step", "rr-mle", "rr-map", "naive")
ROWS = st.integers(1, 40).flatmap(
    lambda n: arrays(np.float64, (n, 3), elements=st.integers(-64, 64).map(lambda i: i / 16))
)
SEEDS = st.integers(0, 2**32 - 1)
QUICK = settings(max_examples=25)


def law(epsilon: float) -> tuple[float, float]:
    """(contrast, flip) of the table that is executed."""
    table = channel("randomized-response", {"epsilon": Decimal(repr(epsilon))}).table
    return (table[0][0] - table[0][1]) / TOTAL, table[0][1] / TOTAL


def of(rows: NDArray[np.float64], labels: NDArray[np.uint8], contrast: float, flip: float) -> Evidence:
    return Evidence(rows, None, labels, (labels - 0.5) @ rows, contrast, flip, 0.0)


def coins(seed: int, n: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 2, n).astype(np.uint8)


@QUICK
@given(st.floats(-30, 30), st.sampled_from([0.0, 1.0]), st.sampled_from(EPSILONS))
def test_a_the_mean_gradient_over_flips_is_c_times_the_clear_one(z: float, label: float, epsilon: float) -> None:
    c, b = law(epsilon)
    mean = (b + c) * residual(z, label, c, b) + b * residual(z, 1 - label, c, b)
    assert mean == pytest.approx(c * residual(z, label, 1.0, 0.0), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("choices", [2, 3, 5, 17, 50])
def test_b_the_mean_gradient_over_k_ary_responses_is_the_clear_one(choices: int, epsilon: float) -> None:
    """phihat = (phi_report - b sum_k phi_k) / (a - b) has mean phi_y: exactly, in fractions of the executed table."""
    table = k_randomized_response(Decimal(repr(epsilon)), choices).table
    keep, other = Fraction(table[0][0], TOTAL), Fraction(table[0][1], TOTAL)
    phi = [Fraction(k * k - 7 * k, 3) for k in range(choices)]
    for y in range(choices):
        assert all(Fraction(table[y][s], TOTAL) == (keep if s == y else other) for s in range(choices))
        total = sum(Fraction(table[y][s], TOTAL) * (phi[s] - other * sum(phi)) for s in range(choices))
        assert total / (keep - other) == phi[y]


@given(st.decimals("1e-9", "40", allow_nan=False, allow_infinity=False))
def test_c_two_choices_are_a_pair(epsilon: Decimal) -> None:
    assert k_randomized_response(epsilon, 2).table == channel("randomized-response", {"epsilon": epsilon}).table


@QUICK
@given(ROWS, SEEDS, st.sampled_from([0.5, 2.0]))
def test_d_order_of_rows(rows: NDArray[np.float64], seed: int, epsilon: float) -> None:
    evidence = of(rows, coins(seed, len(rows)), *law(epsilon))
    order = np.random.default_rng(seed).permutation(len(rows))
    mixed = replace(evidence, rows=rows[order], symbols=evidence.symbols[order])  # type: ignore[index]
    for name in ("debiased", "naive", "rr-map"):
        one, other = (ESTIMATORS[name](Workspace(which), Options(3.0, ridge=0.0)) for which in (evidence, mixed))
        loss = penalised(Workspace(evidence).features, evidence.half_sum / (len(rows) * evidence.contrast), 0.0)
        if name == "rr-map" or np.linalg.matrix_rank(rows) == 3:
            np.testing.assert_allclose(one.u, other.u, rtol=1e-4, atol=1e-5)
        elif name == "debiased":  # of many minimisers either may come: they are equally good
            assert loss(one.u)[0] == pytest.approx(loss(other.u)[0], rel=1e-9, abs=1e-9)


@QUICK
@given(ROWS, SEEDS, arrays(np.float64, 3, elements=st.floats(-3, 3)))
def test_e_labels_enter_through_one_sum(rows: NDArray[np.float64], seed: int, u: NDArray[np.float64]) -> None:
    """Each row twice, and its two labels swapped: other labels, the same sum, and losses that differ by nothing."""
    labels = coins(seed, 2 * len(rows))
    twice, swapped = np.concatenate([rows, rows]), np.concatenate([labels[len(rows) :], labels[: len(rows)]])
    c, b = law(1.0)
    one, other = of(twice, labels, c, b), of(twice, swapped, c, b)
    np.testing.assert_array_equal(one.half_sum, other.half_sum)
    for name in ("debiased", "naive"):
        found = [ESTIMATORS[name](Workspace(which), Options(3.0)).u for which in (one, other)]
        np.testing.assert_array_equal(*found)

    def loss(y: NDArray[np.uint8]) -> float:  # from the definition, label by label
        z, corrected = twice @ u, 0.5 + (y - 0.5) / c
        return float(np.sum(corrected * np.logaddexp(0, -z) + (1 - corrected) * np.logaddexp(0, z)))

    assert loss(labels) == pytest.approx(loss(swapped), rel=1e-12, abs=1e-9)


@QUICK
@given(ROWS, SEEDS, st.sampled_from([0.5, 2.0]))
def test_f_flipped_labels_are_a_negated_parameter(rows: NDArray[np.float64], seed: int, epsilon: float) -> None:
    labels = coins(seed, len(rows))
    there, back = (Workspace(of(rows, y, *law(epsilon))) for y in (labels, (1 - labels).astype(np.uint8)))
    for name in ("debiased", "rr-mle", "rr-map", "naive"):
        one, other = (ESTIMATORS[name](which, Options(3.0)).u for which in (there, back))
        np.testing.assert_array_equal(one, -other)
    for averaging in ("last", "half", "all"):
        options = Options(3.0, step=0.3, averaging=averaging)
        if averaging == "last" or rows.any():
            one, other = (ESTIMATORS["debiased-sgd"](which, options).u for which in (there, back))
            np.testing.assert_allclose(one, -other, rtol=1e-6, atol=1e-9)


@QUICK
@given(ROWS, SEEDS, SEEDS, arrays(np.float64, 3, elements=st.floats(-3, 3)))
def test_g_second_derivatives_know_no_label(
    rows: NDArray[np.float64], seed: int, another: int, u: NDArray[np.float64]
) -> None:
    c, b = law(0.5)
    for one, other in [(of(rows, coins(seed, len(rows)), c, b), of(rows, coins(another, len(rows)), c, b))]:
        first, second = (penalised(Workspace(e).features, Workspace(e).mean(c), 0.0)(u)[2] for e in (one, other))
        np.testing.assert_array_equal(first, second)
        z = rows @ u
        variance = 0.25 / np.cosh(z / 2) ** 2
        np.testing.assert_allclose(first, (rows.T * variance) @ rows / len(rows), rtol=1e-9, atol=1e-12)


@QUICK
@given(ROWS, SEEDS, st.sampled_from([0.1, 1.0, 4.0]), st.floats(0.05, 5.0))
def test_h_the_factor_of_the_step_is_the_factor_of_the_gradient(
    rows: NDArray[np.float64], seed: int, epsilon: float, alpha: float
) -> None:
    c, b = law(epsilon)
    labels = coins(seed, len(rows))
    corrected, normal = 0.5 + (labels - 0.5) / c, np.zeros(3)
    ours = np.zeros(3)
    for t, row in enumerate(rows):
        part = np.ascontiguousarray(row[:, None])
        descend(part, labels[t : t + 1].astype(np.float64), c, b, alpha, 3.0, t, ours)
        normal = normal - (1 / (1 + math.exp(-float(normal @ row))) - corrected[t]) * row / (alpha * (t + 1))
        normal *= min(1.0, 3.0 / max(float(np.linalg.norm(normal)), 1e-300))
        np.testing.assert_allclose(ours, normal, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [30, 400])
def test_i_without_flips_all_estimators_are_one(n: int) -> None:
    rng = np.random.default_rng(n)
    rows = np.round(rng.normal(size=(n, 3)) * 2**10) / 2**10
    labels = (rng.random(n) < 1 / (1 + np.exp(-rows @ np.array([0.6, -0.3, 0.2])))).astype(np.uint8)
    clear = ESTIMATORS["mle"](Workspace(of(rows, labels, 1.0, 0.0)), Options(5.0)).u
    flips = law(40.0)
    for name in RANDOMISED:
        if name != "rr-map":
            found = ESTIMATORS[name](Workspace(of(rows, labels, *flips)), Options(5.0)).u
            np.testing.assert_allclose(found, clear, rtol=1e-7)
    wide = ESTIMATORS["rr-map"](Workspace(of(rows, labels, *flips)), Options(5.0, tau=1e5)).u
    np.testing.assert_allclose(wide, clear, rtol=1e-5)


@given(
    arrays(np.float64, (2, 4), elements=st.floats(-1e6, 1e6)),
    st.floats(1e-3, 1e3),
)
def test_j_projection_is_idempotent_and_brings_points_no_further_apart(
    points: NDArray[np.float64], bound: float
) -> None:
    projected = points.copy()
    for point in projected:
        project_on_ball(point, bound)
        assert np.linalg.norm(point) <= bound * (1 + 1e-14)
        again = point.copy()
        project_on_ball(again, bound)
        np.testing.assert_allclose(again, point, rtol=1e-15)
    before, after = (float(np.linalg.norm(pair[0] - pair[1])) for pair in (points, projected))
    assert after <= before * (1 + 1e-12) + 1e-12 * bound


def test_the_hessian_of_the_paper_s_loss_is_c_times_ours() -> None:
    """Equation (5) second-differenced label by label, at the test point of the oracles."""
    c, b = law(1.0)
    x, u, h = np.array([1.0, 2.0, -1.0]), np.array([0.3, -0.1, -0.2]), 1e-4

    def paper(z: float, report: int) -> float:
        up, down = math.log(1 / (1 + math.exp(-z))), math.log(1 / (1 + math.exp(z)))
        return -((b + c) * up - b * down) if report else -((b + c) * down - b * up)

    z = float(u @ x)
    hessian = cumulant(x[None, :], np.empty(0), u, True)[2]
    for report in (0, 1):
        second = (paper(z + h, report) - 2 * paper(z, report) + paper(z - h, report)) / h**2
        np.testing.assert_allclose(second * np.outer(x, x), c * hessian, rtol=1e-5)
