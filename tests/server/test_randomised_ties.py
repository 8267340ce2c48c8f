"""Ties as a third value of randomised response: what the server makes of three symbols, exactly and by simulation."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from protocol.codec import encode_reply, encode_report, encode_task, identity
from protocol.coins import Address, Stream
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Coins, Kind, Mechanism, Payload, Report, Task, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.terms import law
from protocol.trust import Trust
from server.collect import Collected, Mail, collect
from server.estimators.base import Evidence, Options, wins
from server.estimators.features import Features
from server.estimators.minimiser import debiased, naive
from server.estimators.mixed import Mixed, MixedEvidence
from server.estimators.randomized import one_step, rr_map, rr_mle
from server.estimators.sgd import debiased_sgd
from server.estimators.side_by_side import side_by_side
from server.estimators.streaming import STREAMING, Block, estimate
from server.estimators.workspace import Workspace
from server.evidence import channel_of

ONE = Decimal(1)
RR = Mechanism.of("randomized-response", epsilon=ONE)
ITEMS = Problem(3, "items", True, None, np.array([[0, 1], [2, 1], [0, 2]], dtype=np.int32))
TASK = Task(bytes(32), Trust.LOCAL, Unit.LABEL, ITEMS, (RR,), 3, ONE, None, 0, 1, ties=Ties.RANDOMIZED)
ROWS = np.array([[0.5, -1.25], [1.0, 0.75], [-0.25, 2.0]])
LEVELS = st.decimals(Decimal("0.01"), Decimal(30), allow_nan=False, places=6)
U = np.array([0.4, -0.3])


def known(symbols: NDArray[np.uint8], epsilon: Decimal = ONE, rows: NDArray[np.float64] = ROWS) -> Workspace:
    contrast, flip, third = channel_of(k_randomized_response(epsilon, 3))
    half_sum, coins = (wins(symbols) - 0.5) @ rows, Address(1, Stream.BOOTSTRAP, len(rows), 0)
    return Workspace(Evidence(rows, None, symbols, half_sum, contrast, flip, 0.0, coins=coins, third=third))


def drawn(
    rng: np.random.Generator, rows: NDArray[np.float64], epsilon: Decimal, tied: float = 0.6
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Labels with the mean sigma(u . v) and ties wherever both may win, and three-way reports of them."""
    mean = 1 / (1 + np.exp(-rows @ np.linspace(1, -1, rows.shape[1])))
    tie = tied * 2 * np.minimum(mean, 1 - mean)
    uniform = rng.random(len(rows))
    labels = np.where(uniform < tie, 2, uniform < tie + mean - tie / 2).astype(np.uint8)
    chances = np.array(k_randomized_response(epsilon, 3).table, dtype=float) / 2**63
    reports = (rng.random(len(rows))[:, None] > np.cumsum(chances, axis=1)[labels]).sum(axis=1)
    return labels, np.minimum(reports, 2).astype(np.uint8)


# What a report says, exactly


@pytest.mark.parametrize("labels", [(0, 1, 2), (2, 2, 0), (1, 0, 1)])
def test_the_mean_of_the_de_biased_sum_is_that_of_half_wins(labels: tuple[int, ...]) -> None:
    """Over all reports with their integer weights: no float is rounded, since rows are on a grid."""
    table = k_randomized_response(ONE, 3)
    contrast, mean = table.probability(0, 0) - table.probability(0, 1), [Fraction(0)] * 2
    for symbols in product(range(3), repeat=3):
        weight = math.prod(table.probability(label, symbol) for label, symbol in zip(labels, symbols, strict=True))
        for place, value in enumerate(known(np.array(symbols, np.uint8)).half_sum.tolist()):
            mean[place] += weight * Fraction(value)
    half = (wins(np.array(labels, np.uint8)) - 0.5) @ ROWS
    assert [value / contrast for value in mean] == [Fraction(value) for value in half.tolist()]


