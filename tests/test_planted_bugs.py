"""Wrong variants of what privacy and accuracy stand on, each caught by a check that the real code passes.

A check takes what it checks as its argument, so that one function judges both. It raises AssertionError.
"""

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from client.draws import AddressedDraws, SecretDraws
from client.labeler import Node, answer
from client.labels import Labels
from client.ledger import DiskLedger, MemoryLedger
from client.policy import Policy
from client.randomizer import randomize
from client.sources import Facts
from client.sources.loading import read_table
from protocol.channel import TOTAL, DiscreteChannel
from protocol.codec import Signed, decode_reply, encode_task
from protocol.features import row_bound
from protocol.grid import exponent, truncate
from protocol.mechanisms.randomized_response import randomized_response
from protocol.messages import Mechanism, Report, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.study import Cell
from protocol.terms import TIE, share, with_coin
from protocol.trust import Trust
from server.estimators.base import Evidence
from server.estimators.workspace import Workspace
from server.kernels_descent import residual
from server.mechanisms.gaussian import analytic_noise_multiplier
from server.mechanisms.sensitivity import largest_squared_norm, squared_group_norm
from server.release import ReleaseLedger
from server.release_record import ReleaseRequest
from studies.in_process import run_cell
from studies.load import build

LEVELS = tuple(map(Decimal, ("1e-9", "0.1", "1", "4", "20")))
EXACT = Context(prec=80)
RNG = np.random.Generator(np.random.Philox(17))
ROWS = np.round(RNG.normal(size=(5, 3)) * 64) / 64
TOML = Path(__file__).parents[1] / "studies" / "toml"


# Local: tables, coins, answers


def keeps_its_level(channel: Callable[[Decimal], DiscreteChannel]) -> None:
    """max P(symbol | value) / P(symbol | other) <= e^epsilon, in integers, and not far below."""
    for epsilon in LEVELS:
        worst = max(Fraction(max(column), min(column)) for column in zip(*channel(epsilon).table, strict=True))
        ratio = EXACT.divide(Decimal(worst.numerator), Decimal(worst.denominator))
        assert ratio <= EXACT.exp(epsilon), f"more than epsilon = {epsilon}"
        assert ratio >= EXACT.exp(epsilon * Decimal("0.99")), f"far less than epsilon = {epsilon}"


def table(flip: int) -> DiscreteChannel:
    return DiscreteChannel(((TOTAL - flip, flip), (flip, TOTAL - flip)))


