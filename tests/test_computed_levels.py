"""The level of every registered mechanism, computed from what it executes and never above what is claimed.

Registries are iterated over: a mechanism that no computation here knows is a failure.
"""

import math
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from protocol.arms import MECHANISMS, RECORD
from protocol.channel import TOTAL, DiscreteChannel
from protocol.choice_law import CHOICE_LOCAL, SUBSET, ChoiceLaw
from protocol.choice_pairs import BITS
from protocol.mechanisms import LOCAL, channel
from protocol.mechanisms.subset_selection import SubsetChannel
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.terms import with_coin
from protocol.trust import Trust
from server.estimators import ESTIMATORS
from server.estimators.base import Evidence, Options
from server.estimators.workspace import Workspace
from server.mechanisms import CENTRAL, CentralMechanism
from server.mechanisms.standard import Perturbation, noise_of

EPSILON = tuple(map(Decimal, ("1e-9", "0.001", "0.01", "0.1", "0.5", "1", "2", "3.3", "4", "10", "20", "30", "40")))
EXACT = Context(prec=120)
SIZES = (2, 3, 4, 5, 10, 63)
MENU = "-menu"  # several levels of one mechanism: each report goes through the table of its own

Law = dict[int, Fraction]


# Local mechanisms: tables of integers


def check(laws: list[Law], epsilon: Decimal) -> None:
    """P(report | value) <= e^epsilon P(report | other) for all reports and pairs of values, exactly."""
    assert all(sum(law.values()) == 1 for law in laws)
    assert all(set(law) == set(laws[0]) and min(law.values()) > 0 for law in laws)
    worst = max(max(law[r] for law in laws) / min(law[r] for law in laws) for r in laws[0])
    growth = EXACT.exp(epsilon)  # correctly rounded at 120 digits: no ratio of tables comes as close
    assert EXACT.multiply(growth, Decimal(worst.denominator)) >= Decimal(worst.numerator)
    assert EXACT.exp(epsilon * Decimal("0.99")) <= EXACT.divide(Decimal(worst.numerator), Decimal(worst.denominator))


def of_table(table: DiscreteChannel) -> list[Law]:
    return [{s: Fraction(count, TOTAL) for s, count in enumerate(row)} for row in table.table]