@settings(max_examples=25)
@given(LEVELS, st.tuples(*[st.floats(0.0, 1.0)] * 3))
def test_the_variance_of_a_score_is_found_without_a_model_of_ties(
    epsilon: Decimal, tied: tuple[float, float, float]
) -> None:
    """The mean over all labels and reports of the estimate, for any share of ties in each row, is the variance."""
    table, mean = k_randomized_response(epsilon, 3), 1 / (1 + np.exp(-ROWS @ U))
    found, true = np.zeros((2, 2)), np.zeros((2, 2))
    reported = []
    for m, part in zip(mean.tolist(), tied, strict=True):
        tie = part * 2 * min(m, 1 - m)
        chances = (1 - m - tie / 2, m - tie / 2, tie)
        law_of = [sum(p * float(table.probability(z, s)) for z, p in enumerate(chances)) for s in range(3)]
        reported.append(law_of)
    contrast = channel_of(table).contrast
    for row, law_of in zip(ROWS, reported, strict=True):
        value = 0.5 + (np.array([0.0, 1.0, 0.5]) - 0.5) / contrast
        true += (value**2 @ law_of - (value @ law_of) ** 2) * np.outer(row, row) / 3
    for symbols in product(range(3), repeat=3):
        one = known(np.array(symbols, np.uint8), epsilon)
        weight = math.prod(law_of[symbol] for law_of, symbol in zip(reported, symbols, strict=True))
        found += weight * one.score_variance(U, one.features.cumulant(U)[2])
    assert np.abs(found - true).max() <= 1e-9 * np.abs(true).max()


@given(LEVELS)
def test_three_values_say_more_than_a_coin_from_a_share_of_ties_on(epsilon: Decimal) -> None:
    """From the two tables; docs/ESTIMATORS.md derives the share, which is above 1 below epsilon = log(3) / 2."""
    two, three = randomized_response(epsilon), k_randomized_response(epsilon, 3)
    of_coin = Fraction(1, 4) / (two.probability(0, 0) - two.probability(0, 1)) ** 2
    contrast, q = three.probability(0, 0) - three.probability(0, 1), three.probability(0, 1)
    growth = math.exp(float(epsilon))
    for tie in (Fraction(place, 40) for place in range(41)):
        of_three = (1 - q - contrast * tie) / (4 * contrast**2)
        gap = float(tie) * (growth + 2) * (growth - 1) - (growth + 1)
        if abs(gap) > 1e-6 * growth**2:
            assert (of_three < of_coin) == (gap > 0)


# What is accepted


def report(values: list[int], **changes: object) -> Report:
    payload = Payload(Kind.SYMBOLS, np.array([values], dtype=np.uint8), None, 3)
    sent = Report(identity(encode_task(TASK)), None, payload, RR, law(TASK, RR).digest, Coins.OS, bytes(8))
    return replace(sent, **changes)  # type: ignore[arg-type]


def gather(sent: Report) -> Collected:
    task_id = identity(encode_task(TASK))
    return collect(TASK, task_id, Mail.open([encode_reply([(encode_report(sent), b"")])], [task_id]))


def test_three_symbols_are_accepted() -> None:
    found = gather(report([2, 0, 1]))
    assert not found.rejected and found.symbols is not None
    assert found.symbols.tolist() == [[2, 0, 1]]


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (report([3, 0, 1]), "symbols below 3"),
        (report([0, 1, 1], payload=Payload(Kind.SYMBOLS, np.array([[0, 1, 1]], np.uint8), None, 2)), "shape"),
        (report([0, 1]), "shape"),
        (report([0, 1, 2], table=law(replace(TASK, ties=Ties.COIN), RR).digest), "not offered"),
        (report([0, 1, 2], table=law(replace(TASK, ties=Ties.NONE), RR).digest), "not offered"),
    ],
)
def test_other_reports_are_not(sent: Report, why: str) -> None:
    (reason,) = gather(sent).rejected
    assert why in reason


# Estimators


@pytest.mark.parametrize("symbols", [[0, 1, 2], [0, 1, 0]])
@pytest.mark.parametrize(
    "fitted",
    [one_step, rr_mle, rr_map, lambda seen, options: debiased(seen, replace(options, interval="bootstrap"))],
)
def test_what_needs_a_likelihood_is_refused_whether_a_tie_is_reported_or_not(
    symbols: list[int], fitted: Callable[[Workspace, Options], object]
) -> None:
    with pytest.raises(ValueError, match="without ties"):
        fitted(known(np.array(symbols, np.uint8)), Options(3.0))


