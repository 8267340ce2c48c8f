"""Studies in which labelers ask for levels of their own."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.policy import Policy
from client.sources.synthetic import Synthetic, read_truth, write_truth
from protocol.arms import MENU
from protocol.codec import decode_reply, encode_task
from protocol.messages import Refusal
from protocol.population import levels_of
from protocol.strict import StudyError
from protocol.study import Cell, cells
from protocol.trust import Trust
from server.outcome import Outcome
from server.rounds import play
from server.tasks import offers
from studies.in_process import in_process, run_cell
from studies.load import Loaded, load, restore
from studies.results import SCHEMA
from studies.run import run

TOML = Path(__file__).parents[2] / "studies" / "toml"
SMALL = ["study.repetitions=2", "grid.n=[300]"]


def small(name: str, *changes: str) -> Loaded:
    return load(TOML / f"{name}.toml", [*SMALL, *changes])


def bits(outcome: Outcome) -> tuple[Any, ...]:
    ends = [None if end is None else end.tobytes() for end in (outcome.ci_low, outcome.ci_high)]
    return (outcome.theta.tobytes(), *ends, outcome.levels, outcome.warnings, outcome.computed_epsilon)


@pytest.mark.parametrize("name", ["personal-budgets", "private-opinions"])
def test_splits_over_clients_change_nothing(name: str) -> None:
    loaded = small(name)
    (cell,) = cells(loaded.study)
    one = [bits(outcome) for outcome in run_cell(loaded.study, loaded.truth, cell, clients=1)]
    for clients in (2, 7):
        assert [bits(outcome) for outcome in run_cell(loaded.study, loaded.truth, cell, clients)] == one


def test_reports_name_their_levels_and_are_what_a_task_of_that_level_gets() -> None:
    """A row at a level answers what it answers where all are asked for that level: one coin, one table."""
    loaded = small("personal-budgets")
    (cell,) = cells(loaded.study)
    room = in_process(loaded.study, loaded.truth, 3)
    tasks = {len(offer.task.menu): [] for offer in offers(loaded.study, cell) if offer.task}
    for offer in offers(loaded.study, cell):
        if offer.task is not None and offer.task.trust is Trust.LOCAL:
            tasks[len(offer.task.menu)].append(offer.task)
    (menu,) = tasks[2]
    found: dict[Any, dict[int, list[int]]] = {}
    for task in (*tasks[1], menu):
        for raw in room.ask([encode_task(task)]):
            reply = decode_reply(raw)
            assert not isinstance(reply, Refusal)
            for report in (signed.report for signed in reply):
                rows = range(300) if report.rows is None else report.rows.numbers().tolist()
                held = found.setdefault((len(task.menu), report.mechanism.get("epsilon")), {})
                held.update(zip(rows, report.payload.values.T.tolist(), strict=True))
    which = levels_of(loaded.study.population, loaded.study.seed, 300, 0, 300)  # type: ignore[arg-type]
    for index, level in enumerate((Decimal("0.5"), Decimal(4))):
        chosen = found[2, level]
        assert sorted(chosen) == np.flatnonzero(which == index).tolist()
        assert all(found[1, level][row] == values for row, values in chosen.items())


@pytest.mark.parametrize("level", ["0.5", "4"])
def test_where_all_take_one_level_of_a_menu_the_bits_are_those_of_that_level_alone(level: str) -> None:
    loaded = small("personal-budgets")
    (cell,) = cells(loaded.study)
    room = in_process(loaded.study, loaded.truth, 2)
    strict = Policy(trusts=frozenset(Trust), max_epsilon=Decimal(level), pick="highest")
    if level == "4":  # nobody asks for less
        (node, *_) = room.nodes
        sources = [Synthetic(loaded.study.problem, loaded.truth, 7, node.features, part, 2) for part in (0, 1)]
        nodes = tuple(replace(node, policy=strict, source=source) for source in sources)
    else:
        nodes = tuple(replace(node, policy=strict) for node in room.nodes)
    menu = tuple(arm for arm in loaded.study.arms if arm.mechanism == MENU)
    plain = tuple(replace(arm, mechanism="randomized-response") for arm in menu)
    grid = replace(loaded.study.grid, epsilon=(Decimal(level),))
    offered = replace(loaded.study, arms=menu)
    alone = replace(loaded.study, arms=plain, grid=grid)
    found = list(play(offered, cell, replace(room, nodes=nodes).ask, room.server))
    usual = list(play(alone, cell, room.ask, room.server))
    assert len(found) == len(usual) == 2 * len(menu)
    for left, right in zip(found, usual, strict=True):
        assert bits(left)[:3] == bits(right)[:3]
        assert left.levels == ((Decimal(level), 300),)
        assert (left.computed_epsilon, left.epsilon) == (right.computed_epsilon, 4)


def test_results_say_how_many_answered_at_which_level(tmp_path: Path) -> None:
    loaded = small("private-opinions")
    table = run(loaded, tmp_path / "out", jobs=1)
    assert table.schema.equals(SCHEMA)
    frame = table.to_pandas()
    counts = np.bincount(levels_of(loaded.study.population, 7, 300, 0, 300))  # type: ignore[arg-type]
    menu = frame[frame.mechanism == MENU]
    assert {tuple(text) for text in menu.levels} == {(f"0.5: {counts[0]}", f"4: {counts[1]}")}
    assert set(menu.claimed_epsilon) == {4.0}
    assert all(len(text) == 0 for text in frame[frame.mechanism != MENU].levels)


def test_opinions_are_kept_with_the_truth_and_out_of_the_study() -> None:
    loaded = small("private-opinions")
    assert loaded.opinions is not None and loaded.truth.shape == (3, 5)
    assert np.array_equal(loaded.truth[0], loaded.theta)
    shared = small(
        "private-opinions", "population.levels=[0.5, 4]", "population.theta=" + str([[1.0, 0.5, 0.0, -0.5, -1.0]] * 2)
    )
    assert shared.study.fingerprint == loaded.study.fingerprint
    assert shared.sha256 != loaded.sha256
    again = restore(loaded.resolved, Path())
    assert again.sha256 == loaded.sha256 and again.truth.tobytes() == loaded.truth.tobytes()
    assert read_truth(write_truth(loaded.truth)).tobytes() == loaded.truth.tobytes()
    plain = small("personal-budgets")
    assert plain.opinions is None and plain.truth is plain.theta
    assert restore(plain.resolved, Path()).sha256 == plain.sha256


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ("[[1.0, 0.5, 0.0, -0.5, -1.0]]", "one list of numbers for each of 2 levels"),
        ("[[1.0, 0.5, 0.0, -0.5, -1.0], [1.0, 0.5, 0.0, -0.5, -1.1]]", "expected a sum of 0"),
        ("[[1.0, 0.5, 0.0, -0.5, -1.0], [1.0, 0.5, 0.1, -0.5, -1.1]]", "expected the mean of"),
    ],
)
def test_opinions_have_the_truth_as_their_mean(theta: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        small("private-opinions", f"population.theta={theta}")


@pytest.mark.parametrize("estimator", ["debiased", "rr-mle"])
def test_half_at_four_are_worth_more_than_all_at_a_half(estimator: str) -> None:
    """Errors from the same labels, paired over 30 repetitions at n = 3000: beyond 6 standard errors (1e-8) apart."""
    changes = ["study.repetitions=30", "grid.n=[3000]", "grid.epsilon=[0.5]", "study.seed=11"]
    loaded = load(TOML / "personal-budgets.toml", changes)
    kept = tuple(arm for arm in loaded.study.arms if arm.estimator == estimator and not arm.options)
    found: dict[str, list[float]] = {}
    for outcome in run_cell(replace(loaded.study, arms=kept), loaded.truth, Cell(3000, 0, 30)):
        error = float(np.linalg.norm(outcome.theta - loaded.theta))
        found.setdefault(outcome.arm.mechanism, []).append(error)
    gap = np.array(found["randomized-response"]) - np.array(found[MENU])
    assert gap.mean() > 6 * gap.std() / np.sqrt(30)
