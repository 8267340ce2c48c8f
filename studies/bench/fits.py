"""Figures of fits: descent in one pass, exact minimisers, and scores of many items."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from protocol.features import lift, project
from server.estimators import ESTIMATORS
from server.estimators.base import Evidence, Options, wins
from server.estimators.features import PairFeatures
from server.estimators.row_sums import product_over_rows
from server.estimators.workspace import Workspace, logistic_minimum
from server.kernels_descent import descend
from server.kernels_elementary import logistic
from server.kernels_lanes import descend_lanes
from server.kernels_vector import WIDTH, everywhere, line_of, write_line
from studies.bench.figure import Prepared, Side, installed

Floats = NDArray[np.float64]
EPSILON = 2.0
LEVELS = (0.5, 1.0, 2.0, 4.0)


def _flip(epsilon: float) -> float:
    return float(1 / (1 + np.exp(epsilon)))


def _reports(z: Floats, flips: Floats, seed: int) -> NDArray[np.uint8]:
    """Randomised labels of rows with the indices z: (n, len(flips))."""
    rng = np.random.default_rng([seed, 1])
    labels = rng.random(len(z)) < 1 / (1 + np.exp(-z))
    return (labels[:, None] ^ (rng.random((len(z), len(flips))) < flips)).astype(np.uint8)


def one_pass(small: bool) -> Prepared:
    """Four levels by four repetitions in one pass over d = 10 features, beside one arm after the other."""
    rng, n, d, alpha, bound = np.random.default_rng(1), 2_000 if small else 10**6, 10, 0.15, 3.0
    rows, flips = rng.normal(size=(n, d)), np.repeat([_flip(level) for level in LEVELS], 4)
    symbols = _reports(rows @ rng.normal(size=d) * 0.3, flips, 1)
    doubled, lines = symbols * np.uint8(2), rng.normal(size=(512, WIDTH))
    columns, channels = np.ascontiguousarray(rows.T), np.stack([1 - 2 * flips, flips, alpha * (1 - 2 * flips)])

    def together() -> Floats:
        u = np.zeros((d, flips.size))
        descend_lanes(rows, doubled, channels, bound, 0.0, u)
        return u

    def alone() -> Floats:
        found = np.zeros((flips.size, d))
        for lane, flip in enumerate(flips):
            descend(columns, symbols[:, lane].astype(float), 1 - 2 * flip, flip, alpha, bound, 0.0, found[lane])
        return found.T

    peers = [Side("an arm after the other", alone)]
    if installed("sklearn"):
        peers.append(Side("scikit-learn partial_fit", partial(_partial_fit, rows, symbols)))
    ours = Side("arms side by side", together)
    return Prepared(
        ours,
        tuple(peers),
        float(symbols.size),
        "M updates/s",
        lambda: np.testing.assert_array_equal(together(), alone()),
        Side("their logistic functions alone", lambda: _logistics(lines, n)),
    )


@numba.njit(error_model="numpy")
def _logistics(lines: Floats, count: int) -> None:
    """As many logistic functions as `count` rows of arms side by side take; lines (512, WIDTH): the last is written."""
    total = everywhere(0.0)
    for i in range(count):
        total = total + logistic(line_of(lines, i % 511))
    write_line(lines, 511, total)


def _partial_fit(rows: Floats, symbols: NDArray[np.uint8]) -> object:
    from sklearn.linear_model import SGDClassifier

    for lane in range(symbols.shape[1]):
        model = SGDClassifier(loss="log_loss", penalty=None, shuffle=False, fit_intercept=False)
        model.partial_fit(rows, symbols[:, lane], classes=[0, 1])
    return model


def exact(name: str, small: bool) -> Prepared:
    """An exact fit of randomised labels with its interval, beside scikit-learn's of clear ones."""
    rng, n, d = np.random.default_rng(2), 5_000 if small else 10**6, 10
    rows, flip = rng.normal(size=(n, d)), _flip(EPSILON)
    symbols = _reports(rows @ rng.normal(size=d) * 0.3, np.array([flip]), 2)[:, 0]

    def fit(estimator: str, contrast: float, flip: float) -> Floats:
        evidence = Evidence(rows, None, symbols, product_over_rows(rows, wins(symbols) - 0.5), contrast, flip, 0.0)
        return ESTIMATORS[estimator](Workspace(evidence), Options(np.inf)).u

    def agree() -> None:
        found = fit("mle", 1.0, 0.0)
        s = 1 / (1 + np.exp(-rows @ found))
        np.testing.assert_allclose((s - symbols) @ rows / n, 0.0, rtol=0, atol=1e-12)

    peers: tuple[Side, ...] = ()
    if installed("sklearn"):
        peers = (Side("scikit-learn lbfgs, clear labels", partial(_lbfgs, rows, symbols)),)
    return Prepared(Side(name, lambda: fit(name, 1 - 2 * flip, flip)), peers, 1.0, "s", agree)