def test_evidence_of_three_symbols_is_checked() -> None:
    good = known(np.array([0, 1, 2], np.uint8)).evidence
    for changes in ({"third": 0.0}, {"third": good.third * 1.01}, {"symbols": np.array([0, 1, 3], np.uint8)}):
        with pytest.raises(ValueError, match="expected"):
            replace(good, **changes)
    with pytest.raises(ValueError, match="three with ties"):
        channel_of(k_randomized_response(ONE, 4))


def test_one_channel_of_a_menu_is_that_channel() -> None:
    rng = np.random.default_rng(5)
    rows = np.round(rng.normal(size=(400, 3)) * 2**20) / 2**20
    _, symbols = drawn(rng, rows, ONE)
    alone, which = known(symbols, ONE, rows), np.zeros(400, np.uint8)
    channels = [channel_of(k_randomized_response(ONE, 3))]
    mixed = Mixed(MixedEvidence(rows, symbols, which, channels, Features.of(rows, None)))
    for fitted in (debiased, naive, debiased_sgd):
        one, other = fitted(alone, Options(5.0)), fitted(mixed, Options(5.0))
        assert np.abs(one.u - other.u).max() < 1e-9
        if one.covariance is not None and other.covariance is not None:
            assert np.abs(one.covariance - other.covariance).max() < 1e-6  # curvature of a last step, or at its end
    with pytest.raises(ValueError, match="without ties"):
        rr_mle(mixed, Options(5.0))


def test_arms_that_share_a_pass_have_the_bits_that_they_have_alone() -> None:
    rng = np.random.default_rng(6)
    rows = np.round(rng.normal(size=(500, 3)) * 2**20) / 2**20
    seen = [known(drawn(rng, rows, level)[1], level, rows) for level in (ONE, Decimal(4))]
    together = side_by_side([(one, Options(3.0)) for one in seen])
    for one, found in zip(seen, together, strict=True):
        assert found.u.tobytes() == debiased_sgd(one, Options(3.0)).u.tobytes()


@pytest.mark.parametrize("name", ["debiased", "debiased-sgd", "naive"])
def test_a_stream_has_the_bits_of_memory(name: str) -> None:
    """Three parts and a bit, cut otherwise than passes cut them."""
    rng = np.random.default_rng(7)
    rows = np.round(rng.normal(size=(25_000, 2)) * 2**20) / 2**20
    _, symbols = drawn(rng, rows, ONE)
    alone, edges = known(symbols, ONE, rows), [0, 7, 9000, 25_000]

    def source() -> list[Block]:
        return [Block(rows[start:stop], symbols[start:stop]) for start, stop in pairwise(edges)]

    channel = channel_of(k_randomized_response(ONE, 3))
    found = estimate(name, source, channel.contrast, channel.flip, Options(5.0), channel.third)
    expected = STREAMING[name](alone, Options(5.0))
    assert found.u.tobytes() == expected.u.tobytes()
    if expected.covariance is not None:
        assert found.covariance is not None and np.abs(found.covariance - expected.covariance).max() < 1e-15
    with pytest.raises(ValueError, match="randomised ones: use debiased"):
        estimate("rr-mle", source, channel.contrast, channel.flip, Options(5.0), channel.third)
    with pytest.raises(ValueError, match="symbols"):
        estimate(name, source, channel.contrast, channel.flip, Options(5.0))


def test_estimates_are_right_and_intervals_cover() -> None:
    """1,000 fits of 2,000 reports at epsilon 2 with many ties. Of errors in standard errors, 3 coordinates each: a mean
    beyond 6.5 of its own, or a mean square 7 of its own from 1, has together a probability of 6e-10 if they are normal.
    """
    rng, truth, level, fits = np.random.default_rng(20), np.linspace(1, -1, 3), Decimal(2), 1000
    scaled = np.empty((fits, 3))
    for fit in range(fits):
        rows = np.round(rng.normal(size=(2000, 3)) * 2**20) / 2**20
        found = debiased(known(drawn(rng, rows, level)[1], level, rows), Options(math.inf))
        assert found.covariance is not None
        scaled[fit] = (found.u - truth) / np.sqrt(found.covariance.diagonal())
    assert np.abs(scaled.mean(axis=0)).max() < 6.5 / math.sqrt(fits)
    assert np.abs((scaled**2).mean(axis=0) - 1).max() < 7 * math.sqrt(2 / fits)
