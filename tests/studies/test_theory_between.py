"""Theory between local and central: a shuffled report's level, and noise in shares, beside what tasks are made of."""

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from protocol.arms import DISTRIBUTED, Arm
from protocol.noise.terms import terms_of
from protocol.problem import Problem
from protocol.shuffling import local_level, nearly_level
from protocol.study import Cell, Grid, Study
from protocol.terms import row_exponent
from protocol.trust import Trust
from server.tasks import offers
from studies.folder import Folder
from studies.load import load
from studies.report.canvas import settings
from studies.report.figures import by_both
from studies.report.price import prices
from studies.report.view import View
from studies.run import run
from studies.theory.between import noise_in_shares, report_level
from studies.theory.sandwich import Theory, predict

ROOT = Path(__file__).resolve().parents[2]
DELTA = Decimal("0.00001")
SHUFFLED = Arm(Trust.SHUFFLED, "randomized-response", "rr-mle", (("honest", Decimal("0.9")),))
PAIRS = Problem(5, "gaussian", sum_zero=True, bound=Decimal(3))
CHOICES = replace(PAIRS, kind="choice", model="plackett-luce", choices=4)
SHAPED = Problem(5, "gaussian", False, Decimal(3), scales=(Decimal(9), *(Decimal(1),) * 4))


def share(law: str = "skellam", **options: Decimal) -> Arm:
    return Arm(Trust.DISTRIBUTED, law, "mle", tuple(sorted(options.items())))


def panel_of(*arms: Arm) -> tuple[Study, Any]:
    loaded = load(ROOT / "studies/toml/between.toml", ["grid.n=[200, 1000]", "grid.epsilon=[0.5]"])
    return replace(loaded.study, arms=arms), loaded.theta


@pytest.mark.parametrize("group", [2, 10, 45, 50])
def test_the_level_of_a_curve_is_that_of_a_claim_or_hardly_above(group: int) -> None:
    for epsilon in map(Decimal, ("0.1", "0.5")):
        near, claimed = nearly_level(epsilon, DELTA, group), local_level(epsilon, DELTA, group)
        assert claimed <= near <= claimed * Decimal("1.003")


def test_beyond_the_exact_law_the_level_of_a_curve_is_as_good_as_that_of_a_thousand() -> None:
    few, many = (nearly_level(Decimal(1), DELTA, group) for group in (1000, 1001))
    assert few <= many <= few * Decimal("1.003")


def test_shuffled_reports_are_local_ones_at_the_level_of_the_task() -> None:
    study, theta = panel_of(SHUFFLED)
    theory = Theory(study.problem, theta, study.seed)
    for offer in offers(study, Cell(1000, 0, 1)):
        assert offer.task is not None and offer.task.epsilon is not None
        level = offer.task.menu[0].get("local")
        near = report_level(study.problem, SHUFFLED, 1000, offer.task.epsilon, DELTA)
        assert level is not None and near is not None and level <= near <= level * Decimal("1.003")
        found = predict(theory, SHUFFLED, 1000, offer.task.epsilon, DELTA)
        assert found == pytest.approx(theory.rr_mle(1000, float(level)), rel=3e-3)
        assert found == theory.rr_mle(1000, float(near)) < theory.rr_mle(1000, float(offer.task.epsilon))


def test_what_no_shuffled_study_can_be_about_has_no_curve() -> None:
    study, theta = panel_of(SHUFFLED)
    assert report_level(study.problem, SHUFFLED, 40, Decimal(1), DELTA) is None  # groups of one honest labeler
    drawn = Theory(PAIRS, theta, 7)
    assert predict(drawn, SHUFFLED, 1000, Decimal(1), DELTA) is None
    assert predict(drawn, SHUFFLED, 1000, Decimal(1), None) is None
    assert predict(drawn, share(), 1000, Decimal(1), None) is None
    records = Theory(Problem(2, "records", False, None, kind="records", model="mean"), np.zeros(2), 7)
    assert predict(records, Arm(Trust.DISTRIBUTED, "skellam", "mean"), 1000, Decimal(1), DELTA) is None


@pytest.mark.parametrize(
    ("problem", "law"), [*((PAIRS, law) for law in DISTRIBUTED), (CHOICES, "skellam"), (SHAPED, "skellam")]
)
def test_noise_in_shares_is_that_of_the_task(problem: Problem, law: str) -> None:
    """Shares of discrete Gaussian noise need a little more, since their sum is none."""
    arms = (share(law), share(law, honest=Decimal("0.5")), share(law, radius=Decimal("0.7")))
    study = Study("s", 5, 1, problem, Grid((400,), (Decimal(1),), (DELTA,)), arms)
    for offer in offers(study, Cell(400, 0, 1)):
        assert offer.task is not None
        terms = terms_of(offer.task, offer.task.menu[0])
        own = math.sqrt(terms.shares.share * 400) * 2.0 ** row_exponent(offer.task)
        stddev, radius, shaped = noise_in_shares(problem, offer.arms[0], 400, Decimal(1), DELTA)
        assert stddev == pytest.approx(own, rel=2e-3)
        assert radius == pytest.approx(terms.radius, rel=1e-9)
        assert shaped == (offer.task.map is not None)


def test_noise_of_honest_rows_alone_costs_what_a_curators_does() -> None:
    """With all rows honest the curves meet where rows are clipped; with half of them noise has twice the variance."""
    delta, theta = DELTA, np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    for problem in (PAIRS, CHOICES):
        theory, radius = Theory(problem, theta, 7), (("radius", Decimal(1)),)
        central = Arm(Trust.CENTRAL, "gaussian-statistic-clipped", "mle", radius)
        one, half = share(radius=Decimal(1), honest=Decimal(1)), share(radius=Decimal(1), honest=Decimal("0.5"))
        curator, all_honest, some = (predict(theory, arm, 500, Decimal(1), delta) for arm in (central, one, half))
        clear = predict(theory, replace(central, trust=Trust.CENTRAL), 500, Decimal(40), delta)
        assert curator is not None and all_honest is not None and some is not None and clear is not None
        assert all_honest == pytest.approx(curator, rel=1e-6)
        assert curator < some
        # at epsilon = 40 hardly any noise is left; what remains of the squares is the noise's
        assert (some**2 - clear**2) / (curator**2 - clear**2) == pytest.approx(2, rel=0.02)


@pytest.mark.slow
def test_labelers_of_every_trust_model_are_told_and_drawn(tmp_path: Path) -> None:
    small = ["study.repetitions=10", "grid.n=[1000, 3000]", "grid.epsilon=[0.5, 1]"]
    run(load(ROOT / "studies/toml/between.toml", small), tmp_path / "out", jobs=1)
    view = View.open(Folder(tmp_path / "out"))
    told = {price.trust for price in prices(view) if price.ratio is not None}
    assert told == {Trust.LOCAL, Trust.SHUFFLED, Trust.DISTRIBUTED, Trust.CENTRAL}
    assert len({look.colour for look in view.looks.values()}) == 5
    with mpl.rc_context(settings()):
        left, right = by_both(view, view.levels).axes
    drawn = {line.get_gid() for line in left.lines if str(line.get_gid()).startswith("theory")}
    assert drawn == {f"theory {arm.name}" for arm in view.arms} and left.get_ylim() == right.get_ylim()
