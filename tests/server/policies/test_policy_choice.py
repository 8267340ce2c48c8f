"""Policies against the obvious way to find them, and the theorems about what they lose."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.policies import PESSIMISTIC
from server.policies.ball import lowest_in_ball
from server.policies.choice import Bandit, greedy, pessimistic, pessimistic_by_state, pessimistic_in_ball
from server.policies.region import Region


def drawn(seed: int, states: int = 3, actions: int = 3, p: int = 4) -> tuple[Bandit, Region, np.random.Generator]:
    """A bandit with features in the unit ball, and a region whose centre lies in the ball of radius 1."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(states, actions, p))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=2, keepdims=True))
    chances = rng.dirichlet(np.ones(states))
    root = rng.normal(size=(p, p)) * np.exp(rng.uniform(-2, 1, p))
    centre = rng.normal(size=p)
    centre *= rng.uniform() / np.linalg.norm(centre)
    region = Region(centre, root @ root.T + 0.01 * np.eye(p), float(np.exp(rng.uniform(-3, 1))))
    return Bandit(features, chances, features.mean(axis=1) * rng.integers(0, 2)), region, rng


def every(bandit: Bandit) -> list[np.ndarray]:
    states, actions = bandit.shape
    return [np.array(policy) for policy in itertools.product(range(actions), repeat=states)]


def test_policies_are_numbered_in_the_order_of_their_means() -> None:
    bandit, _, _ = drawn(1)
    for number, actions in enumerate(every(bandit)):
        np.testing.assert_array_equal(bandit.policy(number), actions)
        np.testing.assert_allclose(bandit.all_means[number], bandit.means(actions), atol=1e-15)


@given(st.integers(0, 10_000))
def test_greedy_is_the_best_policy_for_its_parameter(seed: int) -> None:
    bandit, region, _ = drawn(seed)
    u = region.centre
    assert bandit.value(greedy(bandit, u), u) == pytest.approx(max(bandit.value(other, u) for other in every(bandit)))


@given(st.integers(0, 10_000))
def test_the_closed_form_against_every_policy(seed: int) -> None:
    bandit, region, _ = drawn(seed)
    inverse = np.linalg.inv(region.precision)

    def sure(actions: np.ndarray) -> float:
        w = bandit.means(actions)
        return float(w @ region.centre - region.radius * math.sqrt(max(0.0, w @ inverse @ w)))

    assert sure(pessimistic(bandit, region, 1.0)) == pytest.approx(max(map(sure, every(bandit))), abs=1e-9)


@given(st.integers(0, 10_000))
def test_cutting_planes_against_every_policy(seed: int) -> None:
    bandit, region, _ = drawn(seed)

    def sure(actions: np.ndarray) -> float:
        return lowest_in_ball(region, 1.0, bandit.means(actions)).value

    found = pessimistic_in_ball(bandit, region, 1.0)
    assert sure(found) == pytest.approx(max(map(sure, every(bandit))), abs=1e-9)


@given(st.integers(0, 10_000))
def test_by_state_against_every_action(seed: int) -> None:
    bandit, region, _ = drawn(seed)
    inverse = np.linalg.inv(region.precision)
    for state, action in enumerate(pessimistic_by_state(bandit, region, 1.0)):
        rows = bandit.features[state] - bandit.reference[state]
        values = rows @ region.centre - region.radius * np.sqrt(((rows @ inverse) * rows).sum(axis=1))
        assert values[action] == pytest.approx(values.max(), abs=1e-9)


@given(st.integers(0, 10_000))
def test_what_policies_lose_is_bounded(seed: int) -> None:
    """The theorems, for any parameter in the region and the ball; features have norm 1 at most."""
    bandit, region, rng = drawn(seed)
    step = rng.normal(size=4)
    step *= region.radius * rng.uniform() / math.sqrt(step @ region.precision @ step)
    true = region.centre + step
    if np.linalg.norm(true) > 1.0:  # towards the centre, which lies in both
        low = lowest_in_ball(region, 1.0, rng.normal(size=4)).u
        true = low * min(1.0, 1.0 / np.linalg.norm(low)) * (1 - 1e-9) + region.centre * 1e-9
    best = greedy(bandit, true)

    def lost(actions: np.ndarray) -> float:
        return bandit.value(best, true) - bandit.value(actions, true)

    assert lost(greedy(bandit, region.centre)) <= 2 * np.linalg.norm(true - region.centre) + 1e-12
    width = 2 * float(region.width(bandit.means(best)))
    assert lost(pessimistic(bandit, region, 1.0)) <= width + 1e-9
    assert lost(pessimistic_in_ball(bandit, region, 1.0)) <= width + 1e-9
    rows = bandit.shifted[np.arange(3), best]
    assert lost(pessimistic_by_state(bandit, region, 1.0)) <= 2 * bandit.chances @ region.width(rows) + 1e-9


def test_a_region_that_is_a_point_leaves_nothing_to_fear() -> None:
    for seed in range(20):
        bandit, region, _ = drawn(seed)
        point = Region(region.centre, region.precision, 1e-12)
        for choose in PESSIMISTIC.values():
            np.testing.assert_array_equal(choose(bandit, point, 1.0), greedy(bandit, region.centre))


def test_many_states_are_for_the_policy_that_looks_at_each_alone() -> None:
    bandit, region, _ = drawn(5, states=30)
    with pytest.raises(ValueError, match=r"3\^30: use pessimistic-by-state"):
        pessimistic(bandit, region, 1.0)
    assert pessimistic_by_state(bandit, region, 1.0).shape == (30,)


@pytest.mark.parametrize(
    ("features", "chances", "reference", "message"),
    [
        (np.zeros((2, 3)), np.full(2, 0.5), np.zeros((2, 3)), "features of shape"),
        (np.zeros((2, 3, 1)), np.full(3, 1 / 3), np.zeros((2, 1)), "2 chances"),
        (np.zeros((2, 3, 1)), np.array([0.7, 0.7]), np.zeros((2, 1)), "add up to 1"),
        (np.full((2, 3, 1), np.nan), np.full(2, 0.5), np.zeros((2, 1)), "finite"),
    ],
)
def test_a_bandit_that_is_none_is_refused(
    features: np.ndarray, chances: np.ndarray, reference: np.ndarray, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Bandit(features, chances, reference)