def kept_twice(epsilon: Decimal) -> DiscreteChannel:
    """A coin that says "flip" is thrown again: the label is kept with p + (1 - p) p."""
    flip = randomized_response(epsilon).table[0][1]
    return table(max(1, flip * flip // TOTAL))


def rounded_down(epsilon: Decimal) -> DiscreteChannel:
    """One count of 2^63 less: the threshold on the wrong side of the formula."""
    return table(int(EXACT.divide(Decimal(TOTAL), 1 + EXACT.exp(epsilon)).to_integral_value(rounding=ROUND_FLOOR)))


def reports_the_likelier_label(channel: Callable[[Decimal], DiscreteChannel]) -> None:
    for epsilon in LEVELS:
        found = channel(epsilon).table
        assert found[0][0] > found[0][1] and found[1][1] > found[1][0]


def symbols_in_another_order(epsilon: Decimal) -> DiscreteChannel:
    (keep, flip), _ = randomized_response(epsilon).table
    return DiscreteChannel(((flip, keep), (keep, flip)))


def gives_rows_coins_of_their_own(lanes: Callable[[NDArray[np.int64]], NDArray[np.uint16]]) -> None:
    """Two clients with 64 rows each draw what one client with all of them draws, and not the same (2^-1024)."""
    rows = np.arange(128)
    first, second = lanes(rows[:64]), lanes(rows[64:])
    assert (first != second).any()
    assert (np.concatenate([first, second]) == lanes(rows)).all()


def is_fresh(draws: Callable[[], Any]) -> None:
    """Two nodes, or one before and after a restart, never draw the same 1,024 bits."""
    assert (draws().lanes(np.arange(64)) != draws().lanes(np.arange(64))).any()


def tells_no_ties_by_its_length(reports: Callable[[NDArray[np.uint8]], NDArray[np.uint8]]) -> None:
    for values in ([0, 1, 0, 1], [0, TIE, 1, TIE], [TIE] * 4):
        assert len(reports(np.array(values, dtype=np.uint8))) == 4


def with_ties(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    channel = with_coin(randomized_response(Decimal(1)))
    return randomize(values, channel, SecretDraws(), np.arange(len(values)))


def answers_once(ledger: Callable[[Path], Any]) -> None:
    """Forty labels that two tasks ask about, with a restart between: one answer each. By chance alone: 2^-40."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "votes.csv"
        lines = [f"r{row},x,y{row},{'item_a' if row % 3 else 'item_b'}" for row in range(40)]
        path.write_text("\n".join(["labeler,item_a,item_b,winner", *lines]) + "\n", encoding="utf-8")
        votes = read_table(path, False)
        problem = Problem(len(votes.items), "items", True, None, votes.pairs)
        heard = []
        for study in (b"a" * 32, b"b" * 32):
            node = Node(votes, Policy(), ledger(Path(name)), "os", FeatureStore(None))
            asked = local_task(problem, 40, "0.01", study)
            heard.append(report(answer(encode_task(asked), node)).payload.values[0].tolist())
        assert heard[0] == heard[1]


def local_task(problem: Problem, n: int, epsilon: str, study: bytes) -> Task:
    level = Decimal(epsilon)
    menu = (Mechanism.of("randomized-response", epsilon=level),)
    return Task(study, Trust.LOCAL, Unit.LABEL, problem, menu, n, level, None, 0, 1)


def report(raw: bytes) -> Report:
    reply = decode_reply(raw)
    assert isinstance(reply, list), reply
    (signed,) = reply
    assert isinstance(signed, Signed)
    return signed.report


def costs_a_labeler_no_more(part: Callable[[Decimal, int], Decimal]) -> None:
    for epsilon, cap in product((Decimal(1), Decimal("0.1"), Decimal(7)), (1, 3, 7, 11)):
        assert EXACT.multiply(part(epsilon, cap), Decimal(cap)) <= epsilon


# Central: noise, sensitivity, sums, releases


def is_calibrated(multiplier: Callable[[Decimal, Decimal], float]) -> None:
    """delta of the Gaussian mechanism, by the textbook formula: at most the asked one, and with 1 % less noise more."""
    for epsilon, delta in product(map(Decimal, ("0.5", "1", "4")), map(Decimal, ("1e-3", "1e-6"))):
        noise = multiplier(epsilon, delta)
        assert profile(float(epsilon), 1 / noise) <= float(delta) * (1 + 1e-9), "not enough noise"
        assert profile(float(epsilon), 1.01 / noise) > float(delta), "more noise than needed"


def profile(epsilon: float, mu: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def classical(epsilon: Decimal, delta: Decimal) -> float:
    return math.sqrt(2 * math.log(1.25 / float(delta))) / float(epsilon)


def covers_every_flip(squared: Callable[[NDArray[np.float64], int], int]) -> None:
    """Every label replaced by the other one moves the sum by at most the sensitivity; one by exactly that."""
    moves = [sum(int(value) ** 2 for value in row * 64) for row in ROWS]
    assert squared(ROWS, -6) == max(moves)


def covers_every_labeler(squared: Callable[[NDArray[np.float64], int], int]) -> None:
    """All labels of one labeler replaced, all 3^5 ways of it."""
    units = ROWS * 64
    for change in product((-1, 0, 1), repeat=5):
        assert sum(int(value) ** 2 for value in np.array(change) @ units) <= squared(ROWS, -6)


@dataclass(frozen=True)
class Given:
    """A source of given labels."""

    values: NDArray[np.uint8]
    synthetic: ClassVar[bool] = True
    public: ClassVar[bool] = False

    def check(self, task: Task) -> None:
        pass

    def rows(self, task: Task) -> Runs:
        return Runs.of(range(task.n))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        return None

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        return Labels(self.values[rows])


def client_sum(values: NDArray[np.uint8], radius: float | None) -> NDArray[np.float64]:
    """What a client sends a curator about eight rows."""
    problem = Problem(4, "gaussian", True, Decimal(3))
    claim = {"epsilon": Decimal(1), "delta": Decimal("1e-5")}
    name = "gaussian-statistic" if radius is None else "gaussian-statistic-clipped"
    menu = Mechanism.of(name, **claim, **({} if radius is None else {"radius": Decimal(str(radius))}))
    grid = exponent(8, row_bound(problem, radius))
    task = Task(
        b"c" * 32, Trust.CENTRAL, Unit.LABEL, problem, (menu,), 8, Decimal(1), Decimal("1e-5"), 0, 1, exponent=grid
    )
    node = Node(Given(values), Policy.simulation(), MemoryLedger(), "addressed", FeatureStore(3), seed=3)
    return np.asarray(report(answer(encode_task(task), node)).payload.values[0, 0], dtype=np.float64)


def moves_by_at_most_the_radius(released: Callable[[NDArray[np.uint8]], NDArray[np.float64]]) -> None:
    """With the same noise, one label moves a release by at most what the noise is made for: radius 1."""
    values = np.zeros(8, dtype=np.uint8)
    for row in range(8):
        other = values.copy()
        other[row] = 1
        assert np.linalg.norm(released(other) - released(values)) <= 1


NOISE = 4 * RNG.normal(size=3)


def clipped_first(values: NDArray[np.uint8]) -> NDArray[np.float64]:
    return client_sum(values, 1.0) + NOISE


def clipped_after_noise(values: NDArray[np.uint8]) -> NDArray[np.float64]:
    noisy = client_sum(values, None) + NOISE
    clipped: NDArray[np.float64] = noisy * min(1.0, 8.0 / float(np.linalg.norm(noisy)))
    return clipped


def releases_once(ledger: Callable[[Path], Any]) -> None:
    """A restart gives the noise that was committed; by chance alone 2^-100 and less."""
    asked = ReleaseRequest(
        b"t", 0, (b"r",), 5, -40, 1 << 60, "gaussian-statistic", Decimal(1), Decimal("1e-5"), Unit.LABEL, 0
    )
    with tempfile.TemporaryDirectory() as name:
        heard = []
        for _ in range(2):
            with ledger(Path(name)) as opened:
                heard.append(opened.release(asked, [1 << 40, 5, 7]).values)
        assert heard[0] == heard[1]


def adds_exactly_and_finely(power: Callable[[int, float], int]) -> None:
    """Sums of n numbers of size up to the bound are exact in any order, and truncation costs less than 2^-50 each."""
    n, bound = 4095, 7.5
    values = np.append(RNG.uniform(bound / 2, bound, n - 1), bound)
    cut = truncate(values, power(n, bound))
    exact = sum(map(Fraction, cut.tolist()))
    assert Fraction(math.fsum(cut)) == exact and Fraction(float(np.cumsum(cut)[-1])) == exact
    assert Fraction(float(np.cumsum(cut[::-1])[-1])) == exact
    assert n * np.abs(values - cut).max() <= n * (n * bound) * 2.0**-50


# Estimates


def is_unbiased(statistic: Callable[[Workspace], NDArray[np.float64]]) -> None:
    """The mean of what stands for (1/n) sum (y - 1/2) x over all 2^5 reports is that of the labels."""
    (keep, flip), _ = randomized_response(Decimal(1)).table
    labels, total = np.array([0, 1, 1, 0, 1], dtype=np.uint8), np.zeros(3)
    for reports in product((0, 1), repeat=5):
        symbols = np.array(reports, dtype=np.uint8)
        chance = math.prod(keep / TOTAL if same else flip / TOTAL for same in symbols == labels)
        known = Evidence(ROWS, None, symbols, (symbols - 0.5) @ ROWS, (keep - flip) / TOTAL, flip / TOTAL, 0.0)
        total += chance * statistic(Workspace(known))
    np.testing.assert_allclose(total, (labels - 0.5) @ ROWS / 5, atol=1e-13)


def descends_as_on_the_labels(slope: Callable[[float, float, float, float], float]) -> None:
    """E[residual | y] = c (sigma(z) - y)."""
    (keep, flip), _ = (tuple(count / TOTAL for count in row) for row in randomized_response(Decimal(1)).table)
    for z, label in product((-2.0, 0.3, 1.5), (0, 1)):
        mean = keep * slope(z, label, keep - flip, flip) + flip * slope(z, 1 - label, keep - flip, flip)
        assert mean == pytest.approx((keep - flip) * (1 / (1 + math.exp(-z)) - label), abs=1e-13)


def finds_the_truth_of_choices(estimator: str) -> None:
    """Choices out of five at epsilon = 2: the error is a tenth; 0.5 is 10 standard errors away."""
    arm = {"trust": "local", "mechanism": "k-randomized-response", "estimator": estimator}
    theta = [Decimal(text) for text in ("1", "0.5", "-0.5", "-1")]
    problem = {"kind": "choice", "dimension": 4, "choices": 5, "features": "gaussian", "theta": theta, "sum_zero": True}
    grid = {"n": [5000], "epsilon": [Decimal(2)]}
    head = {"study": {"name": "planted", "seed": 5, "repetitions": 1}, "grid": grid, "arm": [arm]}
    loaded = build({**head, "problem": {**problem, "bound": Decimal(3)}}, TOML)
    (found,) = run_cell(loaded.study, loaded.truth, Cell(5000, 0, 1))
    assert np.linalg.norm(found.theta - loaded.theta) < 0.5


# bug -> the check that catches it, what is real, what is wrong
BUGS: dict[str, tuple[Callable[[Any], None], Any, Any]] = {
    "a label is kept with p + (1 - p) p": (keeps_its_level, randomized_response, kept_twice),
    "the table is that of 2 epsilon": (keeps_its_level, randomized_response, lambda e: randomized_response(2 * e)),
    "a threshold is rounded down": (keeps_its_level, randomized_response, rounded_down),
    "symbols in another order": (reports_the_likelier_label, randomized_response, symbols_in_another_order),
    "clients share a seed": (
        gives_rows_coins_of_their_own,
        lambda rows: AddressedDraws(7, 128, 0).lanes(rows),
        lambda rows: AddressedDraws(7, 128, 0).lanes(rows - rows[0]),
    ),
    "secret coins have a seed": (is_fresh, SecretDraws, lambda: AddressedDraws(7, 64, 0)),
    "ties are dropped under a claim": (tells_no_ties_by_its_length, with_ties, lambda y: with_ties(y[y != TIE])),
    "a ledger forgets": (
        answers_once,
        lambda folder: DiskLedger(folder / "ledger"),
        lambda folder: DiskLedger(folder / f"ledger-{len(list(folder.iterdir()))}"),
    ),
    "every label of a labeler costs epsilon": (costs_a_labeler_no_more, share, lambda epsilon, cap: epsilon),
    "shares are rounded to nearest": (costs_a_labeler_no_more, share, lambda epsilon, cap: epsilon / cap),
    "half the noise": (is_calibrated, analytic_noise_multiplier, lambda e, d: analytic_noise_multiplier(e, d) / 2),
    "twice the noise": (is_calibrated, analytic_noise_multiplier, lambda e, d: analytic_noise_multiplier(e, d) * 2),
    "delta is squared": (is_calibrated, analytic_noise_multiplier, lambda e, d: analytic_noise_multiplier(e, d * d)),
    "the classical formula": (is_calibrated, analytic_noise_multiplier, classical),
    "sensitivity is halved": (
        covers_every_flip,
        largest_squared_norm,
        lambda rows, power: largest_squared_norm(rows, power) // 4,
    ),
    "a labeler's rows add like strangers'": (
        covers_every_labeler,
        squared_group_norm,
        lambda rows, power: sum(largest_squared_norm(row[None], power) for row in rows),
    ),
    "clipping comes after noise": (moves_by_at_most_the_radius, clipped_first, clipped_after_noise),
    "a replay has fresh noise": (
        releases_once,
        lambda folder: ReleaseLedger(folder / "ledger"),
        lambda folder: ReleaseLedger(None),
    ),
    "the grid is too fine": (adds_exactly_and_finely, exponent, lambda n, bound: exponent(n, bound) - 3),
    "the grid is too coarse": (adds_exactly_and_finely, exponent, lambda n, bound: exponent(n, bound) + 20),
    "the de-bias factor twice": (is_unbiased, lambda w: w.mean(w.contrast), lambda w: w.mean(w.contrast**2)),
    "the de-bias factor forgotten": (is_unbiased, lambda w: w.mean(w.contrast), lambda w: w.mean(1.0)),
    "a gradient without its flip": (
        descends_as_on_the_labels,
        residual,
        lambda z, symbol, contrast, flip: residual(z, symbol, contrast, 0.0),
    ),
    "the binary score copied to K choices": (finds_the_truth_of_choices, "debiased", "literal"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_real_code_passes(bug: str) -> None:
    check, real, _ = BUGS[bug]
    check(real)


@pytest.mark.parametrize("bug", BUGS)
def test_the_bug_is_caught(bug: str) -> None:
    check, _, planted = BUGS[bug]
    with pytest.raises(AssertionError):
        check(planted)
