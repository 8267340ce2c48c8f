"""What a report about a top choice says, against the enumeration of all reports; K-ary identities and oracle values."""

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol.channel import TOTAL
from protocol.choice_law import CHOICE_LOCAL, ONE, PAIR, SUBSET, ChoiceLaw
from server.choice_view import clear_view, view

Vector = NDArray[np.float64]
SIZES = (2, 3, 5, 6)
TEST_POINT = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]])
THETA = np.array([0.5, -0.25, -0.25])


def law_of(name: str, epsilon: str, *sizes: int) -> ChoiceLaw:
    return ChoiceLaw(name, Decimal(epsilon), sizes, b"s" * 32 if name == PAIR else b"")


def reports(law: ChoiceLaw, size: int) -> Iterator[tuple[Vector, Vector]]:
    """(g, P(report | y) for all y), of every report; a public pair is drawn uniformly."""
    if law.name == ONE:
        for row in range(size):
            yield np.eye(size)[row], np.array([law.table(size).table[y][row] for y in range(size)]) / TOTAL
    elif law.name == SUBSET:
        channel = law.subsets(size)
        hit, k = channel.hit / TOTAL, channel.subset
        for members in itertools.combinations(range(size), k):
            inside = np.isin(np.arange(size), members)
            chance = np.where(inside, hit / math.comb(size - 1, k - 1), (1 - hit) / math.comb(size - 1, k))
            yield inside.astype(float), chance
    else:
        pairs = list(itertools.combinations(range(size), 2))
        for j, k in pairs:
            for bit in (0, 1):
                marks = np.full(size, 0.5)
                marks[j], marks[k] = 1 - bit, bit
                values = [0 if y == j else 1 if y == k else 2 for y in range(size)]
                yield marks, np.array([law.table(size).table[v][bit] for v in values]) / TOTAL / len(pairs)


@pytest.mark.parametrize("name", CHOICE_LOCAL)
@pytest.mark.parametrize("epsilon", ["0.000001", "0.1", "1", "8"])
@pytest.mark.parametrize("size", SIZES)
def test_the_numbers_of_a_law_are_those_of_its_reports(name: str, epsilon: str, size: int) -> None:
    law = law_of(name, epsilon, size)
    found = view(law)
    (base, slope), (alpha, scale) = found.law[size], found.shares[size]
    every = list(reports(law, size))
    assert np.allclose(sum(chance for _, chance in every), 1, atol=1e-15)
    expected = sum(np.outer(chance, alpha + scale * marks) for marks, chance in every)
    assert np.abs(expected - np.eye(size)).max() < 1e-13 * scale
    for marks, chance in every:
        assert abs((alpha + scale * marks).sum() - 1) < 1e-13 * scale
        ratio = chance / (base + slope * marks)
        assert np.allclose(ratio, ratio[0], rtol=1e-12)


@pytest.mark.parametrize("name", CHOICE_LOCAL)
@pytest.mark.parametrize("size", SIZES)
def test_the_spread_is_the_variance_of_the_debiased_feature(name: str, size: int) -> None:
    law = law_of(name, "0.8", size)
    found = view(law)
    rng = np.random.default_rng(size)
    p, v = rng.dirichlet(np.ones(size)), rng.normal(size=(size, 3))
    x = v - p @ v
    alpha, scale = found.shares[size]
    exact = np.zeros((3, 3))
    for marks, chance in reports(law, size):
        feature = (alpha + scale * marks) @ x
        exact += (p @ chance) * np.outer(feature, feature)
    a, b, c = found.spread[size]
    total = x.sum(axis=0)
    assert np.allclose((x.T * (a + b * p)) @ x + c * np.outer(total, total), exact, rtol=1e-11)


def test_labels_speak_for_themselves() -> None:
    found = clear_view()
    assert found.law[7].tolist() == found.shares[7].tolist() == [0, 1] and found.spread[7].tolist() == [0, 1, 0]


def test_oracle_values_of_k_ary_randomised_response() -> None:
    base, slope = view(law_of(ONE, "1", 5)).law[5]
    assert base + slope == pytest.approx(0.40460967519168967, rel=1e-9)
    assert base == pytest.approx(0.14884758120207758, rel=1e-9)
    assert view(law_of(ONE, "1", 5)).shares[5][1] == pytest.approx(3.909883534346632, rel=1e-9)
    base, slope = view(law_of(ONE, "8", 10)).law[10]
    assert base + slope == pytest.approx(0.9969899242601383, rel=1e-9)


def test_oracle_values_of_the_score() -> None:
    z = TEST_POINT @ THETA
    p = np.exp(z) / np.exp(z).sum()
    assert p[0] == pytest.approx(0.3234766410511001, rel=1e-9)
    found = view(law_of(ONE, "1", 5))
    alpha, scale = found.shares[5]
    shares = alpha + scale * (np.arange(5) == 3)
    assert (shares @ TEST_POINT - p @ TEST_POINT)[0] == pytest.approx(2.1705296182009746, rel=1e-9)
    other, gap = found.law[5]
    kept = other + gap
    bias = np.zeros(3)  # of the score a log p_report - b sum_{j != report} log p_j, over reports, beside the clear one
    for report in range(5):
        chance = kept if report == 0 else other
        score = np.where(np.arange(5) == report, kept, -other)
        bias += chance * (score @ TEST_POINT - score.sum() * p @ TEST_POINT)
    bias -= gap * (TEST_POINT[0] - p @ TEST_POINT)
    assert bias[0] == pytest.approx(0.009798597278377525, rel=1e-9)


@pytest.mark.parametrize("size", range(2, 51))
@pytest.mark.parametrize("epsilon", ["0.000001", "0.1", "1", "40"])
def test_the_expected_gradient_is_the_clear_one(size: int, epsilon: str) -> None:
    """(a - b) sum_k p_k phi_k - phi_report + b sum_k phi_k has mean (a - b) (sum_k p_k phi_k - phi_y), for every y."""
    other, gap = view(law_of(ONE, epsilon, size)).law[size]
    rng = np.random.default_rng(size)
    phi = rng.normal(size=(size, 3))
    p = rng.dirichlet(np.ones(size))
    for y in range(size):
        chance = np.full(size, other)
        chance[y] = other + gap
        mean = gap * p @ phi - chance @ phi + other * phi.sum(axis=0)
        assert np.allclose(mean, gap * (p @ phi - phi[y]), atol=1e-13)