def _lbfgs(rows: Floats, symbols: NDArray[np.uint8]) -> object:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8).fit(rows, symbols)


debiased: Callable[[bool], Prepared] = partial(exact, "debiased")
rr_mle: Callable[[bool], Prepared] = partial(exact, "rr-mle")
rr_map: Callable[[bool], Prepared] = partial(exact, "rr-map")


def _comparisons(items: int, n: int, flip: float) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Random pairs, the de-biased mean (items,) of reports about them, and the reports, 1/2 where the second won."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, items, n)
    second = (first + rng.integers(1, items, n)) % items
    theta = rng.normal(size=items)
    halves = _reports(theta[second] - theta[first], np.array([flip]), 3)[:, 0].astype(np.float64) - 0.5
    sums = np.asarray(np.bincount(second, halves, items) - np.bincount(first, halves, items), dtype=np.float64)
    return np.stack([first, second], axis=1).astype(np.int32), sums / (n * (1 - 2 * flip)), halves


def tabular(flip: float, small: bool) -> Prepared:
    """Scores of 1,000 items from 100,000 comparisons, beside a vectorised L-BFGS; sums of reports are there."""
    items, n = (320, 20_000) if small else (1_000, 100_000)
    pairs, mean, halves = _comparisons(items, n, flip)

    def ours() -> Floats:
        return lift(logistic_minimum(PairFeatures(pairs, items, np.empty(0)), project(mean[None])[0], np.inf, 0.0).u)

    def agree() -> None:
        np.testing.assert_allclose(_l_bfgs(pairs, mean), ours(), rtol=0, atol=1e-6)  # it ends some 2e-7 away
        theta = ours()
        gradient = _gradient(pairs, mean, theta[pairs[:, 1]] - theta[pairs[:, 0]])
        np.testing.assert_allclose(gradient * items, 0.0, rtol=0, atol=1e-10)  # some 1e-9 of a score

    peers = [Side("L-BFGS of numpy and scipy", lambda: _l_bfgs(pairs, mean))]
    if flip == 0.0 and installed("choix"):
        won = [(int(a), int(b)) for a, b in np.where(halves[:, None] > 0, pairs[:, ::-1], pairs)]
        peers.append(Side("choix ilsr", partial(_ilsr, items, won)))
    return Prepared(Side("conjugate gradients", ours), tuple(peers), 1.0, "s", agree)


def _ilsr(items: int, won: list[tuple[int, int]]) -> object:
    import choix

    return choix.ilsr_pairwise(items, won)


def _gradient(pairs: NDArray[np.int32], mean: Floats, z: Floats) -> Floats:
    """Of the mean loss, by item, at the rows' differences z of scores."""
    slope = np.tanh(z / 2) / (2 * len(z))
    gradient: Floats = np.bincount(pairs[:, 1], slope, mean.size) - np.bincount(pairs[:, 0], slope, mean.size) - mean
    return gradient


def _l_bfgs(pairs: NDArray[np.int32], mean: Floats) -> Floats:
    first, second, items = pairs[:, 0], pairs[:, 1], mean.size

    def loss(theta: Floats) -> tuple[float, Floats]:
        z = theta[second] - theta[first]
        value = float(np.logaddexp(z / 2, -z / 2).mean() - mean @ theta)
        return value * items, _gradient(pairs, mean, z) * items

    options: Any = {"maxiter": 2_000, "maxcor": 20, "ftol": 1e-16, "gtol": 1e-9}
    found = minimize(loss, np.zeros(items), jac=True, method="L-BFGS-B", options=options).x
    centred: Floats = found - found.mean()
    return centred


clear_items: Callable[[bool], Prepared] = partial(tabular, 0.0)
reported_items: Callable[[bool], Prepared] = partial(tabular, _flip(4.0))


def many_items(small: bool) -> Prepared:
    """Scores of 10^5 items from 10^7 comparisons."""
    items, n = (2_000, 100_000) if small else (10**5, 10**7)
    pairs, mean, _ = _comparisons(items, n, 0.0)
    reduced = project(mean[None])[0]

    def ours() -> Floats:
        return logistic_minimum(PairFeatures(pairs, items, np.empty(0)), reduced, np.inf, 0.0).u

    def agree() -> None:
        theta = lift(ours())
        gradient = _gradient(pairs, mean, theta[pairs[:, 1]] - theta[pairs[:, 0]])
        np.testing.assert_allclose(gradient * items, 0.0, rtol=0, atol=1e-8)

    return Prepared(Side("conjugate gradients", ours), (), 1.0, "s", agree)
