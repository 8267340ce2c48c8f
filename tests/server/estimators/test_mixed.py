"""Reports of several channels: against formulas written out, one channel, and the recursion of descent."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from protocol.coins import Address, Stream
from protocol.features import project
from server.estimators import ESTIMATORS
from server.estimators.base import Evidence, Options
from server.estimators.features import Features, PairFeatures
from server.estimators.mixed import Mixed, MixedEvidence
from server.estimators.workspace import Reports, Workspace

Floats = NDArray[np.float64]
LEVELS = (0.5, 1.5, 4.0)
CHANNELS = [(math.tanh(level / 2), 0.5 * (1.0 - math.tanh(level / 2))) for level in LEVELS]
TRUTH = np.array([0.8, -0.5, 0.3])
SHARED = ("debiased", "one-step", "rr-mle", "rr-map", "naive", "debiased-sgd")


def drawn(seed: int, n: int, channels: list[tuple[float, float]] = CHANNELS) -> MixedEvidence:
    """Reports of n rows on a grid of 2^-30, whose channels are drawn."""
    random = np.random.default_rng(seed)
    rows = np.round(random.normal(size=(n, 3)) * 2**30) / 2**30
    which = random.integers(0, len(channels), n).astype(np.uint8)
    contrast, flip = np.array(channels)[which].T
    symbols = (random.random(n) < flip + contrast * expit(rows @ TRUTH)).astype(np.uint8)
    return MixedEvidence(rows, symbols, which, channels, Features.of(rows, None), Address(1, Stream.BOOTSTRAP))


def contrasts(evidence: MixedEvidence) -> Floats:
    return np.array([evidence.channels[way][0] for way in evidence.which])


def alone(evidence: MixedEvidence) -> Workspace:
    """What holds them where all have the first channel."""
    contrast, flip = evidence.channels[0]
    half_sum = (evidence.symbols - 0.5) @ evidence.rows
    coins = evidence.coins
    held = Evidence(evidence.rows, None, evidence.symbols, half_sum, contrast, flip, 0.0, evidence.features, coins)
    return Workspace(held)


def test_the_sum_and_the_loss_are_those_of_weighted_reports() -> None:
    evidence = drawn(1, 500)
    known, c = Mixed(evidence), contrasts(evidence)
    square = (c**2).mean()
    assert known.contrast == pytest.approx(math.sqrt(square), rel=1e-14)
    mean = ((c * (evidence.symbols - 0.5))[:, None] * evidence.rows).mean(axis=0) / square
    np.testing.assert_allclose(known.mean(known.contrast), mean, rtol=1e-12)
    u, weights = np.array([0.2, -0.4, 1.0]), c**2 / square
    s = expit(evidence.rows @ u)
    value, gradient, hessian = known.features.cumulant(u)
    assert value == pytest.approx((weights * np.log(2 * np.cosh(evidence.rows @ u / 2))).mean(), rel=1e-12)
    np.testing.assert_allclose(gradient, ((weights * (s - 0.5))[:, None] * evidence.rows).mean(axis=0), rtol=1e-10)
    curved = (weights * s * (1 - s))[:, None] * evidence.rows
    np.testing.assert_allclose(hessian, curved.T @ evidence.rows / 500, rtol=1e-10)
    kappa = (1 - c**2) / (4 * c**2)
    spread = (weights**2 * (s * (1 - s) + kappa))[:, None] * evidence.rows
    np.testing.assert_allclose(
        known.features.score_variance(u, hessian, 0.0), spread.T @ evidence.rows / 500, rtol=1e-10
    )


@pytest.mark.parametrize("observed", [True, False])
def test_the_likelihood_is_that_of_each_report_through_its_channel(observed: bool) -> None:
    evidence = drawn(2, 400)
    known, c = Mixed(evidence), contrasts(evidence)
    b, u = 0.5 * (1 - c), np.array([0.5, -0.2, 0.1])

    def loss(at: Floats) -> float:
        q = b + c * expit(evidence.rows @ at)
        return float(-np.log(np.where(evidence.symbols == 1, q, 1 - q)).mean())

    value, gradient, information = known.likelihood(observed, u)
    assert value == pytest.approx(loss(u), rel=1e-12)
    step = 1e-5
    for j, direction in enumerate(np.eye(3)):
        slope = (loss(u + step * direction) - loss(u - step * direction)) / (2 * step)
        assert gradient[j] == pytest.approx(slope, abs=1e-8)
    if not observed:
        s = expit(evidence.rows @ u)
        weights = (s * (1 - s)) ** 2 / (s * (1 - s) + (1 - c**2) / (4 * c**2))
        expected = (weights[:, None] * evidence.rows).T @ evidence.rows / 400
        np.testing.assert_allclose(information, expected, rtol=1e-9)


def options(name: str) -> list[Options]:
    plain = [Options(bound=3.0), Options(bound=math.inf)]
    if name == "debiased-sgd":
        return [*plain, *(Options(3.0, averaging=way) for way in ("half", "all")), Options(3.0, step=0.2)]
    if name in ("debiased", "naive"):
        return [*plain, Options(3.0, ridge=0.1), Options(3.0, ridge="tempered", tau="bound")]
    return [*plain, Options(3.0, tau="marginal")] if name == "rr-map" else plain


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("split", [1, 3])
def test_one_channel_under_several_names_is_one_channel(name: str, split: int) -> None:
    """Estimates and covariances as of `Workspace`, to the precision of sums in another order."""
    evidence = drawn(3, 3000, [CHANNELS[1]] * split)
    for option in options(name):
        found = ESTIMATORS[name](Mixed(evidence), option)
        usual = ESTIMATORS[name](alone(evidence), option)
        np.testing.assert_allclose(found.u, usual.u, rtol=1e-7, atol=1e-9)
        assert (found.covariance is None) == (usual.covariance is None)
        if found.covariance is not None and usual.covariance is not None:
            np.testing.assert_allclose(found.covariance, usual.covariance, rtol=1e-7, atol=1e-12)
        assert [text.split(":")[0] for text in found.warnings] == [text.split(":")[0] for text in usual.warnings]


def test_items_are_passed_over_by_item() -> None:
    random = np.random.default_rng(4)
    pairs = np.sort(np.array([random.choice(6, 2, replace=False) for _ in range(600)]), axis=1).astype(np.int32)
    one_hot = np.zeros((600, 6))
    one_hot[np.arange(600), pairs[:, 1]] = 1.0
    one_hot[np.arange(600), pairs[:, 0]] = -1.0
    rows = project(one_hot)
    which = random.integers(0, 3, 600).astype(np.uint8)
    symbols = random.integers(0, 2, 600).astype(np.uint8)
    quick = MixedEvidence(rows, symbols, which, CHANNELS, PairFeatures(pairs, 6, np.empty(0)))
    dense = MixedEvidence(rows, symbols, which, CHANNELS, Features.of(rows, None))
    for name in SHARED:
        option = Options(bound=2.0)
        left, right = ESTIMATORS[name](Mixed(quick), option), ESTIMATORS[name](Mixed(dense), option)
        np.testing.assert_allclose(left.u, right.u, rtol=1e-7, atol=1e-9)


def test_naive_takes_all_reports_alike() -> None:
    evidence = drawn(5, 2000)
    clear = Evidence(evidence.rows, None, evidence.symbols, (evidence.symbols - 0.5) @ evidence.rows, 1.0, 0.0, 0.0)
    found = ESTIMATORS["naive"](Mixed(evidence), Options(3.0))
    assert found.u.tobytes() == ESTIMATORS["mle"](Workspace(clear), Options(3.0)).u.tobytes()


@pytest.mark.parametrize("averaging", ["last", "half", "all"])
def test_descent_is_the_recursion_of_weighted_gradients(averaging: str) -> None:
    """Rates c_t^2 / (alpha sum c^2) of de-biased residuals, or scale w T^(-3/5) with w = c_t^2 / max c^2, T = sum w."""
    evidence = drawn(6, 301)
    c, n, bound, alpha = contrasts(evidence), 301, 3.0, 0.15
    debiased = 0.5 + (evidence.symbols - 0.5) / c
    w = (c / c.max()) ** 2
    largest = float(np.linalg.eigvalsh(evidence.rows.T @ evidence.rows / n)[-1])
    u, total, skip = np.zeros(3), np.zeros(3), n // 2 if averaging == "half" else 0
    for t, (v, y) in enumerate(zip(evidence.rows, debiased, strict=True)):
        passed = w[: t + 1].sum()
        rate = w[t] / (alpha * passed) if averaging == "last" else 4.0 / largest * w[t] / passed**0.6
        u = u - rate * (expit(u @ v) - y) * v
        u = u * min(1.0, bound / float(np.linalg.norm(u)))
        total += u if t >= skip else 0.0
    expected = u if averaging == "last" else total / (n - skip)
    found = ESTIMATORS["debiased-sgd"](Mixed(evidence), Options(bound, step=alpha, averaging=averaging))
    np.testing.assert_allclose(found.u, expected, rtol=1e-9, atol=1e-12)


def test_the_mean_of_the_statistic_over_all_reports_is_the_weighted_clear_one() -> None:
    """Exactly unbiased, by enumeration: E[c (y~ - 1/2)] = c^2 (y - 1/2) for every row and label."""
    rows = np.round(np.random.default_rng(7).normal(size=(4, 3)) * 2**20) / 2**20
    which, labels = np.array([0, 1, 2, 0], dtype=np.uint8), np.array([1, 0, 1, 1])
    c = np.array([CHANNELS[way][0] for way in which])
    total = np.zeros(3)
    for reported in product((0, 1), repeat=4):
        symbols = np.array(reported, dtype=np.uint8)
        chance = np.prod(np.where(symbols == labels, 0.5 * (1 + c), 0.5 * (1 - c)))
        known = Mixed(MixedEvidence(rows, symbols, which, CHANNELS, Features.of(rows, None)))
        total += chance * known.mean(known.contrast)
    expected = ((c**2 * (labels - 0.5))[:, None] * rows).mean(axis=0) / (c**2).mean()
    np.testing.assert_allclose(total, expected, rtol=1e-12)


@pytest.mark.parametrize(("strength", "least"), [(0.0, 0.9999), (0.5, 0.99), (1.0, 0.96), (3.0, 0.7)])
def test_no_other_weights_by_channel_are_much_better(strength: float, least: float) -> None:
    """Where both labels are equally likely c^2 is best; the surer the labels, the more is lost, up to a third here."""
    rows = np.random.default_rng(8).normal(size=(20_000, 3))
    s = expit(strength * rows @ TRUTH)
    variance, share = s * (1 - s), np.full(3, 1 / 3)
    c = np.array([channel[0] for channel in CHANNELS])
    kappa = (1 - c**2) / (4 * c**2)
    hessian = (variance[:, None] * rows).T @ rows / len(rows)
    spreads = [((variance + noise)[:, None] * rows).T @ rows / len(rows) for noise in kappa]
    inverse = np.linalg.inv(hessian)

    def error(weights: Floats) -> float:
        weights = weights / (share * weights).sum()
        middle = sum(p * w**2 * spread for p, w, spread in zip(share, weights, spreads, strict=True))
        return float(np.trace(inverse @ middle @ inverse))

    own = error(c**2)
    others = [error(np.array([1.0, a, b])) for a in np.geomspace(0.2, 200, 40) for b in np.geomspace(0.2, 200, 40)]
    assert min(others) > own * least
    assert own < 0.8 * error(np.ones(3))  # all alike
    assert strength > 1.0 or own < min(error(alone) for alone in np.eye(3))  # one level only


def test_equal_weights_take_the_mean_of_de_biased_reports() -> None:
    evidence = drawn(11, 500)
    known, c = Mixed(evidence).alike(), contrasts(evidence)
    debiased = (evidence.symbols - 0.5) / c
    np.testing.assert_allclose(known.mean(known.contrast), (debiased[:, None] * evidence.rows).mean(axis=0), rtol=1e-12)
    assert known.contrast == pytest.approx(float((1 / c**2).mean() ** -0.5), rel=1e-14)
    u = np.array([0.3, 0.1, -0.2])
    clear = Features.of(evidence.rows, None).cumulant(u)
    for own, usual in zip(known.features.cumulant(u), clear, strict=True):
        np.testing.assert_allclose(own, usual, rtol=1e-12)
    option = Options(3.0, weights="equal", interval="bootstrap")
    assert (
        ESTIMATORS["debiased"](Mixed(evidence), option).u.tobytes()
        == known.minimum(known.contrast, 3.0, 0.0).u.tobytes()
    )


def test_a_bootstrap_resamples_each_row_through_its_channel() -> None:
    evidence = drawn(9, 4000)
    known, u = Mixed(evidence), np.array([0.4, 0.1, -0.3])
    c = contrasts(evidence)
    np.testing.assert_allclose(known.chances(u), 0.5 * (1 - c) + c * expit(evidence.rows @ u), rtol=1e-12)
    boot = ESTIMATORS["debiased"](known, Options(3.0, interval="bootstrap"))
    wald = ESTIMATORS["debiased"](known, Options(3.0))
    assert boot.replicas is not None and wald.covariance is not None
    ratio = boot.replicas.std(axis=0) / np.sqrt(wald.covariance.diagonal())
    assert (np.abs(ratio - 1) < 6 / math.sqrt(2 * 399)).all()  # 6 sigma: 2e-9 a coordinate


def test_an_unknown_channel_is_refused() -> None:
    evidence = drawn(10, 20)
    with pytest.raises(ValueError, match="expected one of 2 channels"):
        MixedEvidence(evidence.rows, evidence.symbols, evidence.which, CHANNELS[:2], evidence.features)
    with pytest.raises(ValueError, match="of one channel"):
        ESTIMATORS["debiased-trimmed-mean"](Mixed(evidence), Options(3.0))


def errors(make: Callable[[int], Reports], name: str, repetitions: int) -> tuple[Floats, Floats]:
    """Errors by coordinate, and their standard errors as claimed."""
    found, claimed = [], []
    for seed in range(repetitions):
        option = Options(8.0, weights="equal") if name == "equal" else Options(8.0)
        estimate = ESTIMATORS["debiased" if name == "equal" else name](make(seed), option)
        assert estimate.covariance is not None
        found.append(estimate.u - TRUTH)
        claimed.append(np.sqrt(estimate.covariance.diagonal()))
    return np.array(found), np.array(claimed)


@pytest.mark.parametrize("name", ["debiased", "equal", "one-step", "rr-mle"])
def test_intervals_cover_and_estimates_have_no_bias(name: str) -> None:
    """300 x 3 intervals at n = 4000: the share covered within 6 sigma of 95 %, and means within 6 of their errors.

    Coordinates of one repetition are dependent: sigma is taken for 300 independent ones. False alarms: below 1e-8.
    """
    found, claimed = errors(lambda seed: Mixed(drawn(1000 + seed, 4000)), name, 300)
    covered = (np.abs(found) < 1.96 * claimed).mean()
    assert abs(covered - 0.95) < 6 * math.sqrt(0.95 * 0.05 / 300)
    own = found.std(axis=0) / math.sqrt(300)
    assert (np.abs(found.mean(axis=0)) < 6 * own + 0.02).all()  # a second-order bias of order 1 / n is allowed
