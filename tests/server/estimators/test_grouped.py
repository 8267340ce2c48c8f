"""Robust means over groups of rows: what they solve, what a lying group can do to them, and sums released by group."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.arms import Arm
from protocol.coins import Address, Floats, Stream, normal, uniform, words
from protocol.messages import Runs
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.curator import LiveCurator
from server.estimators import ESTIMATORS
from server.estimators.base import Evidence, Options, wins
from server.estimators.grouped import trimmed
from server.estimators.workspace import Workspace
from server.evidence import Server, evidence, joined
from server.groups import row_groups
from server.listening import listen
from server.release import ReleaseLedger
from server.tasks import Offer, offers
from studies.in_process import in_process, run_cell

THETA = np.array([1.0, -0.5, 0.25])
ROBUST = ("debiased-median-of-means", "debiased-trimmed-mean")


def reports(contrast: float, liars: slice = slice(0), n: int = 3000) -> Evidence:
    """Randomised labels of gaussian rows; rows of `liars` all report 1 - sign(theta . x)."""
    rows = np.round(normal(words(Address(3, Stream.PROBLEM), 0, 3 * n)).reshape(n, 3) * 2.0**30) * 2.0**-30
    chance = 0.5 - 0.5 * contrast + contrast / (1.0 + np.exp(-rows @ THETA))
    symbols = (uniform(words(Address(3, Stream.LABELS), 0, n)) < chance).astype(np.uint8)
    symbols[liars] = rows[liars] @ THETA < 0
    half_sum = (wins(symbols) - 0.5) @ rows
    return Evidence(rows, None, symbols, half_sum, contrast, 0.5 - 0.5 * contrast, 0.0)


@given(st.integers(3, 500), st.integers(3, 60))
def test_groups_are_the_parts_of_array_split(count: int, groups: int) -> None:
    if groups > count:
        with pytest.raises(ValueError, match="expected 3 to"):
            row_groups(count, groups)
        return
    parts = np.array_split(np.arange(count), groups)
    assert [list(part) for part in row_groups(count, groups)] == [part.tolist() for part in parts]


@pytest.mark.parametrize("name", ROBUST)
def test_the_robust_mean_of_the_groups_scores_vanishes_at_the_estimate(name: str) -> None:
    seen, options = Workspace(reports(0.5)), Options(bound=5.0, groups=15, trim=0.2)
    estimate = ESTIMATORS[name](seen, options)
    evidence_, scores = seen.evidence, []
    assert evidence_.symbols is not None
    for group in row_groups(3000, 15):
        rows = evidence_.rows[group.start : group.stop]
        labels = 0.5 + (wins(evidence_.symbols[group.start : group.stop]) - 0.5) / 0.5
        scores.append(((labels - 1.0 / (1.0 + np.exp(-rows @ estimate.u)))[:, None] * rows).mean(axis=0))
    centre = np.median(scores, axis=0) if name.endswith("means") else trimmed(np.array(scores), 0.2)
    assert np.abs(centre).max() < 1e-2 * np.abs(scores).max()
    assert estimate.covariance is None and estimate.warnings


def test_a_trimmed_mean_is_the_mean_of_what_is_left() -> None:
    values = np.array([[5.0, 1.0], [1.0, 2.0], [-1e9, 3.0], [2.0, 4.0], [3.0, 1e300]])
    assert trimmed(values, 0.2).tolist() == [2.0, 3.0]
    assert trimmed(values, 0.49).tolist() == [2.0, 3.0]
    assert trimmed(values, 0.1).tolist()[0] == pytest.approx(values[:, 0].mean())


@pytest.mark.parametrize("name", ROBUST)
def test_liars_in_a_few_groups_are_outvoted_and_liars_in_all_are_not(name: str) -> None:
    """Fixed reports: no chance is involved. 15 % of the rows lie; the mean follows them wherever they are."""
    options = Options(bound=5.0, groups=20)
    clean = ESTIMATORS["debiased"](Workspace(reports(0.5)), options).u
    few = Workspace(reports(0.5, slice(0, 450)))
    spread = Workspace(reports(0.5, slice(0, 3000, 7)))
    own, mean = (np.linalg.norm(ESTIMATORS[one](few, options).u - THETA) for one in (name, "debiased"))
    assert own < 0.6 * mean
    assert np.linalg.norm(ESTIMATORS[name](spread, options).u - THETA) > 2.0 * np.linalg.norm(clean - THETA)


@pytest.mark.parametrize("name", ROBUST)
def test_whatever_a_minority_of_groups_says_moves_the_estimate_by_a_bounded_amount(name: str) -> None:
    """Sums by group, as a curator releases them: four of twenty are arbitrarily large."""
    base = reports(1.0)
    sums = np.array([(wins(base.symbols[g.start : g.stop]) - 0.5) @ base.rows[g.start : g.stop]
                     for g in row_groups(3000, 20)])  # type: ignore[index]  # fmt: skip
    found = []
    for size in (1e6, 1e12):
        lied = sums.copy()
        lied[[0, 5, 11, 17]] = -size
        seen = Workspace(replace(base, symbols=None, half_sum=lied.sum(axis=0), group_sums=lied))
        found.append(ESTIMATORS[name.removeprefix("debiased-")](seen, Options(bound=5.0, groups=20)).u)
    assert np.array_equal(*found)
    assert np.linalg.norm(found[0] - THETA) < 0.5


def test_wrong_groups_are_refused() -> None:
    seen = Workspace(reports(1.0))
    with pytest.raises(ValueError, match="groups >= 3"):
        Options(bound=1.0, groups=2)
    with pytest.raises(ValueError, match=r"trim in \(0, 1/2\)"):
        Options(bound=1.0, trim=0.5)
    with pytest.raises(ValueError, match="expected 3 to 3000 groups"):
        ESTIMATORS["median-of-means"](seen, Options(bound=1.0, groups=3001))
    one_sum = Workspace(replace(seen.evidence, symbols=None))
    with pytest.raises(ValueError, match="sums by group"):
        ESTIMATORS["median-of-means"](one_sum, Options(bound=1.0))


def central(groups: int, mechanism: str = "gaussian-statistic") -> Study:
    arms = tuple(
        Arm(Trust.CENTRAL, mechanism, name, (("groups", Decimal(groups)),) if name != "mle" else ())
        for name in ("mle", "median-of-means", "trimmed-mean")
    )
    problem = Problem(3, "gaussian", False, Decimal(3))
    return Study("groups", 8, 2, problem, Grid((300,), (Decimal(1),), (Decimal("1e-5"),)), arms)


def by_group(study: Study) -> Offer:
    return next(offer for offer in offers(study, Cell(300, 0, 2)) if offer.parts)


def test_a_curator_is_asked_for_every_group_once_and_arms_share_its_sums() -> None:
    plain, grouped = offers(central(7), Cell(300, 0, 2))
    assert plain.asked == (plain.task,) and len(grouped.arms) == 2 and len(grouped.asked) == 7
    rows = [task.rows.numbers() for task in grouped.asked if task.rows is not None]
    assert np.array_equal(np.concatenate(rows), np.arange(300))


def test_sums_by_group_add_up_and_have_noise_of_their_own() -> None:
    study, offer = central(7), by_group(central(7))
    room = in_process(study, THETA, 1)
    heard = listen(list(offer.asked), room.ask)
    assert offer.task is not None
    whole = joined(offer.task, [heard[task] for task in offer.asked])
    seen = evidence(room.server, whole, room.server.designs(study.problem, 300, 1))
    assert seen.group_sums is not None and seen.group_sums.shape == (7, 3)
    assert seen.half_sum == pytest.approx(seen.group_sums.sum(axis=0))
    exact = np.array([heard[task].collected.sums[1] for task in offer.asked])  # type: ignore[index]
    totals = np.array([seen.rows[g.start : g.stop].sum(axis=0) for g in row_groups(300, 7)])
    noise = seen.group_sums - (exact - 0.5 * totals)
    assert len(np.unique(noise)) == noise.size  # no two groups share a coin
    assert len(whole.collected.rows) == 300


def test_each_group_is_noised_for_its_own_longest_row_and_charged_once() -> None:
    """Parallel composition: every label is in the sum of one release, which has the whole claim."""
    study, offer = central(5), by_group(central(5))
    room = in_process(study, THETA, 1)
    heard = listen(list(offer.asked), room.ask)
    designs = room.server.designs(study.problem, 300, 0)
    with ReleaseLedger(None) as ledger:
        server = Server(FeatureStore(study.seed), study.seed, LiveCurator(ledger))
        for task in offer.asked:
            seen = evidence(server, heard[task], designs)
            longest = np.sqrt((seen.rows**2).sum(axis=1)).max()
            assert seen.noise_stddev == pytest.approx(3.7306 * longest, rel=1e-3)  # 1 / mu(1, 1e-5)
            assert seen.noise_stddev >= 3.7306 * longest * (1 - 1e-4)
    assert all(task.epsilon == 1 and task.rows != Runs.of(range(300)) for task in offer.asked)


@pytest.mark.parametrize("mechanism", ["gaussian-statistic", "gaussian-statistic-clipped"])
def test_nodes_may_hold_parts_of_groups_or_none(mechanism: str) -> None:
    def thetas(clients: int) -> list[Floats]:
        study = central(7, mechanism)
        return [one.theta for one in run_cell(study, THETA, Cell(300, 0, 2), clients)]

    assert all(np.array_equal(*pair) for pair in zip(thetas(1), thetas(11), strict=True))
