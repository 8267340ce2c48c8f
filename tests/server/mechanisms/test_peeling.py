"""Peeling: what it chooses, what it costs by quadrature on tiny cases, and what a record moves in a descent step."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, laplace

from protocol.coins import Address, Stream, words
from server.mechanisms.peeling import paper_scale, peel, peel_and_flip, peeling_cost, step_change
from server.mechanisms.selection_noise import exponential, gumbel
from server.mechanisms.selection_noise import laplace as laplace_noise

Oracle = Callable[[str], float]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)


def coins(rows: int, columns: int, repetition: int = 0) -> np.ndarray:
    return words(Address(11, Stream.CURATOR, repetition=repetition), 0, rows * columns).reshape(rows, columns)


def chosen_first(scores: tuple[float, ...], place: int) -> float:
    """P(place has the largest score + standard Laplace noise), by quadrature."""

    ends, total = [min(scores) - 45, *sorted(scores), max(scores) + 45], 0.0
    for low, high in pairwise(ends):  # smooth on each piece
        t = low + (high - low) * (NODES + 1) / 2
        density = np.exp(-np.abs(t - scores[place])) / 2
        for index, score in enumerate(scores):
            if index != place:
                below = np.exp(-np.abs(t - score)) / 2
                density = density * np.where(t < score, below, 1 - below)
        total += float((WEIGHTS * density).sum()) * (high - low) / 2
    return total


def ordered_law(scores: tuple[float, ...], sparsity: int) -> dict[tuple[int, ...], float]:
    """P(these were chosen in this order): fresh noise a round, so a product over rounds."""
    law = {}
    for order in permutations(range(len(scores)), sparsity):
        left, total = list(range(len(scores))), 1.0
        for place in order:
            total *= chosen_first(tuple(scores[index] for index in left), left.index(place))
            left.remove(place)
        law[order] = total
    return law


def test_oracle_without_noise(heavy_oracle: Oracle) -> None:
    vector = np.array([0.5, -3, 2, 0, -2.5])
    for choose in (peel, peel_and_flip):
        found = choose(vector, 2, 0.0, coins(3, 5))
        assert found.support.tolist() == [1, 4]
        assert found.values.sum() == heavy_oracle("peel zero noise")
        assert found.vector(5).tolist() == [0, -3, 0, 0, -2.5]


def test_ties_go_to_the_lowest_index() -> None:
    assert peel(np.array([1.0, -2, 2, 2]), 2, 0.0, coins(3, 4)).support.tolist() == [1, 2]


def test_noise_follows_its_law() -> None:
    """Kolmogorov-Smirnov at 10^5 words, fixed: a p-value below 1e-6 would be a fault."""
    drawn = coins(3, 100_000)
    assert kstest(laplace_noise(drawn[0]), "laplace").pvalue > 1e-6
    assert kstest(exponential(drawn[1]), "expon").pvalue > 1e-6
    assert kstest(gumbel(drawn[2]), "gumbel_r").pvalue > 1e-6
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert all(np.isfinite(noise(ends)).all() for noise in (laplace_noise, exponential, gumbel))


def test_peeling_follows_its_law() -> None:
    """Orders of two of three at 4000 draws: six standard deviations, a false alarm in 10^8."""
    scores, runs = (0.0, 0.7, 1.5), 4000
    law, seen = ordered_law(scores, 2), dict.fromkeys(permutations(range(3), 2), 0)
    assert sum(law.values()) == pytest.approx(1, abs=1e-7)
    for run in range(runs):
        first, second = peel(np.array(scores), 2, 1.0, coins(3, 3, run)).support.tolist()
        seen[first, second] += 1
    for order, p in law.items():
        assert abs(seen[order] - runs * p) < 6 * math.sqrt(runs * p * (1 - p))


@pytest.mark.parametrize("scores", [(0.0, 0.0, 0.0), (0.0, 0.4, 1.1), (2.0, 0.1, 0.0), (0.5, 3.0, 2.5)])
def test_two_selections_stay_below_four_a(scores: tuple[float, ...]) -> None:
    """a = 1: all sign patterns of neighbours at distance 1, every ordered support; the rest of 3 s a is values'."""
    before = ordered_law(scores, 2)
    worst = 0.0
    for move in product((-1, 1), repeat=3):
        after = ordered_law(tuple(score + shift for score, shift in zip(scores, move, strict=True)), 2)
        worst = max(worst, *(abs(math.log(before[order] / after[order])) for order in before))
    assert 1 < worst <= 4 + 1e-6
    assert worst + 2 <= peeling_cost(2, 1.0).pure


