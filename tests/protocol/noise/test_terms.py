"""Terms of tasks whose noise comes in shares: what a member checks before it answers, and windows that sums fit in."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from protocol.arms import DISTRIBUTED, Arm
from protocol.features import row_bound
from protocol.messages import Mechanism, Runs, Task, Ties
from protocol.noise.accounting import least_variance
from protocol.noise.terms import FINE, least_modulus, sensitivity_squared, terms_of
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.secure.masks import least_rows
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Cell, Grid, Study
from protocol.terms import row_exponent
from protocol.trust import Trust
from server.choice_designs import ChoiceDesigns
from server.designs import Designs
from server.mechanisms.sensitivity import largest_squared_norm
from server.task_shares import about
from server.tasks import for_labelers, offers, with_ties

PAIRS = Problem(5, "gaussian", sum_zero=True, bound=Decimal(3))
CHOICES = Problem(4, "gaussian", sum_zero=True, bound=Decimal(3), kind="choice", model="plackett-luce", choices=3)
SHAPED = Problem(3, "gaussian", False, None, scales=(Decimal(9), Decimal(1), Decimal(1)))


def task_of(problem: Problem = PAIRS, law: str = "skellam", n: int = 500, epsilon: str = "1", **options: Any) -> Task:
    """The task that a study asks."""
    arm = Arm(Trust.DISTRIBUTED, law, "mle", tuple(sorted(options.items())))
    grid = Grid((n,), (Decimal(epsilon),), (Decimal("0.00001"),))
    study = Study("shares", 3, 1, problem, grid, (arm,))
    (offer,) = offers(study, Cell(n, 0, 1))
    assert offer.task is not None
    return offer.task


def changed(task: Task, **parameters: Decimal) -> Task:
    (item,) = task.menu
    return replace(task, menu=(Mechanism.of(item.name, **(dict(item.parameters) | parameters)),))


@pytest.mark.parametrize("law", DISTRIBUTED)
@pytest.mark.parametrize("problem", [PAIRS, CHOICES, SHAPED])
@pytest.mark.parametrize("epsilon", ["0.05", "1", "10"])
def test_a_study_s_task_keeps_its_terms(law: str, problem: Problem, epsilon: str) -> None:
    task = task_of(problem, law, epsilon=epsilon)
    terms = terms_of(task, task.menu[0])
    assert task.exponent is not None and (task.map is not None) == (problem is SHAPED)
    assert terms.shares.honest == 450  # nine rows of ten where an arm does not say
    assert 2.0 ** (2 * FINE) <= terms.shares.variance <= 2.0 ** (2 * FINE + 2.1)
    place = (task.exponent, terms.radius)
    if problem.kind == "choice":
        squared = ChoiceDesigns(FeatureStore(3), problem, 500, 0).get(*place).sensitivity_squared
    else:
        rows = Designs(FeatureStore(3), 3, problem, 500, 0).get(*place, None, None, task.map).rows
        squared = largest_squared_norm(rows, task.exponent)
    assert squared <= terms.sensitivity_squared <= 1.3 * squared + 40  # the label that moves the sum farthest


def test_all_rows_may_be_counted_on_and_a_radius_given() -> None:
    task = task_of(honest=Decimal(1), radius=Decimal("0.5"))
    terms = terms_of(task, task.menu[0])
    assert terms.shares.honest == 500 and terms.radius == 0.5
    assert least_rows(task) == least_rows(task_of()) == 500  # everybody who was asked, where an arm does not say
    with pytest.raises(StudyError, match="distributed task at n = 500"):
        task_of(radius=Decimal("1e-63"), epsilon="1e-9")


@pytest.mark.parametrize(("options", "counted"), [({}, (337, 375)), ({"honest": Decimal("0.6")}, (300, 375))])
def test_of_those_who_stay_some_are_honest(options: dict[str, Any], counted: tuple[int, int]) -> None:
    """Nine tenths of the rows that stay where an arm does not say; a row's noise follows the honest ones alone."""
    task = task_of(survivors=Decimal("0.75"), **options)
    terms = terms_of(task, task.menu[0])
    assert (terms.shares.honest, least_rows(task)) == counted
    fewer = changed(task, least=Decimal(counted[0]))
    assert terms.shares == terms_of(fewer, fewer.menu[0]).shares


@pytest.mark.parametrize("law", DISTRIBUTED)
def test_less_noise_than_the_claim_needs_is_refused(law: str) -> None:
    task = task_of(law=law)
    own = dict(task.menu[0].parameters)
    less = least_variance(
        law, Decimal("1.01"), Decimal("0.00001"), terms_of(task, task.menu[0]).sensitivity_squared, 4, 450
    )
    for wrong in (
        changed(task, variance=Decimal(less.numerator) / Decimal(less.denominator)),
        changed(task, radius=own["radius"] * Decimal("1.01")),
        replace(changed(task, epsilon=Decimal("0.99")), epsilon=Decimal("0.99")),
        replace(changed(task, delta=Decimal("0.000009")), delta=Decimal("0.000009")),
        replace(task, exponent=(task.exponent or 0) - 1),
    ):
        with pytest.raises(ValueError, match="variance"):
            terms_of(wrong, wrong.menu[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("honest", "0"),
        ("honest", "501"),
        ("honest", "450.5"),
        ("honest", "NaN"),
        ("least", "449"),
        ("least", "500.5"),
        ("least", "501"),
        ("least", "Infinity"),
        ("radius", "0"),
        ("radius", "-1"),
        ("variance", "0"),
        ("variance", "Infinity"),
        ("variance", "NaN"),
        ("epsilon", "2"),
        ("delta", "0.0001"),
        ("rows", "1"),
    ],
)
def test_parameters_out_of_range_are_refused(name: str, value: str) -> None:
    wrong = changed(task_of(), **{name: Decimal(value)})
    with pytest.raises(ValueError, match="expected"):
        terms_of(wrong, wrong.menu[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"modulus": 0},
        {"modulus": 3 << 20},
        {"modulus": 1 << 54},
        {"rows": Runs.of(range(499))},
        {"unit": Unit.LABELER},
        {"cap": 2},
        {"unit": Unit.LABELER, "cap": 2},
        {"unit": Unit.RECORD},
        {"trust": Trust.CENTRAL},
        {"exponent": None},
        {"exponent": -901},
        {"groups": np.zeros(500, dtype=np.int32)},
        {"menu": (Mechanism.of("gaussian-statistic-clipped"),)},
    ],
)
def test_other_tasks_are_refused(changes: dict[str, Any]) -> None:
    wrong = replace(task_of(), **changes)
    with pytest.raises(ValueError, match="expected"):
        terms_of(wrong, wrong.menu[0])


