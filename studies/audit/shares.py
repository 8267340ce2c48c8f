"""Sums with noise in shares: what a server, and members that it colludes with, learn of the labels of the others.

Masks hide all but the sum, and colluders know what they added themselves. So what is looked at is the sum of what the
honest ones add, modulo M, made by the client from the server's own task.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from client.choice import Choice
from client.draws import AddressedDraws
from client.payloads import Asked
from protocol.arms import Arm
from protocol.coins import Words
from protocol.messages import Coins, Mechanism, Task
from protocol.noise.accounting import Shares, least_variance
from protocol.noise.table import table
from protocol.noise.terms import sensitivity_squared, terms_of
from protocol.problem import Problem
from protocol.secure.masks import centred
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.tasks import offers
from studies.audit.coins import AuditCoins
from studies.audit.exact import Law
from studies.audit.given import GivenLabels
from studies.audit.subject import Claim, Floats, Subject

SEED = 5  # of public features
DELTA = Decimal("1e-5")
ROWS, HONEST = 8, Decimal("0.75")
SMALL = 6  # grid units that a label moves the sum by, where the law of it is worked out
_LABELS = {"all 0": (0,) * ROWS, "first 1": (1, *(0,) * (ROWS - 1))}
PACE = 0.2
_PLAYED = "six honest rows of eight, one a member: client.payloads:Asked and tables of protocol.noise"
_EXACT = "one member with all rows: client.payloads:Asked on all classes of coins"


def of_members(law: str, epsilon: Decimal) -> Subject:
    """Eight rows of three coordinates, of whom the task counts on six, and no more of these are honest."""
    problem = Problem(4, "gaussian", True, Decimal(3))
    arm = Arm(Trust.DISTRIBUTED, law, "mle", (("honest", HONEST), ("radius", Decimal("0.5"))))  # all are clipped
    task = _task(problem, arm, epsilon)
    shares = terms_of(task, task.menu[0]).shares
    inputs = {name: (_without_noise(task, labels), shares) for name, labels in _LABELS.items()}
    claim = Claim(epsilon, DELTA, "label")
    pairs = (("all 0", "first 1"),)
    return Subject(f"distributed/{law}", claim, inputs, pairs, _PLAYED, draw=drawn, pace=PACE, normal=True)


def of_one(law: str, epsilon: Decimal) -> Subject:
    """One coordinate on a grid so coarse that the law is a small table: every class of coins, and integers as weights.

    One member holds both rows, so that its one draw is all of the noise: the least that is promised.
    """
    problem = Problem(1, "values", False, Decimal(3), np.ones((2, 1)))
    task = _coarse(_task(problem, Arm(Trust.DISTRIBUTED, law, "mle", (("honest", Decimal(1)),)), epsilon), law)
    names = {"0": (0, 0), "1": (1, 0)}

    def laws() -> Mapping[str, Law]:
        return {name: _law(task, labels) for name, labels in names.items()}

    return Subject(f"distributed/{law}/exact", Claim(epsilon, DELTA, "label"), names, (("0", "1"),), _EXACT, laws=laws)


def _task(problem: Problem, arm: Arm, epsilon: Decimal) -> Task:
    n = ROWS if problem.design is None else len(problem.design)
    study = Study("audit", SEED, 1, problem, Grid((n,), (epsilon,), (DELTA,)), (arm,))
    (offer,) = offers(study, Cell(n, 0, 1))
    assert offer.task is not None
    return offer.task


def _coarse(task: Task, law: str) -> Task:
    """The same claim with a label that moves the sum by `SMALL` grid units, and the least noise that keeps it."""
    assert task.epsilon is not None and task.exponent is not None
    exponent, own = task.exponent, dict(task.menu[0].parameters)
    while sensitivity_squared(task.problem, own["radius"], exponent) > SMALL**2:
        exponent += 1
    squared = sensitivity_squared(task.problem, own["radius"], exponent)
    variance = least_variance(law, task.epsilon, DELTA, squared, 1, int(own["honest"]))
    own["variance"] = Decimal(variance.numerator) / Decimal(variance.denominator)
    return replace(task, exponent=exponent, menu=(Mechanism.of(law, **own),))


def _asked(task: Task, labels: tuple[int, ...], draws: AddressedDraws) -> Asked:
    choice = Choice(task.menu[0], radius=terms_of(task, task.menu[0]).radius)
    rows = np.arange(task.n)
    return Asked(task, choice, rows, GivenLabels(labels), FeatureStore(SEED), lambda _: draws)


def _opened(task: Task, asked: Asked) -> NDArray[np.int64]:
    """What the client adds, as an integer next to 0, (p,)."""
    return centred(asked.unmasked().values[0].astype(np.uint64), task.modulus)


def _without_noise(task: Task, labels: tuple[int, ...]) -> tuple[int, ...]:
    """The sum of the rows: what the client adds, less the noise that it adds to labels of 0."""
    coins = AddressedDraws(SEED, task.n, 0)
    with_labels, zeros = (_opened(task, _asked(task, each, coins)) for each in (labels, (0,) * task.n))
    return tuple((with_labels - zeros).tolist())


def drawn(held: tuple[tuple[int, ...], Shares], count: int, coins: AuditCoins) -> Floats:
    """The opened sum less what colluders added: of six rows with a draw each."""
    exact, shares = held
    words = coins.words(count * shares.honest, 2 * shares.dimension)
    noise = table(shares.law, shares.share).draw(words.reshape(count, shares.honest, shares.dimension, 2))
    found: Floats = np.array(exact, dtype=np.float64) + noise.sum(axis=1)
    return found


class _Coins(AddressedDraws):
    """Two words that are given, in the place of the system's."""

    coins = Coins.OS

    def __init__(self, given: Words) -> None:
        super().__init__(SEED, 1, 0)
        self._given = given

    def vectors(self, rows: NDArray[np.int64], count: int) -> Words:
        """These words."""
        return self._given.reshape(1, count)


def _law(task: Task, labels: tuple[int, ...]) -> Law:
    """The law of what one member adds, in units of 2^-128: both ends of every class of coins are tried."""
    terms = terms_of(task, task.menu[0])
    known = table(terms.shares.law, terms.shares.share * task.n)
    bounds = [(int(high) << 64) + int(low) for high, low in zip(known.high, known.low, strict=True)]
    edges, found = [0, *(bound for bound in bounds if bound), 1 << 128], dict[object, int]()
    for first, after in pairwise(edges):
        if first == after:
            continue
        ends = {_of_words(task, labels, value) for value in (first, after - 1)}
        if len(ends) != 1:
            raise ValueError("expected one outcome of a class of coins, got several")
        (value,) = ends
        found[value] = found.get(value, 0) + after - first
    return found


def _of_words(task: Task, labels: tuple[int, ...], value: int) -> int:
    given = np.array(divmod(value, 1 << 64), dtype=np.uint64)
    return int(_opened(task, _asked(task, labels, _Coins(given)))[0])
