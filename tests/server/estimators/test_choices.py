"""Estimators of top choices: two choices are pairs, minimisers are minimisers, and what each refuses."""

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from protocol.channel import TOTAL
from protocol.choice_law import CHOICE_LOCAL, ONE, PAIR, SUBSET, ChoiceLaw
from server.choice_view import clear_view, view
from server.estimators import choice_minimiser, choice_randomized, minimiser, randomized
from server.estimators.base import Estimate, Evidence, Options
from server.estimators.choice_base import ChoiceEvidence, ChoiceFeatures, ChoiceWorkspace
from server.estimators.newton import EstimationError
from server.estimators.sgd import debiased_sgd, sgd
from server.estimators.workspace import Workspace

TRUTH = np.array([1.0, -0.5, 0.25])
BALL = Options(3.0)


def law_of(name: str, epsilon: str, *sizes: int) -> ChoiceLaw:
    return ChoiceLaw(name, Decimal(epsilon), sizes, b"s" * 32 if name == PAIR else b"")


class Drawn:
    """Rows of 2 to `most` choices, labels, and reports through a law."""

    def __init__(self, seed: int, n: int, most: int, name: str | None = None, epsilon: str = "1") -> None:
        self.rng = np.random.default_rng(seed)
        self.sizes = self.rng.integers(2, most + 1, size=n).astype(np.int32)
        self.blocks = np.round(self.rng.normal(size=(n, most, 3)) * 2**20) / 2**20
        self.blocks -= self.blocks[:, :1]
        present = np.arange(most) < self.sizes[:, None]
        self.blocks[~present] = 0.0
        chance = np.where(present, np.exp(self.blocks @ TRUTH), 0.0)
        cumulative = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
        self.labels = (self.rng.random((n, 1)) > cumulative).sum(axis=1)
        self.features = ChoiceFeatures(self.blocks, self.sizes)
        self.law = None if name is None else law_of(name, epsilon, *range(2, most + 1))
        marks = np.array([self._report(y, int(size)) for y, size in zip(self.labels, self.sizes, strict=True)])
        own = clear_view() if self.law is None else view(self.law)
        self.known = ChoiceWorkspace(ChoiceEvidence(self.features, own, marks))

    def _report(self, label: int, size: int) -> NDArray[np.uint8]:
        marks = np.zeros(self.blocks.shape[1], dtype=np.uint8)
        if self.law is None:
            marks[label] = 2
        elif self.law.name == SUBSET:
            channel = self.law.subsets(size)
            inside = self.rng.random() < channel.hit / TOTAL
            others = self.rng.permutation(np.delete(np.arange(size), label))
            marks[others[: channel.subset - inside]] = 2
            marks[label] = 2 * inside
        elif self.law.name == ONE:
            marks[self.rng.choice(size, p=np.array(self.law.table(size).table[label]) / TOTAL)] = 2
        else:
            j, k = self.rng.permutation(size)[:2]
            keep = self.law.table(size).table[0][0] / TOTAL
            won = self.rng.random() < (keep if label == j else 1 - keep if label == k else 0.5)
            marks[:] = 1
            marks[[j, k]] = (2, 0) if won else (0, 2)
        return marks


def as_pairs(drawn: Drawn) -> Workspace:
    """The same rows of two choices as the binary estimators take them."""
    x, one = drawn.blocks[:, 1], drawn.known.marks[:, 1] // 2
    contrast, flip = 1.0, 0.0
    if drawn.law is not None:
        kept, other = drawn.law.table(2).table[0][:2]
        contrast, flip = (kept - other) / TOTAL, other / TOTAL
    return Workspace(Evidence(x, None, one, (one - 0.5) @ x, contrast, flip, 0.0))


