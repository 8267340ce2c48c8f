"""From a cell to tasks: what is asked, what is shared, and what can never be in a task."""

import tomllib
from dataclasses import replace
from decimal import Decimal

import pytest

from protocol.codec import encode_task
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Mechanism
from protocol.strict import StudyError
from protocol.study import Cell, Study, cells
from protocol.study_file import parse
from protocol.trust import Trust
from server.tasks import offers

TEXT = """
study = { name = "s", seed = 123456789, repetitions = 6 }
problem = { kind = "pairwise", dimension = 5, features = "gaussian", bound = 3.0, sum_zero = true }
grid = { n = [100, 50], epsilon = [1.0, 0.1], delta = [1e-5, 1e-6] }
arm = [
  { trust = "none", estimator = "zero" },
  { trust = "clear", estimator = "mle" },
  { trust = "clear", estimator = "sgd" },
  { trust = "local", mechanism = "randomized-response", estimator = "debiased" },
  { trust = "local", mechanism = "randomized-response", estimator = "rr-map", tau = 0.5 },
  { trust = "central", mechanism = "gaussian-statistic", estimator = "mle" },
  { trust = "central", mechanism = "gaussian-statistic", estimator = "mle", ridge = 0.1 },
  { trust = "central", mechanism = "gaussian-statistic-clipped", estimator = "mle", radius = 1.5 },
  { trust = "central", mechanism = "objective-perturbation-paper", estimator = "mle", norm = "unprojected" },
]
"""


def study() -> Study:
    return parse(tomllib.loads(TEXT, parse_float=Decimal))


def test_arms_with_one_mechanism_share_a_task() -> None:
    made = list(offers(study(), Cell(100, 2, 3)))
    named = [(offer.task.trust if offer.task else None, len(offer.arms)) for offer in made]
    assert named.count((None, 1)) == 1
    assert named.count((Trust.CLEAR, 2)) == 1
    assert named.count((Trust.LOCAL, 2)) == 2  # one per epsilon: delta is not in a pure claim
    assert named.count((Trust.CENTRAL, 2)) == 4  # epsilon x delta, two ridges of one release
    assert named.count((Trust.CENTRAL, 1)) == 8
    assert sum(count for _, count in named) == sum(len(offer.arms) for offer in made)


def test_a_task_says_its_cell_and_nothing_of_seed_or_truth() -> None:
    for offer in offers(study(), Cell(100, 2, 3)):
        if offer.task is None:
            continue
        task = offer.task
        assert (task.n, task.first_repetition, task.repetitions) == (100, 2, 3)
        assert str(123456789).encode() not in encode_task(task)
        assert task.menu[0].get("epsilon") == task.epsilon
        assert task.menu[0].get("delta") == task.delta


def test_the_grid_of_a_central_task_follows_its_radius() -> None:
    central = [offer.task for offer in offers(study(), Cell(100, 0, 1)) if offer.task and offer.task.exponent]
    for task in central:
        radius = task.menu[0].get("radius")
        assert task.exponent == exponent(100, row_bound(task.problem, None if radius is None else float(radius)))
    names = {task.menu[0].name: task.menu[0] for task in central}
    assert names["objective-perturbation-paper"].get("unprojected") == 1
    assert isinstance(names["gaussian-statistic-clipped"], Mechanism)
    assert names["gaussian-statistic-clipped"].get("radius") == Decimal("1.5")


def test_blocks_of_repetitions_cover_each_repetition_once() -> None:
    for block in (None, 1, 4, 6, 100):
        covered = sorted(
            (cell.n, repetition)
            for cell in cells(study(), block)
            for repetition in range(cell.first_repetition, cell.first_repetition + cell.repetitions)
        )
        assert covered == [(n, repetition) for n in (50, 100) for repetition in range(6)]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1001", "1e-5"), ("1", "1e-61"), ("1", "0.99999999999999999999"), ("1e-9", "0.5")]
)
def test_a_claim_that_no_curator_keeps_is_refused_before_anyone_is_asked(epsilon: str, delta: str) -> None:
    made = study()
    made = replace(made, grid=replace(made.grid, epsilon=(Decimal(epsilon),), delta=(Decimal(delta),)))
    with pytest.raises(StudyError, match="expected "):
        list(offers(made, Cell(100, 0, 1)))
