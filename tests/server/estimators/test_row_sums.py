"""Sums over blocks of rows: what a plain numpy gets, and the same bits for any number of threads and of parts."""

from collections.abc import Iterator

import numpy as np
import pytest

from protocol.threads import LIMIT
from server.estimators.base import Evidence, Options
from server.estimators.features import Features
from server.estimators.minimiser import debiased
from server.estimators.randomized import rr_mle
from server.estimators.row_sums import BLOCK, blocks, product_over_rows
from server.estimators.streaming import Block, Stream
from server.estimators.workspace import Workspace
from server.kernels import TILE, Array

COUNT = 2 * BLOCK + 3 * TILE + 5
CONTRAST, FLIP = 0.5, 0.25
U = np.array([0.5, -0.25, 0.75])


@pytest.fixture(scope="module", name="rows")
def rows_of_three_blocks() -> Array:
    rows: Array = np.round(np.random.default_rng(81).normal(size=(COUNT, 3)) * 2.0**20) / 2.0**20
    return rows


@pytest.fixture(scope="module", name="symbols")
def symbols_of_them() -> np.ndarray:
    return np.random.default_rng(82).integers(0, 2, COUNT).astype(np.uint8)


def everything(rows: Array, scales: Array, symbols: np.ndarray) -> list[Array]:
    """All passes over the rows: numbers, gradients and moments."""
    features, signs = Features.of(rows, 1 / scales if scales.size else None), 2.0 * symbols - 1.0
    found = [*features.cumulant(U), *features.slope(U), features.moment(0.5 + symbols), features.reach]
    found += [*features.likelihood(signs, CONTRAST, FLIP, True, U), product_over_rows(rows, signs)]
    return [np.asarray(part) for part in found]


def test_blocks_are_all_rows_once() -> None:
    assert BLOCK % TILE == 0
    for count in (1, BLOCK - 1, BLOCK, BLOCK + 1, COUNT):
        assert np.concatenate([np.arange(count)[part] for part in blocks(count)]).tolist() == list(range(count))


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_have_the_bits_of_one_thread_and_the_values_of_numpy(
    rows: Array, symbols: np.ndarray, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales = 1.0 + np.arange(COUNT) % 3 if weighted else np.empty(0)
    monkeypatch.setenv(LIMIT, "1")
    alone = everything(rows, scales, symbols)
    monkeypatch.setattr("protocol.threads.cores", lambda: 3)
    monkeypatch.setenv(LIMIT, "3")
    for one, other in zip(alone, everything(rows, scales, symbols), strict=True):
        np.testing.assert_array_equal(one, other)

    weights = 1 / scales if weighted else np.ones(COUNT)
    z, signs = rows @ U / weights, 2.0 * symbols - 1.0
    s, toward = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-signs * (rows @ U)))
    value = np.mean(weights * np.log(2 * np.cosh(z / 2)))
    gradient = (s - 0.5) @ rows / COUNT
    q = FLIP + CONTRAST * toward
    rate = CONTRAST * toward * (1 - toward) / q
    bend = ((1 - FLIP) * toward**2 - FLIP * (1 - toward) ** 2) / q
    expected = [value, gradient, (rows.T * (s * (1 - s) / weights)) @ rows / COUNT, value, gradient]
    expected += [(rows.T * (0.5 + symbols)) @ rows / COUNT, np.abs(rows / weights[:, None]).max(axis=0)]
    expected += [-np.log(q).mean(), -(signs * rate) @ rows / COUNT, (rows.T * (rate * bend)) @ rows / COUNT]
    for found, wanted in zip(alone, [*expected, signs @ rows], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-15)


def test_a_stream_has_the_bits_of_memory_over_several_blocks(rows: Array, symbols: np.ndarray) -> None:
    def cut() -> Iterator[Block]:
        for start in range(0, COUNT, 50_000):
            yield Block(rows[start : start + 50_000], symbols[start : start + 50_000])

    evidence = Evidence(rows, None, symbols, product_over_rows(rows, symbols - 0.5), CONTRAST, FLIP, 0.0)
    here, there = Workspace(evidence), Stream(cut, CONTRAST, FLIP)
    for fit in (debiased, rr_mle):
        one, other = fit(here, Options(3.0)), fit(there, Options(3.0))
        assert one.covariance is not None and other.covariance is not None
        np.testing.assert_array_equal(one.u, other.u)
        np.testing.assert_array_equal(one.covariance, other.covariance)