Pair = tuple[Callable[..., Estimate], Callable[..., Estimate], Options]
LOCAL: dict[str, Pair] = {
    "debiased": (choice_minimiser.debiased, minimiser.debiased, BALL),
    "debiased, ridge": (choice_minimiser.debiased, minimiser.debiased, Options(3.0, ridge=0.02)),
    "naive": (choice_minimiser.naive, minimiser.naive, BALL),
    "rr-mle": (choice_randomized.rr_mle, randomized.rr_mle, BALL),
    "rr-map": (choice_randomized.rr_map, randomized.rr_map, Options(3.0, tau=0.7)),
    "debiased-sgd": (choice_minimiser.debiased_sgd, debiased_sgd, BALL),
    "debiased-sgd, step": (choice_minimiser.debiased_sgd, debiased_sgd, Options(3.0, step=0.1)),
}
CLEAR: dict[str, Pair] = {
    "mle": (choice_minimiser.mle, minimiser.mle, Options(math.inf)),
    "sgd": (choice_minimiser.sgd, sgd, BALL),
}


def assert_same(left: Estimate, right: Estimate) -> None:
    assert np.abs(left.u - right.u).max() < 1e-10
    assert left.hit_boundary == right.hit_boundary and left.warnings == right.warnings
    assert (left.covariance is None) == (right.covariance is None)
    if left.covariance is not None and right.covariance is not None:
        assert np.allclose(left.covariance, right.covariance, rtol=1e-8)


@pytest.mark.parametrize("which", LOCAL)
@pytest.mark.parametrize("name", [ONE, PAIR])
@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "2"])
def test_two_randomised_choices_are_a_pair(which: str, name: str, epsilon: str) -> None:
    drawn, (of_choices, of_pairs, options) = Drawn(1, 1500, 2, name, epsilon), LOCAL[which]
    assert_same(of_choices(drawn.known, options), of_pairs(as_pairs(drawn), options))


@pytest.mark.parametrize("which", CLEAR)
def test_two_clear_choices_are_a_pair(which: str) -> None:
    drawn, (of_choices, of_pairs, options) = Drawn(2, 1500, 2), CLEAR[which]
    assert_same(of_choices(drawn.known, options), of_pairs(as_pairs(drawn), options))


def loss(drawn: Drawn, u: NDArray[np.float64], likelihood: bool) -> float:
    """Row by row: the de-biased loss, or minus the mean log probability of reports."""
    own, total = drawn.known.evidence.view, 0.0
    for v, size, marks in zip(drawn.blocks, drawn.sizes.tolist(), drawn.known.marks, strict=True):
        z, g = v[:size] @ u, 0.5 * marks[:size]
        if likelihood:
            base, slope = own.law[size]
            total -= math.log(base + slope * (g @ np.exp(z)) / np.exp(z).sum())
        else:
            alpha, scale = own.shares[size]
            total += math.log(np.exp(z).sum()) - (alpha + scale * g) @ z
    return total / len(drawn.blocks)


@pytest.mark.parametrize("name", CHOICE_LOCAL)
@pytest.mark.parametrize("likelihood", [False, True])
def test_minimisers_are_those_of_another_method(name: str, likelihood: bool) -> None:
    drawn = Drawn(3, 400, 5, name, "2")
    estimate = choice_randomized.rr_mle if likelihood else choice_minimiser.debiased
    found = estimate(drawn.known, Options(math.inf, ridge=0.05)).u
    slow = minimize(
        lambda u: loss(drawn, u, likelihood) + 0.025 * u @ u, found + 0.05, method="BFGS", options={"gtol": 1e-7}
    )
    assert np.abs(found - slow.x).max() < 2e-5


@pytest.mark.parametrize("name", CHOICE_LOCAL)
def test_intervals_are_as_wide_as_errors(name: str) -> None:
    """40 fits: the mean of 3 standardised squared errors has a standard deviation of sqrt(2 / 120), 6 of them 0.77."""
    ratios = []
    for seed in range(40):
        drawn = Drawn(seed + 100, 800, 4, name, "3")
        for estimate in (choice_minimiser.debiased, choice_randomized.rr_mle):
            found = estimate(drawn.known, Options(math.inf))
            assert found.covariance is not None
            ratios.append((found.u - TRUTH) ** 2 / found.covariance.diagonal())
    assert abs(np.mean(ratios[::2]) - 1) < 0.8
    assert abs(np.mean(ratios[1::2]) - 1) < 0.8


