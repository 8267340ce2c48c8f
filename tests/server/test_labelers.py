"""How far a labeler can move a sum: no further than the noise is made for; and the server clips as clients do."""

import math
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.arms import Arm
from protocol.features import group_norm, group_weights, reduced_rows, row_bound, weighted
from protocol.grid import exponent
from protocol.messages import Mechanism, Runs, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Cell, Grid, Study
from protocol.terms import label_epsilon, row_exponent
from protocol.trust import Trust
from server.clipping import best_radius
from server.designs import Designs
from server.listening import listen
from server.mechanisms.discrete_gaussian import SMALLEST_SENSITIVITY
from server.mechanisms.sensitivity import squared_group_norm
from server.task_checks import check_task
from server.tasks import for_labelers, offers, with_ties

PAIRS = np.array([[0, 1], [2, 1], [0, 2], [3, 0], [3, 1], [2, 3], [0, 1]], dtype=np.int32)
GROUPS = np.array([0, 0, 0, 0, 0, 0, 1], dtype=np.int32)
ITEMS = Problem(4, "items", True, None, PAIRS)
CLAIM = {"epsilon": Decimal(1), "delta": Decimal("1e-5")}
NEARLY_ONE = 1 - Decimal("1e-20")


def offered(trust: Trust, mechanism: str, options: tuple[tuple[str, Decimal], ...] = ()):  # type: ignore[no-untyped-def]
    """The only task of a small study."""
    estimator = "mle" if trust is Trust.CENTRAL else "debiased"
    arm = Arm(trust, mechanism, estimator, options)
    study = Study("s", 0, 1, ITEMS, Grid((7,), (Decimal(1),), (Decimal("1e-5"),)), (arm,))
    (offer,) = offers(study, Cell(7, 0, 1))
    assert offer.task is not None
    return offer.task


UNITS = st.integers(-1000, 1000) | st.integers(-(1 << 53), 1 << 53)


@given(st.lists(st.lists(UNITS, min_size=3, max_size=3), min_size=1, max_size=5))
def test_no_change_of_a_labeler_s_labels_moves_a_sum_further(rows: list[list[int]]) -> None:
    """All changes of labels in {0, 1/2, 1}, exactly; and never worse than the triangle inequality but for rounding."""
    k = np.array(rows, dtype=object)
    bound = squared_group_norm(k.astype(np.float64) * 2.0**-7, -7)
    for change in product((-1, 0, 1), repeat=len(k)):
        moved = np.array(change, dtype=object) @ k
        assert moved @ moved <= bound
    assert sum(abs(one @ other) for one in k for other in k) <= bound
    triangle = sum(math.sqrt(row @ row) for row in k) ** 2
    assert bound <= triangle * (1 + 1e-9) + 2


def test_values_up_to_the_grid_s_limit_are_rounded_up() -> None:
    rows = np.full((3, 2), 2.0**53 - 1)
    exact = 9 * 2 * (2**53 - 1) ** 2
    assert exact < squared_group_norm(rows, 0) < exact * (1 + 1e-14)
    with pytest.raises(ValueError, match="multiples"):
        squared_group_norm(np.array([[0.5]]), 0)


def test_all_pairs_of_six_items() -> None:
    """The bound, sqrt(150) = 12.2, where the norms add up to 21.2; a labeler of one row has that row's norm."""
    pairs = np.array([(a, b) for a in range(6) for b in range(a)], dtype=np.int32)
    rows = reduced_rows(Problem(6, "items", True, None, pairs), 0, 15, 0, 0, 15)
    assert group_norm(rows) == pytest.approx(np.sqrt(150), rel=1e-12)
    assert group_norm(rows[:1]) == pytest.approx(np.sqrt(2), rel=1e-12)


@pytest.mark.parametrize("radius", [None, Decimal("2.5")])
@pytest.mark.parametrize("ties", [Ties.COIN, Ties.HALF])
def test_the_server_s_rows_are_those_that_clients_add(radius: Decimal | None, ties: Ties) -> None:
    mechanism = "gaussian-statistic" if radius is None else "gaussian-statistic-clipped"
    plain = offered(Trust.CENTRAL, mechanism, () if radius is None else (("radius", radius),))
    task = with_ties(for_labelers(plain, 6, GROUPS), ties)
    bound = None if radius is None else float(radius)
    rows = np.array([0, 1, 2, 3, 5, 6])
    design = Designs(FeatureStore(None), 0, ITEMS, 7, 0)
    seen = design.get(row_exponent(task), bound, rows, task.groups)
    own = reduced_rows(ITEMS, 0, 7, 0, 0, 7)[rows]
    weights = np.ones(6) if bound is None else group_weights(own, GROUPS[rows], bound)
    assert (seen.rows == weighted(own, row_exponent(task), weights).rows).all()
    squared = design.sensitivity_squared(task, seen)
    assert task.exponent is not None
    real = math.sqrt(squared) * 2.0**task.exponent
    assert real == pytest.approx(group_norm(own[:5] * weights[:5, None]), rel=1e-9)
    assert bound is None or real <= bound * (1 + 1e-9)