def of_sets(law: SubsetChannel) -> list[Law]:
    """All orders of the others' shuffle, each draw with the number of words that lead to it."""
    found = []
    for value in range(law.choices):
        own: Counter[int] = Counter()
        for order in permutations(range(law.choices - 1), law.subset):
            weight, left = Fraction(1), list(range(law.choices - 1))
            for pick in order:
                place, m = left.index(pick), len(left)
                words = -(-((place + 1) << BITS) // m) - -(-(place << BITS) // m)
                weight *= Fraction(words, 1 << BITS)
                left.remove(pick)
            members = [1 << (value + 1 + pick) % law.choices for pick in order]
            own[sum(members)] += weight * Fraction(TOTAL - law.hit, TOTAL)  # type: ignore[assignment]
            own[sum(members[:-1]) + (1 << value)] += weight * Fraction(law.hit, TOTAL)  # type: ignore[assignment]
        found.append({report: Fraction(chance) for report, chance in own.items()})
    return found


def asked(name: str) -> list[dict[str, Decimal]]:
    """The parameters of a registered mechanism, besides epsilon."""
    needed, _ = LOCAL[name]
    assert needed <= {"epsilon", "outcomes"}, f"{name}: say here what its parameters take"
    return [{"outcomes": Decimal(size)} for size in SIZES] if "outcomes" in needed else [{}]


@pytest.mark.parametrize("epsilon", EPSILON, ids=str)
@pytest.mark.parametrize("name", sorted(LOCAL))
def test_tables_keep_their_level(name: str, epsilon: Decimal) -> None:
    for parameters in asked(name):
        table = channel(name, {"epsilon": epsilon, **parameters})
        check(of_table(table), epsilon)
        assert Decimal("0.99") * epsilon <= table.level <= epsilon
        if len(table.table) == 2:
            check(of_table(with_coin(table)), epsilon)


@pytest.mark.parametrize("epsilon", EPSILON, ids=str)
@pytest.mark.parametrize("name", CHOICE_LOCAL)
def test_laws_of_choices_keep_their_level(name: str, epsilon: Decimal) -> None:
    study = b"" if name in ("k-randomized-response", SUBSET) else b"s" * 32
    law = ChoiceLaw(name, epsilon, SIZES, study)
    for size in SIZES if name != SUBSET else (2, 3, 4, 5):
        check(of_sets(law.subsets(size)) if name == SUBSET else of_table(law.table(size)), epsilon)
    assert Decimal("0.99") * epsilon <= law.level <= epsilon


def test_no_local_mechanism_is_left_out() -> None:
    for (trust, kind), names in MECHANISMS.items():
        if trust is Trust.LOCAL:
            known = set(LOCAL) if kind == "pairwise" else set(CHOICE_LOCAL)
            assert {name.removesuffix(MENU) for name in names} <= known, f"{kind}: teach this file to compute it"


# Central mechanisms: what comes out of one in one dimension, on real features and with the ball

X = np.array([1.3, -0.7, 2.0, 0.4, -1.1])
COUNT = 400  # rows of each x: enough for the noise of small epsilon to leave the estimate inside the ball
WINS = np.array([260.0, 170.0, 240.0, 210.0, 180.0])  # labels 1 among them
CLAIMS = [("0.1", "1e-5"), ("0.5", "1e-3"), ("1", "1e-5"), ("4", "1e-2"), ("12", "1e-4")]
POINTS = 40_001


def weights_of(mechanism: CentralMechanism) -> NDArray[np.float64]:
    """In one dimension the map of shaped noise is a scale, which its inverse takes back: rows are clipped at it."""
    if not mechanism.clipped:
        return np.ones(len(X))
    return np.minimum(1.0, math.sqrt(float((X * X).mean())) / np.abs(X))


def score(u: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """n A'(u): the noisy sum of (y - 1/2) v whose minimiser is u."""
    return np.asarray((COUNT * weights * X) @ (expit(np.outer(X, u)) - 0.5))


def divergence(weights: NDArray[np.float64], stddev: float, row: int, epsilon: float, bound: float) -> float:
    """Hockey-stick divergence of the estimate on [-bound, bound] for two labels of a row, by quadrature and atoms."""
    total = float((weights * X) @ (WINS - COUNT / 2))
    totals = [total, total - float(weights[row] * X[row])]
    wide = np.linspace(-bound, bound, 4001)  # where the noise leads, and where the ball ends
    ends = np.interp([min(totals) - 12 * stddev, max(totals) + 12 * stddev], score(wide, weights), wide)
    u = np.linspace(*ends, POINTS)
    place, slope = score(u, weights), (COUNT * weights * X * X) @ (expit(np.outer(X, u)) * expit(-np.outer(X, u)))
    inside = [np.exp(-(((place - t) / stddev) ** 2) / 2) / (stddev * math.sqrt(2 * math.pi)) for t in totals]
    atoms = [(ndtr((place[0] - t) / stddev), ndtr((t - place[-1]) / stddev)) for t in totals]
    worst = 0.0
    for p, q in ((0, 1), (1, 0)):
        gap = np.maximum(inside[p] - math.exp(epsilon) * inside[q], 0.0) * slope
        outside = sum(max(0.0, atoms[p][end] - math.exp(epsilon) * atoms[q][end]) for end in (0, 1))
        worst = max(worst, float(np.trapezoid(gap, u)) + outside)
    return worst


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("name", sorted(CENTRAL))
def test_estimates_keep_the_claim_in_one_dimension(name: str, epsilon: str, delta: str) -> None:
    """For every label that may differ, with a narrow ball and a wide one; and analytic noise has nothing to spare.

    Quadrature errs by 1e-5 of delta and less.
    """
    mechanism = CENTRAL[name]
    weights = weights_of(mechanism)
    sensitivity = float(np.abs(weights * X).max())
    stddev = mechanism.noise_multiplier(Decimal(epsilon), Decimal(delta)) * sensitivity
    for bound in (0.3, 12.0):
        found = max(divergence(weights, stddev, row, float(epsilon), bound) for row in range(len(X)))
        assert found <= float(delta) * (1 + 1e-5)
    less = max(divergence(weights, 0.97 * stddev, row, float(epsilon), 12.0) for row in range(len(X)))
    assert mechanism.paper or found > 0.99 * float(delta)
    assert mechanism.paper or less > float(delta)


@pytest.mark.parametrize("name", sorted(CENTRAL))
def test_the_law_above_is_that_of_the_estimator(name: str) -> None:
    weights = weights_of(CENTRAL[name])
    for total in (-140.0, 2.0, 300.0, 9000.0):
        evidence = Evidence(
            np.repeat(weights * X, COUNT)[:, None], np.repeat(weights, COUNT), None, np.array([total]), 1.0, 0.0, 1.0
        )
        (u,) = ESTIMATORS["mle"](Workspace(evidence), Options(3.0)).u
        (inside,) = score(np.array([u]), weights)
        assert abs(inside - total) < 1e-5 if abs(u) < 3.0 - 1e-9 else np.sign(total - inside) == np.sign(u)


# Central mechanisms for whole records: only the minimiser of a perturbed objective leaves the curator

RADIUS, RECORDS = 2.0, COUNT * len(X) + 1
ENDS = [(x, y) for x in (-RADIUS, -RADIUS / 2, 0.0, RADIUS) for y in (0, 1)]
Atoms = tuple[NDArray[np.float64], NDArray[np.float64]]


def record_law(noise: Perturbation, record: tuple[float, int], u: NDArray[np.float64]) -> Atoms:
    """Density of the minimiser on a grid, and what lies beyond its two ends: the b that leads to u is Gaussian."""
    x, y = record
    own, chance = expit(x * u), expit(np.outer(X, u))
    b = COUNT * X @ chance - X @ WINS + x * (own - y) + RECORDS * noise.ridge * u
    slope = (COUNT * X * X) @ (chance * (1 - chance)) + x * x * own * (1 - own) + RECORDS * noise.ridge
    density = np.exp(-((b / noise.stddev) ** 2) / 2) / (noise.stddev * math.sqrt(2 * math.pi)) * slope
    return density, np.array([ndtr(b[0] / noise.stddev), ndtr(-b[-1] / noise.stddev)])


def record_divergence(noise: Perturbation, epsilon: float, bound: float) -> float:
    """The largest over pairs of last records, among 2,000 others; with atoms at the ends of the ball."""
    u, worst = np.linspace(-bound, bound, POINTS), 0.0
    laws = [record_law(noise, end, u) for end in ENDS]
    for (one, ends), (two, others) in permutations(laws, 2):
        body = float(np.trapezoid(np.maximum(one - math.exp(epsilon) * two, 0.0), u))
        worst = max(worst, body + float(np.maximum(ends - math.exp(epsilon) * others, 0.0).sum()))
    return worst


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS[:4])
@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("name", RECORD)
def test_estimates_keep_the_claim_for_records(name: str, tight: bool, epsilon: str, delta: str) -> None:
    """The objective's part by quadrature, narrow ball and wide; noise on the output, where there is any, on top."""
    levels = (Decimal(epsilon), Decimal(delta))
    claim = {"epsilon": levels[0], "delta": levels[1], "radius": Decimal(str(RADIUS))}
    mechanism = Mechanism.of(name, **claim, **({"tight": Decimal(1)} if tight else {}))
    problem = Problem(1, "gaussian", False, Decimal(3))
    task = Task(b"s" * 32, Trust.CENTRAL, Unit.RECORD, problem, (mechanism,), RECORDS, *levels, 0, 1, exponent=-40)
    noise, level, left = noise_of(task, mechanism), float(epsilon), float(delta)
    if not isinstance(noise, Perturbation):  # minimisers of neighbours, each off by what its gradient allows
        mu = 2 * noise.tolerance / noise.objective.ridge / noise.output
        level, outer = 0.99 * level, 0.01 * level
        left -= float(ndtr(mu / 2 - outer / mu) - math.exp(outer) * ndtr(-mu / 2 - outer / mu))
        noise = noise.objective
    found = [record_divergence(noise, level, bound) for bound in (0.3, 3.0)]
    assert max(found) <= left * (1 + 1e-5)
    if tight:  # nothing is vacuous here: a fifth of the noise would break the claim
        less = Perturbation(noise.stddev / 5, noise.ridge)
        assert record_divergence(less, level, 3.0) > left


def test_no_central_mechanism_is_left_out() -> None:
    names = {name for (trust, _), names in MECHANISMS.items() if trust is Trust.CENTRAL for name in names}
    assert names == set(CENTRAL) | set(RECORD), "teach this file to compute it"