def test_a_noisy_sum_is_known_by_its_noise() -> None:
    drawn = Drawn(4, 2000, 4)
    total = drawn.blocks[np.arange(2000), drawn.labels].sum(axis=0)
    clear = choice_minimiser.mle(drawn.known, BALL)
    central = ChoiceWorkspace(ChoiceEvidence(drawn.features, clear_view(), None, total, 20.0))
    found = choice_minimiser.mle(central, BALL)
    assert np.abs(found.u - clear.u).max() < 1e-12
    assert found.covariance is not None and clear.covariance is not None
    inverted = np.linalg.inv(central.curvature(found.u))
    assert np.allclose(found.covariance - clear.covariance, inverted @ inverted * (20 / 2000) ** 2, rtol=1e-9)
    with pytest.raises(ValueError, match="central sum"):
        choice_randomized.rr_mle(central, BALL)


def test_literal_is_biased_and_says_so() -> None:
    drawn = Drawn(5, 6000, 5, ONE, "2")
    found = choice_minimiser.literal(drawn.known, BALL)
    assert found.covariance is None and "biased" in found.warnings[0]
    right = choice_minimiser.debiased(drawn.known, BALL)
    assert np.linalg.norm(found.u - TRUTH) > 3 * np.linalg.norm(right.u - TRUTH)
    concave = choice_minimiser.literal(Drawn(5, 300, 5, ONE, "0.5").known, BALL)
    assert concave.hit_boundary and concave.warnings[1].startswith("not-convex: ")
    with pytest.raises(EstimationError, match="finite bound"):
        choice_minimiser.literal(Drawn(5, 300, 5, ONE, "0.5").known, Options(math.inf))
    with pytest.raises(ValueError, match="one choice"):
        choice_minimiser.literal(Drawn(5, 50, 5, SUBSET, "0.5").known, BALL)


def test_literal_of_two_choices_is_debiased() -> None:
    known = Drawn(6, 1500, 2, ONE, "1").known
    left, right = choice_minimiser.literal(known, BALL), choice_minimiser.debiased(known, BALL)
    assert np.abs(left.u - right.u).max() < 1e-8


def test_randomised_labels_are_no_clear_ones() -> None:
    known = Drawn(7, 50, 3, ONE).known
    for estimate in (choice_minimiser.mle, choice_minimiser.sgd):
        with pytest.raises(ValueError, match="debiased"):
            estimate(known, BALL)


def test_evidence_that_does_not_fit_is_refused() -> None:
    drawn = Drawn(8, 20, 3)
    marks = drawn.known.marks
    with pytest.raises(ValueError, match="either reports"):
        ChoiceEvidence(drawn.features, clear_view())
    with pytest.raises(ValueError, match="marks"):
        ChoiceEvidence(drawn.features, clear_view(), marks.astype(np.int64))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="marks"):
        ChoiceEvidence(drawn.features, clear_view(), marks + np.uint8(1))
    with pytest.raises(ValueError, match="noise_stddev"):
        ChoiceEvidence(drawn.features, clear_view(), marks, noise_stddev=math.nan)
    with pytest.raises(ValueError, match="sizes in"):
        ChoiceFeatures(drawn.blocks, drawn.sizes + np.int32(1))
    with pytest.raises(ValueError, match="finite blocks"):
        ChoiceFeatures(np.full_like(drawn.blocks, math.nan), drawn.sizes)
    scaled = ChoiceFeatures(drawn.blocks, drawn.sizes, np.full(20, 1.5))
    with pytest.raises(ValueError, match="clipping weights"):
        ChoiceEvidence(scaled, clear_view(), marks)