def test_half_wins_are_summed_on_a_grid_twice_as_fine() -> None:
    task = offered(Trust.CENTRAL, "gaussian-statistic")
    assert (task.ties, task.exponent) == (Ties.COIN, exponent(7, row_bound(ITEMS, None)))
    half = with_ties(task, Ties.HALF)
    assert (half.exponent, row_exponent(half)) == (task.exponent - 1, task.exponent)
    assert with_ties(half, Ties.COIN).exponent == task.exponent


def test_a_task_for_labelers_offers_shares_of_its_claim() -> None:
    local = for_labelers(offered(Trust.LOCAL, "randomized-response"), 3, GROUPS)
    assert (local.unit, local.cap, local.groups) == (Unit.LABELER, 3, None)
    assert local.menu == (Mechanism.of("randomized-response", epsilon=label_epsilon(local)),)
    central = for_labelers(offered(Trust.CENTRAL, "gaussian-statistic"), 3, GROUPS)
    assert central.menu[0].get("epsilon") == 1
    assert central.groups is GROUPS
    unprojected = replace(central, menu=(Mechanism.of("gaussian-statistic", unprojected=Decimal(1)),))
    design = Designs(FeatureStore(None), 0, ITEMS, 7, 0)
    with pytest.raises(ValueError, match="unprojected"):
        design.sensitivity_squared(unprojected, design.get(row_exponent(central), None, None, GROUPS))
    for task, groups in ((central, None), (replace(central, unit=Unit.LABEL), GROUPS)):
        with pytest.raises(ValueError, match="groups exactly for labelers"):
            design.sensitivity_squared(task, design.get(row_exponent(central), None, None, groups))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": GROUPS}, "expected at most 5 rows of each labeler, as its cap, got 6"),
        ({"rows": Runs.of([0, 1, 2, 3, 4, 5]), "groups": GROUPS}, "got 6"),
        ({"ties": Ties.DROP, "cap": 6}, "the rows that are no ties"),
        ({"groups": None}, "groups and a cap"),
        ({"cap": 0}, "groups and a cap"),
        ({"unit": Unit.LABEL}, "groups and a cap"),
        ({"unit": Unit.RECORD}, "the unit record exactly for"),
        ({"cap": 6, "menu": (Mechanism.of("gaussian-statistic", **CLAIM, unprojected=Decimal(1)),)}, "unprojected"),
        ({"menu": (Mechanism.of("gaussian-statistic", **CLAIM),) * 2}, "one mechanism in its menu, got 2"),
        ({"menu": (Mechanism.of("gaussian", **CLAIM),)}, "got 'gaussian'"),
        ({"menu": (Mechanism.of("gaussian-statistic", epsilon=Decimal(1)),)}, "epsilon and delta"),
        ({"menu": (Mechanism.of("gaussian-statistic", **CLAIM | {"delta": NEARLY_ONE}),)}, "a smaller delta"),
    ],
)
def test_what_cannot_be_released_is_refused_before_anybody_is_asked(changes: dict[str, Any], message: str) -> None:
    task = for_labelers(offered(Trust.CENTRAL, "gaussian-statistic"), 5, GROUPS)

    def nobody(raws: list[bytes]) -> list[bytes]:
        raise AssertionError("somebody was asked")

    with pytest.raises(StudyError, match=message):
        listen([replace(task, **changes)], nobody)


def test_what_can_be_released_is_asked() -> None:
    task = for_labelers(offered(Trust.CENTRAL, "gaussian-statistic"), 5, GROUPS)
    for changes in ({"rows": Runs.of([0, 1, 2, 3, 4, 6])}, {"cap": 6}, {"ties": Ties.DROP, "rows": Runs.of([1, 2])}):
        check_task(replace(task, **changes))  # type: ignore[arg-type]


def test_rows_about_nothing_are_noised_all_the_same() -> None:
    """Two items with one description: no answer moves the sum, and a release is made, not refused after it is paid."""
    problem = Problem(2, "values", False, None, np.zeros((3, 2)))
    arm = Arm(Trust.CENTRAL, "gaussian-statistic", "mle", ())
    (offer,) = offers(Study("s", 0, 1, problem, Grid((3,), (Decimal(1),), (Decimal("1e-5"),)), (arm,)), Cell(3, 0, 1))
    assert offer.task is not None
    designs = Designs(FeatureStore(None), 0, problem, 3, 0)
    design = designs.get(row_exponent(offer.task), None)
    assert designs.sensitivity_squared(offer.task, design) == SMALLEST_SENSITIVITY**2


def test_the_radius_weighs_busy_labelers_against_noise() -> None:
    """Much noise: a radius that only labelers of one row reach; none: one that clips nobody."""
    rows = reduced_rows(ITEMS, 0, 7, 0, 0, 7)
    reach = [group_norm(rows[:6]), group_norm(rows[6:])]
    assert best_radius(rows, GROUPS, 1e-6) == max(reach)
    assert best_radius(rows, GROUPS, 1e6) == min(reach)
    assert best_radius(np.zeros((2, 3)), GROUPS[:2], 1.0) == 1.0
