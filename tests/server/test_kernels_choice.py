"""Compiled passes over choices against slow ones, and their derivatives against differences of values."""

import numpy as np
import pytest
from numpy.typing import NDArray

from server.kernels_choice import choice_cumulant, choice_spread, descend_choices, mean_feature
from server.kernels_choice_reports import (
    ACTUAL,
    EXPECTED,
    OBSERVED,
    ONE_CHOICE,
    SETS,
    TWO_SIDES,
    choice_likelihood,
)

Array = NDArray[np.float64]
LAW = np.array([[0.0, 0.0], [0.0, 0.0], [0.2, 0.6], [0.15, 0.55], [0.1, 0.6], [0.12, 0.4]])


class Case:
    """300 rows of 2 to 5 choices in 3 coordinates."""

    def __init__(self, seed: int, weighted: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.blocks = rng.normal(size=(300, 5, 3))
        self.sizes = rng.integers(2, 6, size=300).astype(np.int32)
        self.blocks[np.arange(5) >= self.sizes[:, None]] = 0.0
        self.scales = 1.0 / rng.uniform(0.3, 1.0, size=300) if weighted else np.empty(0)
        self.marks = rng.integers(0, 3, size=(300, 5)).astype(np.uint8)
        self.u = rng.normal(size=3)

    def rows(self, u: Array) -> list[tuple[Array, Array, float]]:
        """(v, p, 1 / w) of each row."""
        scales = self.scales if self.scales.size else np.ones(300)
        found = []
        for v, size, scale in zip(self.blocks, self.sizes, scales, strict=True):
            z = v[:size] @ u * scale
            found.append((v[:size], np.exp(z) / np.exp(z).sum(), float(scale)))
        return found


def differences(value_of: object, u: Array, step: float = 1e-5) -> Array:
    """Central differences of a vector-valued or real function."""
    steps = step * np.eye(len(u))
    return np.array([(value_of(u + h) - value_of(u - h)) / (2 * step) for h in steps])  # type: ignore[operator]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_cumulant(weighted: bool) -> None:
    case = Case(1, weighted)
    value, gradient, hessian = choice_cumulant(case.blocks, case.sizes, case.scales, case.u)
    rows = case.rows(case.u)
    assert value == pytest.approx(np.mean([np.log(np.exp(v @ case.u * s).sum()) / s for v, _, s in rows]), rel=1e-13)
    assert np.allclose(gradient, np.mean([p @ v for v, p, _ in rows], axis=0), rtol=1e-13)
    spread = [s * (v.T * p @ v - np.outer(p @ v, p @ v)) for v, p, s in rows]
    assert np.allclose(hessian, np.mean(spread, axis=0), rtol=1e-12)
    assert (hessian == hessian.T).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_spread(weighted: bool) -> None:
    case = Case(2, weighted)
    table = np.random.default_rng(0).uniform(size=(6, 3))
    expected = np.zeros((3, 3))
    for (v, p, _), size in zip(case.rows(case.u), case.sizes, strict=True):
        a, b, c = table[size]
        x = v - p @ v
        expected += (x.T * (a + b * p)) @ x + c * np.outer(x.sum(axis=0), x.sum(axis=0))
    found = choice_spread(case.blocks, case.sizes, case.scales, table, case.u)
    assert np.allclose(found, expected / 300, rtol=1e-12)


@pytest.mark.parametrize("reports", [ONE_CHOICE, TWO_SIDES, SETS])
def test_the_likelihood(reports: int) -> None:
    case = Case(3)

    def value(u: Array) -> float:
        law = [LAW[size] for size in case.sizes]
        chances = [
            base + slope * (0.5 * marks[: len(p)] @ p)
            for (_, p, _), (base, slope), marks in zip(case.rows(u), law, case.marks, strict=True)
        ]
        return -float(np.log(chances).mean())

    def gradient(u: Array) -> Array:
        return choice_likelihood(case.blocks, case.sizes, case.marks, LAW, reports, OBSERVED, u)[1]

    found = choice_likelihood(case.blocks, case.sizes, case.marks, LAW, reports, OBSERVED, case.u)
    assert found[0] == pytest.approx(value(case.u), rel=1e-13)
    assert np.allclose(found[1], differences(value, case.u), atol=1e-9)
    assert np.allclose(found[2], differences(gradient, case.u), atol=1e-8)


def test_expected_information_is_the_mean_square_of_scores() -> None:
    """Of one row at a time: the actual information of each report, weighed by its probability."""
    case = Case(4)
    law = np.array([[0, 0], [0, 0], *[[(1 - 0.4) / size, 0.4] for size in range(2, 6)]], dtype=float)
    for row in range(20):
        _, p, _ = case.rows(case.u)[row]
        size, blocks, sizes = len(p), case.blocks[row : row + 1], case.sizes[row : row + 1]

        def of(
            marks: NDArray[np.uint8],
            law: Array,
            wanted: int,
            reports: int = ONE_CHOICE,
            blocks: Array = blocks,
            sizes: NDArray[np.int32] = sizes,
        ) -> tuple[float, Array, Array]:
            return choice_likelihood(blocks, sizes, marks, law, reports, wanted, case.u)

        total = np.zeros((3, 3))
        for report in range(size):
            marks = np.zeros((1, 5), dtype=np.uint8)
            marks[0, report] = 2
            chance = law[size, 0] + law[size, 1] * p[report]
            total += chance * of(marks, law, ACTUAL)[2]
        assert np.allclose(of(marks, law, EXPECTED)[2], total, rtol=1e-12)
        sides = np.ones((1, 5), dtype=np.uint8)
        sides[0, 0], sides[0, 1] = 2, 0
        both = [0.3 + 0.4 * (0.5 * side[0, :size] @ p) for side in (sides, 2 - sides)]
        assert sum(both) == pytest.approx(1.0, rel=1e-15)
        pair = np.tile([0.3, 0.4], (6, 1))
        expected = sum(q * of(side, pair, ACTUAL)[2] for q, side in zip(both, (sides, 2 - sides), strict=True))
        assert np.allclose(of(sides, pair, EXPECTED, TWO_SIDES)[2], expected, rtol=1e-12)


def test_mean_feature_and_descent() -> None:
    case = Case(5)
    shares = np.random.default_rng(6).normal(size=(300, 5))
    present = np.arange(5) < case.sizes[:, None]
    expected = np.einsum("nk,nkp->p", shares * present, case.blocks) / 300
    assert np.allclose(mean_feature(case.blocks, case.sizes, shares), expected, rtol=1e-12)
    u = np.zeros(3)
    for t in range(300):
        v, size = case.blocks[t], case.sizes[t]
        z = v[:size] @ u
        p = np.exp(z) / np.exp(z).sum()
        u = u - (p - shares[t, :size]) @ v[:size] / (0.3 * (t + 1))
        u *= min(1.0, 2.0 / np.linalg.norm(u))
    assert np.allclose(descend_choices(case.blocks, case.sizes, shares, 0.3, 2.0), u, rtol=1e-9)


def test_extreme_scores_do_not_overflow() -> None:
    case = Case(7)
    value, gradient, hessian = choice_cumulant(case.blocks, case.sizes, case.scales, 1e4 * case.u)
    assert np.isfinite(value) and np.isfinite(gradient).all() and np.isfinite(hessian).all()