@pytest.mark.parametrize("problem", [PAIRS, CHOICES])
def test_no_sum_leaves_its_window(problem: Problem) -> None:
    """Every row at its bound, all of one sign, and noise of 10 standard deviations: far below half a modulus."""
    task = task_of(problem)
    terms = terms_of(task, task.menu[0])
    most = int(row_bound(problem, terms.radius) / 2.0 ** (task.exponent or 0))
    farthest = 500 * most + 10 * float(terms.shares.share * 500) ** 0.5
    assert farthest < task.modulus / 2 <= 4 * farthest
    assert least_modulus(500, terms.largest, terms.shares.share * 500, 4) == task.modulus


def test_the_window_grows_with_what_is_in_it() -> None:
    found = [least_modulus(n, 1000, Fraction(n * 1000), 4) for n in (1, 1000, 10**6)]
    assert found == sorted(set(found)) and all(value & (value - 1) == 0 for value in found)
    with pytest.raises(ValueError, match="fewer rows"):
        least_modulus(1 << 40, 1 << 30, Fraction(1), 4)


def test_choices_count_the_rounding_of_both_ends() -> None:
    """Differences of truncated rows are longer than rows by less than one unit a coordinate."""
    radius, exponent = Decimal(2), -8
    assert sensitivity_squared(PAIRS, radius, exponent) == 512**2 + 1  # a little above: weights round
    assert sensitivity_squared(CHOICES, radius, exponent) >= (512 + np.sqrt(3)) ** 2


ROWS = Runs.of(range(0, 500, 5))
HONEST = Arm(Trust.DISTRIBUTED, "skellam", "mle", (("honest", Decimal("0.8")),))


@pytest.mark.parametrize(
    ("problem", "ties", "cap"), [(PAIRS, Ties.HALF, 3), (PAIRS, Ties.DROP, 1), (SHAPED, Ties.COIN, 3)]
)
def test_noise_is_for_the_rows_the_labels_and_the_ties_that_are_asked(problem: Problem, ties: Ties, cap: int) -> None:
    """All labels of the labeler whose rows are longest are turned over, half wins too: the sum moves within the terms.

    It moves so far: labelers whose rows are all alike are what the terms are for.
    """
    task = about(for_labelers(with_ties(task_of(problem), ties), cap, np.zeros(500, dtype=np.int32)), HONEST, ROWS)
    terms = terms_of(task, task.menu[0])
    assert (terms.shares.honest, least_rows(task), task.groups, task.cap) == (80, 100, None, cap)
    grid, unit = row_exponent(task), 2.0 ** (task.exponent or 0)
    assert task.exponent is not None and grid - task.exponent == (ties is Ties.HALF)
    rows = Designs(FeatureStore(3), 3, problem, 500, 0).get(grid, terms.radius, None, None, task.map).rows / unit
    assert (rows == np.rint(rows)).all()
    if ties is Ties.HALF:
        assert (rows / 2 == np.rint(rows / 2)).all(), "half a row is a whole number of units"
    longest = rows[np.argmax((rows**2).sum(axis=1))]
    for labels in np.stack(np.meshgrid(*[[-1.0, -0.5, 0.0, 0.5, 1.0]] * cap), axis=-1).reshape(-1, cap):
        assert ((labels.sum() * longest) ** 2).sum() <= terms.sensitivity_squared
    assert ((cap * longest) ** 2).sum() >= 0.99 * terms.sensitivity_squared
    assert 2.0**FINE <= float(terms.shares.variance) ** 0.5 <= 2.0 ** (FINE + 1.1)
    assert 2 * (100 * np.abs(rows).max() + 10 * float(terms.shares.share * 100) ** 0.5) < task.modulus


def test_noise_for_one_label_is_not_enough_for_a_labeler_s() -> None:
    one, labelers = task_of(), for_labelers(task_of(), 3, np.zeros(500, dtype=np.int32))
    with pytest.raises(ValueError, match="expected a variance"):
        terms_of(labelers, one.menu[0])
    three = about(labelers, HONEST, ROWS)
    assert terms_of(three, three.menu[0]).sensitivity_squared <= 9 * 1.01 * 4.0**FINE
    with pytest.raises(ValueError, match="expected a variance"):
        terms_of(replace(three, cap=4), three.menu[0])
    fewer = replace(three, rows=Runs.of(range(0, 400, 5)))
    with pytest.raises(ValueError, match="least"):
        terms_of(fewer, three.menu[0])
