"""Choices in integers: levels by the exact law, samplers against it, and what a claim does not allow."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from server.mechanisms.discrete_gaussian import sample_discrete_laplace, sample_geometric
from server.mechanisms.exact_choices import CHOICES, HISTOGRAM, LOOKS, THRESHOLD, Chooser, chooser
from server.mechanisms.selection_rounds import ONE_SHOT, shared_rounds
from server.mechanisms.selections import SELECTIONS
from server.mechanisms.zcdp import zcdp_delta_bound

DELTA = Decimal("1e-5")
SMALL = {  # a grid so coarse that noise takes few values; scores move by 1
    name: Chooser(name, 1 if name in LOOKS else 2, 1, 0 if name == HISTOGRAM else 3, 0 if name == THRESHOLD else 3)
    for name in CHOICES
}
Law = dict[tuple[int, ...], float]


def softmax(costs: Sequence[float]) -> list[float]:
    weights = [math.exp(-cost) for cost in costs]
    return [weight / sum(weights) for weight in weights]


def noisy_largest(sizes: Sequence[int], scale: int, two_sided: bool) -> list[float]:
    """P(place j has the largest size + noise, the first among equals), summed over all values of the noise at j."""
    ends = 60 * scale
    values = np.arange(-ends if two_sided else 0, ends + 1)
    weights = np.exp(-np.abs(values) / scale)
    weights /= weights.sum()
    upto = np.concatenate([[0.0], np.cumsum(weights)])

    def below(limit: np.ndarray) -> np.ndarray:
        """P(noise <= limit)."""
        return upto[np.clip(limit - values[0] + 1, 0, len(values))]

    found = []
    for place, size in enumerate(sizes):
        total = weights.copy()
        for other, rival in enumerate(sizes):
            if other != place:
                total *= below(values + size - rival - (other < place))  # an earlier equal wins
        found.append(float(total.sum()))
    return found


def places_law(how: Chooser, scores: Sequence[int], decay: float = 0.0) -> Law:
    """The law of the places, one after another."""
    if how.name == THRESHOLD:
        chances = softmax([abs(score) / how.scale + decay * place for place, score in enumerate(scores)])
        return {(place,): chance for place, chance in enumerate(chances)}
    found: Law = {(): 1.0}
    for _ in range(how.sparsity):
        longer: Law = {}
        for chosen, chance in found.items():
            left = [place for place in range(len(scores)) if place not in chosen]
            sizes = [abs(scores[place]) for place in left]
            if how.name == ONE_SHOT:
                each = softmax([-size / how.scale for size in sizes])
            else:
                each = noisy_largest(sizes, how.scale, how.name != "permute-and-flip")
            longer |= {(*chosen, place): chance * one for place, one in zip(left, each, strict=True)}
        found = longer
    return found


@pytest.mark.parametrize("name", [THRESHOLD, *SELECTIONS])
def test_levels_of_places_by_enumeration(name: str) -> None:
    """All scores -1, 0, ..., 3 at three places, and all ways in which they move by at most 1."""
    how, worst, divergence = SMALL[name], 0.0, 0.0
    laws = {scores: places_law(how, scores) for scores in product(range(-1, 4), repeat=3)}
    for scores, law in laws.items():
        assert sum(law.values()) == pytest.approx(1, abs=1e-12)
        for move in product((-1, 0, 1), repeat=3):
            other = laws.get(tuple(np.add(scores, move).tolist()))
            if other is not None:
                losses = [math.log(law[places] / other[places]) for places in law]
                worst = max(worst, max(losses))
                squares = math.log(sum(p * math.exp(log) for p, log in zip(law.values(), losses, strict=True)))
                divergence = max(divergence, squares)  # Renyi, of order 2
    level = how.sparsity * 2 * how.moved / how.scale
    assert 0.4 * level < worst <= level * (1 + 1e-9)
    bounded = 8 if name in (THRESHOLD, ONE_SHOT) else 2
    assert divergence <= 2 * how.sparsity * (2 * how.moved / how.scale) ** 2 / bounded


@pytest.mark.parametrize("draw", [sample_discrete_laplace, sample_geometric])
def test_noise_is_the_law_and_a_shift_costs_its_level(draw: type) -> None:
    """Chi-square of 20,000 draws against the exact law; 6 sigma of its normal approximation, false alarm 1e-9."""
    scale, size = 3, 20_000
    seen = Counter(draw(scale, size, random.Random(5).getrandbits))
    values = range(-15 if draw is sample_discrete_laplace else 0, 16)
    weights = np.array([math.exp(-abs(value) / scale) for value in values])
    whole = (1 + math.exp(-1 / scale)) / (1 - math.exp(-1 / scale)) if values[0] < 0 else 1 / -math.expm1(-1 / scale)
    expected = size * weights / whole
    excess = sum((seen[value] - mean) ** 2 / mean for value, mean in zip(values, expected, strict=True))
    assert excess < len(values) + 6 * math.sqrt(2 * len(values)) + 20
    assert max(abs(np.diff(np.log(weights)))) <= 1 / scale + 1e-12


@pytest.mark.parametrize("name", [THRESHOLD, *SELECTIONS])
def test_places_are_drawn_by_their_law(name: str) -> None:
    """4,000 choices against the exact law: each frequency within 6 standard errors, false alarm 2e-9 each."""
    how, scores, runs = SMALL[name], (2, -4, 0), 4_000
    randbits = random.Random(11).getrandbits
    seen = Counter(how.choose(scores, randbits)[0] for _ in range(runs))
    law = places_law(how, scores)
    assert set(seen) <= set(law) and len(law) == (3 if name == THRESHOLD else len(list(permutations(range(3), 2))))
    for places, chance in law.items():
        assert abs(seen[places] / runs - chance) <= 6 * math.sqrt(chance * (1 - chance) / runs)


def test_values_are_those_of_the_chosen_with_noise() -> None:
    randbits = random.Random(3).getrandbits
    for name, how in SMALL.items():
        places, values = how.choose((90_000, -80_000, 7), randbits)
        if name == THRESHOLD:
            assert values == ()
        elif name == HISTOGRAM:
            assert places == (0, 1, 2) and [round(value, -4) for value in values] == [90_000, -80_000, 0]
        else:
            assert sorted(places) == [0, 1]
            assert {place: round(value, -4) for place, value in zip(places, values, strict=True)} == {
                0: 90_000,
                1: -80_000,
            }


@pytest.mark.parametrize("epsilon", ["0.01", "0.7", "4"])
@pytest.mark.parametrize("moved", [1, 3, (1 << 33) + 1])
@pytest.mark.parametrize("rounds", [1, 7])
def test_what_is_executed_keeps_the_claim_and_wastes_nothing(epsilon: str, moved: int, rounds: int) -> None:
    level = Decimal(epsilon)
    for name in CHOICES:
        pure = name in LOOKS or SELECTIONS[name].pure
        many = {"rounds": 1 if name in LOOKS else rounds, "sparsity": 1 if name in LOOKS else 5}
        how = chooser(name, level, None if pure else DELTA, moved, **many)
        spent = None if how.pure is None else many["rounds"] * how.pure
        if pure:
            assert spent is not None and spent <= Fraction(level)
            assert spent >= Fraction(level) * Fraction(99, 100) or moved < 100
        else:
            assert zcdp_delta_bound(float(many["rounds"] * how.rho), float(level)) <= 1.0001e-5
            made = shared_rounds(name, level, DELTA, 5, rounds)
            assert how.scale >= made.scale * moved > how.scale - 1 - 1e-6 * how.scale


def test_what_a_claim_does_not_allow_is_refused() -> None:
    one = Decimal(1)
    for name, delta, more, said in (
        (THRESHOLD, DELTA, {}, "no delta"),
        (HISTOGRAM, None, {"rounds": 2}, "alone under its claim"),
        (THRESHOLD, None, {"sparsity": 2}, "alone under its claim"),
        (HISTOGRAM, None, {"decay": one}, "no decay"),
        (ONE_SHOT, None, {}, "a delta"),
        ("peeling-pure", DELTA, {}, "no delta"),
        ("peeling-zcdp", DELTA, {"share": Decimal("0.5")}, "no share"),
        ("gaussian", DELTA, {}, "a selection out of"),
        (THRESHOLD, None, {"decay": -one}, "decay >= 0"),
    ):
        with pytest.raises(ValueError, match=said):
            chooser(name, one, delta, 4, **more)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="moved >= 1"):
        chooser(THRESHOLD, one, None, 0)
    with pytest.raises(ValueError, match="epsilon"):
        chooser(THRESHOLD, Decimal("NaN"), None, 1)
    with pytest.raises(ValueError, match="at least 2 scores"):
        SMALL[ONE_SHOT].choose((1,), random.Random(1).getrandbits)
    assert not Chooser(THRESHOLD, 1, 10, 19, 0).keeps(one, None, 1)
    assert Chooser(THRESHOLD, 1, 10, 20, 0).keeps(one, None, 1)
