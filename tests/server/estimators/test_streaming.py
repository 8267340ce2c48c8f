"""Streams of blocks: the bits of estimates in memory, memory that does not grow, and what they refuse."""

import math
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Evidence, Options
from server.estimators.streaming import STREAMING, Block, Source, Stream, estimate

Draw = Callable[..., Any]
BOUND = Options(3.0)


def cut(evidence: Evidence, size: int) -> Source:
    """Blocks of `size` rows."""

    def blocks() -> Iterator[Block]:
        for start in range(0, len(evidence.rows), size):
            yield Block(evidence.rows[start : start + size], evidence.symbols[start : start + size])

    return blocks


def drawn_blocks(n: int, contrast: float, size: int = 1 << 15) -> Source:
    """n rows that are drawn again in every pass, with reports of u = (1, 0.5, -0.5, -1)."""

    def blocks() -> Iterator[Block]:
        for start in range(0, n, size):
            rng = np.random.default_rng([9, start])
            rows = np.round(rng.normal(size=(min(size, n - start), 4)) * 2.0**20) / 2.0**20
            chance = 0.5 + contrast * (1 / (1 + np.exp(-rows @ np.array([1.0, 0.5, -0.5, -1.0]))) - 0.5)
            yield Block(rows, (rng.random(len(rows)) < chance).astype(np.uint8))

    return blocks


@pytest.mark.parametrize(("n", "size"), [(300, 7), (9_000, 4096), (20_001, 777)])
@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_bits_are_those_in_memory_however_blocks_are_cut(drawn: Draw, n: int, size: int, epsilon: float | None) -> None:
    evidence = drawn([1, n], n, epsilon=epsilon).evidence
    here, there = Workspace(evidence), Stream(cut(evidence, size), evidence.contrast, evidence.flip)
    cases = [(name, BOUND) for name in STREAMING if epsilon is None or name not in ("mle", "sgd")]
    cases += [("debiased-sgd", Options(3.0, averaging="half")), ("rr-map", Options(3.0, tau="marginal"))]
    for name, options in cases:
        one, other = ESTIMATORS[name](here, options), STREAMING[name](there, options)
        np.testing.assert_array_equal(one.u, other.u)
        np.testing.assert_array_equal(one.covariance, other.covariance)  # type: ignore[arg-type]
        assert (one.warnings, one.hit_boundary, one.iterations) == (
            other.warnings,
            other.hit_boundary,
            other.iterations,
        )


def test_rows_off_a_grid_give_the_same_to_rounding(drawn: Draw) -> None:
    rng = np.random.default_rng(2)
    rows, symbols = rng.normal(size=(9_000, 3)), rng.integers(0, 2, 9_000).astype(np.uint8)
    evidence = Evidence(rows, None, symbols, (symbols - 0.5) @ rows, 0.5, 0.25, 0.0)
    for name in ("debiased", "one-step", "rr-mle", "debiased-sgd"):
        found = estimate(name, cut(evidence, 500), 0.5, 0.25, BOUND)
        np.testing.assert_allclose(found.u, ESTIMATORS[name](Workspace(evidence), BOUND).u, rtol=1e-10)


def test_clear_ties_count_for_both_sides(drawn: Draw) -> None:
    evidence = drawn(3, 400).evidence
    symbols = np.where(np.arange(400) % 5 == 0, 2, evidence.symbols).astype(np.uint8)
    y = np.where(symbols == 2, 0.5, symbols)
    tied = Evidence(evidence.rows, None, symbols, (y - 0.5) @ evidence.rows, 1.0, 0.0, 0.0)
    np.testing.assert_array_equal(
        estimate("mle", cut(tied, 33), 1.0, 0.0, BOUND).u, ESTIMATORS["mle"](Workspace(tied), BOUND).u
    )
    with pytest.raises(ValueError, match="expected reports without ties"):
        estimate("rr-mle", cut(tied, 33), 1.0, 0.0, BOUND)


def peak(n: int) -> int:
    """Most bytes held while four estimators see n rows."""
    contrast = math.tanh(0.5)
    tracemalloc.start()
    stream = Stream(drawn_blocks(n, contrast), contrast, (1 - contrast) / 2)
    for name in ("debiased", "one-step", "debiased-sgd"):
        found = STREAMING[name](stream, Options(5.0))
        assert np.linalg.norm(found.u - [1.0, 0.5, -0.5, -1.0]) < 1.0
    STREAMING["debiased-sgd"](stream, Options(5.0, averaging="all"))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("n", [300_000, pytest.param(5_000_000, marks=pytest.mark.slow)])
def test_memory_stays_flat(n: int) -> None:
    """Five million rows would be 160 MB, their reports 5 MB. A sample is an eighth of the rows, up to some 66,000."""
    peak(100_000)  # compiles
    few = peak(100_000)
    assert few < 8_000_000  # a block as it is drawn, and a sample of rows
    sampled = min(n // 8, 66_000) - 100_000 // 8
    assert peak(n) < few + 200_000 + sampled * 2 * 4 * 8  # as they are taken, and as they are kept


def test_what_streams_refuse(drawn: Draw) -> None:
    good = drawn(4, 200, epsilon=1.0).evidence
    law = (good.contrast, good.flip)
    rows, symbols = good.rows, good.symbols

    def refuse(message: str, *blocks: Block) -> None:
        with pytest.raises(ValueError, match=message):
            Stream(lambda: iter(blocks), *law)

    refuse("expected a source of at least one row, got none")
    refuse("expected a source of at least one row, got none", Block(rows[:0], symbols[:0]))
    refuse(r"expected blocks of float64 rows of shape \(m, 4\)", Block(rows, symbols), Block(rows[:, :3], symbols))
    refuse("expected blocks of float64 rows", Block(rows.astype(np.float32), symbols))
    refuse(r"expected uint8 symbols of shape \(200,\)", Block(rows, symbols[:9]))
    refuse("expected uint8 symbols", Block(rows, symbols.astype(np.int64)))
    refuse("expected symbols up to 1", Block(rows, symbols), Block(rows, np.full(200, 2, np.uint8)))
    refuse("expected finite rows", Block(rows * np.inf, symbols))
    with pytest.raises(ValueError, match="expected flip = 0 or"):
        Stream(cut(good, 50), 0.4, 0.9)
    with pytest.raises(ValueError, match="expected an estimator out of"):
        estimate("median", cut(good, 50), *law, BOUND)
    with pytest.raises(ValueError, match="expected reports in memory"):
        estimate("debiased", cut(good, 50), *law, Options(3.0, interval="bootstrap"))


def test_a_source_has_to_repeat_itself(drawn: Draw) -> None:
    good, passes = drawn(5, 200, epsilon=1.0).evidence, [0]

    def shrinking() -> Iterator[Block]:
        passes[0] += 1
        yield Block(good.rows[passes[0] :], good.symbols[passes[0] :])

    with pytest.raises(ValueError, match="expected 198 rows in every pass, got 197"):
        estimate("debiased", shrinking, good.contrast, good.flip, BOUND)
