"""Compiled passes against plain formulas and independent values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.features import lift, project
from server.kernels import indices, largest, mean_moment, mean_product, sum_of_logs
from server.kernels_descent import residual
from server.kernels_elementary import exp_nonpositive, log_one_plus
from server.kernels_logistic import cumulant, variances
from server.kernels_randomized import likelihood
from server.kernels_solve import inverse, minimise_on_ball, norm, project_on_ball

NO_SCALES = np.empty(0)
SIZES = [(1, 1), (2, 3), (7, 4), (255, 4), (256, 1), (257, 4), (1025, 7), (300, 10), (21, 13)]  # a tile holds 256 rows


def channel(epsilon: float) -> tuple[float, float]:
    """(contrast, flip) of randomised response."""
    return math.tanh(epsilon / 2), math.exp(-epsilon) / (1 + math.exp(-epsilon))


def one_row(z: float) -> np.ndarray:
    """A design of one row with u . x = z at u = 1."""
    return np.array([[z]])


def test_exp_is_accurate_to_two_ulp() -> None:
    x = -np.concatenate([[0.0, 1e-300, 1e-9, 0.5 * math.log(2), 707.9], np.geomspace(1e-6, 700, 20_001)])
    ours = np.array([exp_nonpositive(value) for value in x])
    exact = np.exp(x)
    assert np.max(np.abs(ours - exact) / np.spacing(exact)) <= 3  # two ulp, and one of numpy's
    assert exp_nonpositive(0.0) == 1.0
    assert exp_nonpositive(-1e300) == exp_nonpositive(-708.0) > 0.0


def test_log_one_plus_is_accurate_to_five_ulp() -> None:
    t = np.concatenate([[1e-300, 1e-9, 1.0], np.linspace(0, 1, 20_001)[1:]])
    ours = np.array([log_one_plus(value) for value in t])
    exact = np.array([math.log1p(value) for value in t])  # numpy's own is up to 4 ulp off on some processors
    assert np.max(np.abs(ours - exact) / np.spacing(exact)) <= 5
    assert log_one_plus(0.0) == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 64, 511, 512])
@pytest.mark.parametrize("halvings", [0, 3, 9])
def test_logs_of_products_are_sums_of_logs(count: int, halvings: int) -> None:
    values = np.random.default_rng(count).uniform(1, 2, count)
    expected = math.fsum(np.log(values))
    assert sum_of_logs(values.copy(), count, halvings) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("n", "p"), SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_cumulant_is_its_formula(n: int, p: int, weighted: bool) -> None:
    rng = np.random.default_rng([n, p])
    x, u = rng.normal(size=(n, p)) * 2, rng.normal(size=p)
    w = rng.uniform(0.2, 1, n) if weighted else np.ones(n)
    v, z = x * w[:, None], x @ u
    value, gradient, hessian = cumulant(v, 1 / w if weighted else NO_SCALES, u, True)
    assert value == pytest.approx(np.mean(w * (np.abs(z) / 2 + np.log1p(np.exp(-np.abs(z))))), rel=1e-13)
    np.testing.assert_allclose(gradient, np.tanh(z / 2) @ v / (2 * n), rtol=1e-12, atol=1e-15)
    variance = 0.25 / np.cosh(z / 2) ** 2
    np.testing.assert_allclose(hessian, (v.T * (variance / w)) @ v / n, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(hessian, hessian.T)
    ours = variances(v, 1 / w if weighted else NO_SCALES, u)
    np.testing.assert_allclose(ours, variance, rtol=1e-12)
    np.testing.assert_allclose(mean_moment(v, variance), (v.T * variance) @ v / n, atol=1e-14)


@pytest.mark.parametrize(("n", "p"), SIZES)
def test_sums_and_extremes_over_rows_are_their_formulas(n: int, p: int) -> None:
    rng = np.random.default_rng([n, p, 1])
    v, values, scales, u = rng.normal(size=(n, p)), rng.normal(size=n), rng.uniform(1, 5, n), rng.normal(size=p)
    np.testing.assert_allclose(mean_product(v, values), values @ v / n, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(indices(v, u), v @ u, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(largest(v, NO_SCALES), np.abs(v).max(axis=0))
    np.testing.assert_array_equal(largest(v, scales), (np.abs(v) * scales[:, None]).max(axis=0))


def test_a_gradient_alone_has_the_bits_of_one_beside_a_hessian() -> None:
    v, u = np.random.default_rng(3).normal(size=(700, 5)), np.linspace(-1, 1, 5)
    value, gradient, hessian = cumulant(v, NO_SCALES, u, False)
    beside = cumulant(v, NO_SCALES, u, True)
    assert hessian.size == 0 and value == beside[0]
    np.testing.assert_array_equal(gradient, beside[1])


def test_cumulant_at_large_arguments_is_finite() -> None:
    value, gradient, hessian = cumulant(one_row(1.0), NO_SCALES, np.array([1e6]), True)
    assert value == pytest.approx(5e5)
    assert gradient[0] == 0.5
    assert 0.0 < hessian[0, 0] < 1e-300


@pytest.mark.parametrize(("n", "p"), SIZES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 40.0])
def test_likelihood_is_its_formula(n: int, p: int, epsilon: float) -> None:
    rng = np.random.default_rng([n, p])
    x, u = rng.normal(size=(n, p)), rng.normal(size=p)
    signs = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    c, b = channel(epsilon)
    a, z = b + c, signs * (x @ u)
    s, r = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(z))  # sigma and 1 - sigma
    q, rest = b + c * s, b + c * r
    value, gradient, expected = likelihood(x, signs, c, b, False, u)
    assert value == pytest.approx(-np.mean(np.log(q)), rel=1e-12)
    np.testing.assert_allclose(gradient, -(signs * c * s * r / q) @ x / n, rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(expected, (x.T * ((c * s * r) ** 2 / (q * rest))) @ x / n, rtol=1e-11, atol=1e-15)
    observed = likelihood(x, signs, c, b, True, u)[2]
    second = c * s * r / q**2 * (a * s**2 - b * r**2)
    np.testing.assert_allclose(observed, (x.T * second) @ x / n, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("z", [-400.0, -40.0, 40.0, 400.0])
def test_likelihood_without_flips_is_the_clear_one_also_far_out(z: float) -> None:
    value, gradient, observed = likelihood(one_row(z), np.ones(1), 1.0, 0.0, True, np.ones(1))
    clear, slope, curvature = cumulant(one_row(z), NO_SCALES, np.ones(1), True)
    assert value == pytest.approx(clear - z / 2, rel=1e-12, abs=1e-15)
    assert gradient[0] == pytest.approx(slope[0] - z / 2, rel=1e-12, abs=1e-12)
    assert observed[0, 0] == pytest.approx(curvature[0, 0], rel=1e-12)


def test_one_row_oracles(oracle: dict[int, float]) -> None:
    c, b = channel(1.0)
    z = float(np.array([0.3, -0.1, -0.2]) @ np.array([1.0, 2.0, -1.0]))
    assert z == pytest.approx(oracle[15], rel=1e-9)
    assert variances(one_row(2.0), NO_SCALES, np.ones(1))[0] == pytest.approx(oracle[13], rel=1e-9)
    one, zero = residual(z, 1.0, c, b), residual(z, 0.0, c, b)
    assert one == pytest.approx(oracle[16], rel=1e-9)
    assert one / c == pytest.approx(oracle[17], rel=1e-9)
    assert zero == pytest.approx(oracle[18], rel=1e-9)
    assert zero / c == pytest.approx(oracle[19], rel=1e-9)
    assert (b + c) * one + b * zero == pytest.approx(oracle[20], rel=1e-9)
    # c (A(u) - s u) with s = 1 / (2 c): the de-biased loss on the paper's scale
    assert c * cumulant(one_row(z), NO_SCALES, np.ones(1), True)[0] - z / 2 == pytest.approx(oracle[21], rel=1e-9)
    value, slope, expected = likelihood(one_row(z), np.ones(1), c, b, False, np.ones(1))
    assert value == pytest.approx(oracle[22], rel=1e-9)
    assert slope[0] / z == pytest.approx(oracle[23], rel=1e-9)
    assert expected[0, 0] / z**2 == pytest.approx(oracle[24], rel=1e-9)
    assert likelihood(one_row(-0.5), np.ones(1), c, b, True, np.ones(1))[2][0, 0] == pytest.approx(0.0, abs=1e-16)
    assert oracle[25] == pytest.approx(0.0, abs=1e-16)


def test_likelihood_is_convex_on_the_ball_from_the_threshold_on(oracle: dict[int, float]) -> None:
    # |z| <= 2 L B = 2 at L = B = 1; the bend of a row is least at z = -2 for label 1.
    for epsilon, positive in ((oracle[14] * 1.001, True), (oracle[14] * 0.999, False)):
        c, b = channel(epsilon)
        assert (likelihood(one_row(-2.0), np.ones(1), c, b, True, np.ones(1))[2][0, 0] > 0) == positive


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 40.0])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_randomised_residual_is_unbiased(epsilon: float, label: float) -> None:
    c, b = channel(epsilon)
    for z in (-3.0, -0.2, 0.0, 1.7):
        mean = (b + c) * residual(z, label, c, b) + b * residual(z, 1 - label, c, b)
        assert mean == pytest.approx(c * (1 / (1 + math.exp(-z)) - label), rel=1e-9, abs=1e-16)


def test_projection_oracles(oracle: dict[int, float]) -> None:
    u = project(np.array([[3.0, 1.0, -1.0, 2.0, 0.0]]))[0]
    project_on_ball(u, 1.5)
    theta = lift(u)
    assert theta[0] == pytest.approx(oracle[26], rel=1e-9)
    assert 1 + theta.sum() == pytest.approx(oracle[27], abs=1e-14)


vectors = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3).map(np.array)


@given(vectors, vectors, st.floats(1e-3, 1e6))
def test_projection_is_idempotent_and_brings_points_no_further_apart(x: np.ndarray, y: np.ndarray, r: float) -> None:
    px, py = x.copy(), y.copy()
    project_on_ball(px, r)
    project_on_ball(py, r)
    assert norm(px) <= r * (1 + 1e-15)
    again = px.copy()
    project_on_ball(again, r)
    np.testing.assert_allclose(again, px, rtol=1e-15)
    assert norm(px - py) <= norm(x - y) + 1e-15 * (norm(x) + norm(y))


@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(1e-3, 1e3), st.booleans())
def test_quadratic_on_a_ball_meets_the_conditions_of_a_minimum(seed: int, p: int, bound: float, thin: bool) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(p, max(1, p - 2) if thin else p + 2))
    matrix, linear, v = root @ root.T, rng.normal(size=p), np.zeros(p)
    shift, exists = minimise_on_ball(matrix, linear, bound, v)
    assert exists
    assert norm(v) <= bound * (1 + 1e-13)
    if shift > 1e-9 * matrix.trace():
        assert norm(v) == pytest.approx(bound, rel=1e-9)
    scale = np.abs(matrix).max() + shift
    np.testing.assert_allclose((matrix + shift * np.eye(p)) @ v, linear, atol=1e-9 * (1 + scale * bound))


def test_a_singular_quadratic_needs_a_ball() -> None:
    v = np.zeros(2)
    assert minimise_on_ball(np.ones((2, 2)), np.array([1.0, 1.0]), math.inf, v)[1] is False
    assert minimise_on_ball(np.ones((2, 2)), np.array([1.0, 1.0]), 3.0, v)[1] is True
    np.testing.assert_allclose(v, [0.5, 0.5], rtol=1e-9)  # the minimiser of least norm
    assert minimise_on_ball(np.zeros((2, 2)), np.array([3.0, 4.0]), 10.0, v)[1] is True
    np.testing.assert_allclose(v, [6.0, 8.0])


def test_inverse() -> None:
    root = np.random.default_rng(1).normal(size=(6, 9))
    inverted, definite = inverse(root @ root.T, 0.5)
    assert definite
    np.testing.assert_allclose(inverted @ (root @ root.T + 0.5 * np.eye(6)), np.eye(6), atol=1e-12)
    assert not inverse(np.ones((3, 3)), 0.0)[1]
    assert not inverse(np.full((2, 2), np.nan), 0.0)[1]
