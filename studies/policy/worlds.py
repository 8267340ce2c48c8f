"""Worlds: contextual bandits drawn from a law, and the pairs of actions that somebody chose to ask about.

A world is an ordinary study whose features are given by value, so every trust model and runtime plays it as it is.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Floats, Stream, normal, uniform, words
from protocol.features import norms
from protocol.problem import Problem
from server.policies.choice import Actions, Bandit, greedy
from studies.load import Loaded, assemble
from studies.moments import dot
from studies.policy.study_file import Law, PolicyStudy
from studies.truth import read_theta

# Rounds of the sequence (seed of a world, PROBLEM, n = 0): no ordinary study has n = 0.
_FEATURES, _STATES, _PAIRS, _SIDES = range(4)
Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class World:
    """One bandit, the pairs shown there, and the study that learns from them.

    best (states,): the best actions; shares (states, actions): how often each action is among those shown, adding up
    to 1 in each state.
    """

    shown: str
    number: int
    bandit: Bandit
    best: Actions
    shares: Floats = field(repr=False)
    loaded: Loaded = field(repr=False)

    @property
    def name(self) -> str:
        """A name for folders."""
        return f"{self.shown}-{self.number:03d}"


def worlds(study: PolicyStudy) -> Iterator[World]:
    """All worlds of a study; those of one number have one bandit and one seed, whoever chose the pairs.

    Raises StudyError for a truth, a grid or an arm that an ordinary study would refuse.
    """
    for shown in study.law.shown:
        for number in range(study.law.worlds):
            yield world(study, shown, number)


def world(study: PolicyStudy, shown: str, number: int) -> World:
    """One world of a study. Raises StudyError as `worlds` does."""
    law, seed = study.law, world_seed(study.seed, number)
    features = bandit_features(law, seed)
    theta = read_theta(study.theta, Problem(law.dimension, "gaussian", False, study.bound))
    rewards = dot(features.reshape(-1, law.dimension), theta).reshape(law.states, law.actions)
    order = np.argsort(-rewards, axis=1, kind="stable")
    pairs, chances = pair_chances(law, shown, order)
    design = draw_rows(law, seed, features, pairs, chances, study.most_rows)
    problem = Problem(law.dimension, "values", False, study.bound, design)
    head = {"name": f"{study.name}, {shown} {number}", "seed": seed}
    content = {**study.content, "problem": {}, "study": {**study.content["study"], **head}}
    loaded = assemble(content, problem, study.theta)
    even = np.full(law.states, 1.0 / law.states)
    shares = _shares(law.actions, pairs, chances)
    bandit = Bandit(features, even, _reference(study.reference, features, shares))
    return World(shown, number, bandit, greedy(bandit, theta), shares, loaded)


def world_seed(seed: int, number: int) -> int:
    """A seed below 2^128 for every world: two worlds share no coin."""
    return int.from_bytes(hashlib.sha256(f"halftruth policy world {seed} {number}".encode()).digest()[:16])


def bandit_features(law: Law, seed: int) -> Floats:
    """phi(s, a), shape (states, actions, dimension): uniform on the sphere of radius `length`."""
    count = law.states * law.actions
    address = Address(seed, Stream.PROBLEM, round=_FEATURES)
    points = normal(words(address, 0, count * law.dimension)).reshape(count, law.dimension)
    points *= (law.length / norms(points))[:, None]
    return points.reshape(law.states, law.actions, law.dimension)


def pair_chances(law: Law, shown: str, order: Pairs) -> tuple[Pairs, Floats]:
    """The behaviour policy mu: pairs of two actions, shape (m, 2), and their chances in each state, (states, m).

    `order` (states, actions): the actions of each state, the best first.
    """
    pairs = np.array(list(combinations(range(law.actions), 2)))
    chances = np.full((law.states, len(pairs)), 1.0 / len(pairs))
    for state, row in enumerate(order if shown != "uniform" else ()):
        has_best, has_second = (pairs == row[0]).any(axis=1), (pairs == row[1]).any(axis=1)
        usual = ~has_best if shown == "rarely-best" else has_best & has_second
        chances[state] = law.rare / len(pairs) + (1.0 - law.rare) * usual / usual.sum()
    return pairs, chances


def draw_rows(law: Law, seed: int, features: Floats, pairs: Pairs, chances: Floats, count: int) -> Floats:
    """x = phi(s, second) - phi(s, first) of `count` rows: s ~ rho, a pair ~ mu(. | s), its order by a fair coin."""

    def coins(round_: int) -> Floats:
        return uniform(words(Address(seed, Stream.PROBLEM, round=round_), 0, count))

    states = np.minimum((coins(_STATES) * law.states).astype(np.int64), law.states - 1)
    below = np.cumsum(chances, axis=1)[states, :-1]  # the last pair gets what is left
    chosen = pairs[(coins(_PAIRS)[:, None] >= below).sum(axis=1)]
    swapped = coins(_SIDES) < 0.5
    first = np.where(swapped, chosen[:, 1], chosen[:, 0])
    second = np.where(swapped, chosen[:, 0], chosen[:, 1])
    return np.ascontiguousarray(features[states, second] - features[states, first])


def _shares(actions: int, pairs: Pairs, chances: Floats) -> Floats:
    shares = np.zeros((len(chances), actions))
    for pair, chance in zip(pairs, chances.T, strict=True):
        shares[:, pair] += 0.5 * chance[:, None]
    return shares


def _reference(name: str, features: Floats, shares: Floats) -> Floats:
    """nu_s, shape (states, dimension): the mean feature of what is shown, or of all actions, or nothing."""
    weights = {"shown": shares, "even": np.full(shares.shape, 1.0 / shares.shape[1]), "zero": np.zeros(shares.shape)}
    mean: Floats = (weights[name][:, :, None] * features).sum(axis=1)
    return mean