@pytest.mark.parametrize(("dimension", "reached"), [(2, 1.9), (10, 1.99), (1000, 1.9999)])
def test_two_a_a_selection_is_reached(dimension: int, reached: float) -> None:
    """One of d equal others against all of them, a = 1: the loss tends to 2 as it falls behind, and never passes it."""

    def wins(gap: float) -> float:
        points = (0.0, -gap) if gap else (0.0,)
        value = quad(
            lambda t: laplace.pdf(t + gap) * laplace.cdf(t) ** (dimension - 1),
            -80,
            80,
            points=points,
            limit=800,
            epsabs=0,
            epsrel=1e-11,
        )
        return float(value[0])

    losses = [math.log(wins(gap) / wins(gap + 2)) for gap in (0.0, 1.0, 3.0, 8.0, 20.0)]
    assert reached < max(losses) <= 2 + 1e-8


def test_the_loss_of_two_is_the_closed_form() -> None:
    """The difference of two Laplace numbers exceeds g >= 0 with probability e^-g (1 + g/2) / 2."""
    for gap in (0.3, 2.0, 6.0):
        assert chosen_first((0.0, gap), 0) == pytest.approx(math.exp(-gap) * (1 + gap / 2) / 2, rel=1e-7)


def test_exponential_noise_is_permute_and_flip() -> None:
    """By quadrature against the enumeration of all orders of coins: levels 2 / scale, here scale 1."""
    scores = (0.0, 0.8, 1.3)
    best = max(scores)
    for place in range(3):

        def density(t: float, place: int = place) -> float:
            others = [max(0.0, -math.expm1(-(t - s))) if t > s else 0.0 for i, s in enumerate(scores) if i != place]
            return math.exp(-(t - scores[place])) * math.prod(others) if t > scores[place] else 0.0

        noisy = quad(density, 0, 60, points=scores, limit=400, epsrel=1e-10)[0]
        flipped = 0.0
        for order in permutations(range(3)):
            before = order[: order.index(place)]
            coin = math.exp(scores[place] - best)
            flipped += math.prod(1 - math.exp(scores[i] - best) for i in before) * coin / 6
        assert noisy == pytest.approx(flipped, rel=1e-8)


def test_costs(heavy_oracle: Oracle) -> None:
    scale = paper_scale(Decimal(1), Decimal("1e-5"), 5)
    assert scale == pytest.approx(heavy_oracle("peel scale paper"), rel=1e-11)
    cost = peeling_cost(5, scale)
    assert cost.rho + 2 * math.sqrt(cost.rho * math.log(1e5)) == pytest.approx(
        heavy_oracle("peel paper scale true eps"), rel=1e-10
    )
    assert Fraction(cost.rho) >= Fraction(25, 2) / Fraction(scale) ** 2
    assert Fraction(cost.pure) >= 15 / Fraction(scale)


@pytest.mark.parametrize("clip", [True, False])
def test_a_record_moves_a_step_by_lambda_and_no_more(clip: bool, heavy_oracle: Oracle) -> None:
    """All data sets of two records of a small grid, all neighbours, gradients of least squares at w = 0."""
    assert step_change(20, 2 / 3, 1000) == pytest.approx(heavy_oracle("lambda IHT"), rel=1e-15)
    bound, step = 2.0, 0.5
    records = [(np.array(x), y) for x in product((-1.0, 1.0, 3.0), repeat=2) for y in (-2.0, 1.0, 2.0, 5.0)]
    gradients = np.array([-y * x for x, y in records])
    cut = np.clip(gradients, -bound, bound) if clip else np.where(np.abs(gradients) <= bound, gradients, 0)
    moved = 0.0
    for kept in cut:  # the one they share
        steps = -step * (kept + cut) / 2
        moved = max(moved, float(np.abs(steps[:, None] - steps[None, :]).max()))
    limit = step_change(bound, step, 2)
    assert limit * (1 - 1e-15) <= moved <= limit


def test_nonsense_is_refused() -> None:
    good = np.zeros(3)
    for vector, sparsity, scale, shape in (
        (np.array([0, math.nan, 1]), 1, 1.0, (2, 3)),
        (np.zeros((3, 1)), 1, 1.0, (2, 3)),
        (good, 0, 1.0, (1, 3)),
        (good, 4, 1.0, (5, 3)),
        (good, 1, -1.0, (2, 3)),
        (good, 1, math.inf, (2, 3)),
        (good, 1, 1.0, (3, 3)),
    ):
        with pytest.raises(ValueError, match="expected"):
            peel(vector, sparsity, scale, np.zeros(shape, dtype=np.uint64))
    with pytest.raises(TypeError, match="float64"):
        peel(np.zeros(3, dtype=np.int64), 1, 1.0, coins(2, 3))
    for scale in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="scale"):
            peeling_cost(1, scale)
    with pytest.raises(ValueError, match="batch"):
        step_change(1.0, 1.0, 0)
