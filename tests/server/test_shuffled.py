"""Shuffled studies in one process: groups, levels, what is left of reports, and who is refused."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.choice import TaskInvalid, executable, understand
from protocol.arms import Arm
from protocol.codec import decode_task, encode_task
from protocol.messages import Code, Mechanism, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.questions import questions, smallest_group
from protocol.shuffled_terms import check_shuffled
from protocol.shuffling import local_level, worst_delta
from protocol.strict import StudyError
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.outcome import Outcome
from server.shuffled import anonymous, fitting_rows
from server.tasks import offers
from studies.in_process import in_process, run_cell

EPSILON, DELTA, N, ASKED = Decimal(1), Decimal("1e-5"), 400, 8
X = np.random.Generator(np.random.Philox(5)).normal(size=(ASKED, 3))
PAIRS = Problem(3, "values", False, Decimal(3), design=X[np.arange(N) % ASKED])
SETS = np.random.Generator(np.random.Philox(6)).normal(size=(4, 4, 3))
CHOICES = Problem(
    3, "values", False, Decimal(3), design=SETS[np.arange(N) % 4], kind="choice", model="plackett-luce", choices=4
)
THETA = np.array([1.0, -0.5, 0.2])


def study_of(problem: Problem = PAIRS, *arms: Arm, n: int = N, repetitions: int = 3) -> Study:
    name = "randomized-response" if problem.kind == "pairwise" else "k-randomized-response"
    used = arms or (Arm(Trust.SHUFFLED, name, "rr-mle"),)
    return Study("panel", 11, repetitions, problem, Grid((n,), (EPSILON,), (DELTA,)), used)


def task_of(problem: Problem = PAIRS, n: int = N, **options: Any) -> Task:
    study = study_of(problem, n=n)
    study = replace(study, arms=(replace(study.arms[0], options=tuple(options.items())),))
    (offer,) = offers(study, Cell(n, 0, 1))
    assert offer.task is not None
    return offer.task


def thetas(outcomes: list[Outcome]) -> list[list[float]]:
    return [outcome.theta.tolist() for outcome in outcomes]


def test_a_level_follows_from_the_smallest_group() -> None:
    (mechanism,) = task_of().menu
    assert mechanism.get("group") == 50
    assert mechanism.get("local") == local_level(EPSILON, DELTA, 50) > EPSILON
    (fewer,) = task_of(honest=Decimal("0.8")).menu
    assert fewer.get("group") == 40
    assert fewer.get("local") == local_level(EPSILON, DELTA, 40) < mechanism.get("local")
    (uneven,) = task_of(n=N - 3).menu
    assert uneven.get("group") == 49
    (choices,) = task_of(CHOICES).menu
    assert choices.get("local") == local_level(EPSILON, DELTA, 100, 4)


def test_questions_are_told_by_features_to_the_last_bit() -> None:
    design = X[np.array([0, 1, 0, 2, 1])].copy()
    design[4, 0] = np.nextafter(design[4, 0], np.inf)
    problem = Problem(3, "values", False, None, design=design)
    assert questions(problem, 5).tolist() == [0, 1, 0, 2, 3]
    items = Problem(3, "items", True, None, design=np.array([[0, 1], [1, 0], [0, 1]], dtype=np.int32))
    assert questions(items, 3).tolist() == [0, 1, 0]
    sized = replace(CHOICES, design=np.zeros((3, 4, 3)), sizes=np.array([4, 3, 4], dtype=np.int32))
    assert questions(sized, 3).tolist() == [0, 1, 0]
    task = replace(task_of(), rows=Runs.of(range(17)))
    assert smallest_group(task) == 2


@pytest.mark.parametrize("clients", [1, 3, 8, N])
@pytest.mark.parametrize("problem", [PAIRS, CHOICES], ids=["pairs", "choices"])
def test_results_do_not_depend_on_how_rows_are_split(problem: Problem, clients: int) -> None:
    study = study_of(problem)
    cell = Cell(N, 0, 3)
    alone = list(run_cell(study, THETA, cell, 2))
    assert thetas(alone) == thetas(list(run_cell(study, THETA, cell, clients)))
    assert {outcome.claim for outcome in alone} == {outcome.claim for outcome in alone if outcome.claim is not None}
    (claim,) = {outcome.claim for outcome in alone}
    assert claim is not None
    assert (claim.epsilon, claim.delta, claim.unit) == (EPSILON, DELTA, Unit.LABEL)
    level = alone[0].computed_epsilon
    assert level is not None
    assert EPSILON < level <= (task_of(problem).menu[0].get("local") or 0)


def test_an_estimate_is_one_of_counts_alone() -> None:
    """The same answers from other labelers of the same questions give the same bits."""
    task, rows = task_of(), np.arange(N)
    chance = np.random.Generator(np.random.Philox(3))
    symbols = chance.integers(0, 2, size=(2, N)).astype(np.uint8)
    asked = questions(PAIRS, N)
    mixed = symbols.copy()
    for number in range(ASKED):
        own = np.flatnonzero(asked == number)
        mixed[:, own] = symbols[:, chance.permutation(own)]
    assert (mixed != symbols).any()
    found = anonymous(task, rows, symbols)
    assert np.array_equal(found, anonymous(task, rows, mixed))
    for number in range(ASKED):
        assert (found[:, asked == number].sum(axis=1) == symbols[:, asked == number].sum(axis=1)).all()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.data())
def test_answers_keep_their_counts_in_groups_of_any_size(asked: list[int], data: st.DataObject) -> None:
    design = np.arange(1.0, 7.0)[np.array(asked)][:, None]
    problem = Problem(1, "values", False, None, design=design)
    task = replace(task_of(), problem=problem, n=len(asked))
    some = st.lists(st.integers(0, 3), min_size=len(asked), max_size=len(asked))
    symbols = np.array([data.draw(some)], dtype=np.uint8)
    found = anonymous(task, np.arange(len(asked)), symbols)
    for number in set(asked):
        own = np.array(asked) == number
        assert Counter(found[0, own].tolist()) == Counter(symbols[0, own].tolist())


def test_rows_stand_for_reports_of_their_question() -> None:
    task, rows = task_of(), np.arange(N)
    counts = Counter({0: 50, 3: 2})
    assert fitting_rows(task, rows, counts).tolist() == sorted([*range(0, N, ASKED), 3, 11])
    for wrong in (Counter({0: 51}), Counter({ASKED: 1})):
        with pytest.raises(ValueError, match="more reports"):
            fitting_rows(task, rows, wrong)


def test_ones_are_spread_over_the_rows_of_a_question() -> None:
    """Pilots look at the first reports: they are like all of them."""
    task, rows = task_of(), np.arange(N)
    symbols = np.zeros((1, N), dtype=np.uint8)
    symbols[0, : N // 4] = 1  # 12 or 13 of 50 in each group
    first = anonymous(task, rows, symbols)[0, : N // 2]
    assert abs(int(first.sum()) - N // 8) <= ASKED


@pytest.mark.parametrize("features", ["gaussian", "sphere"])
def test_features_of_every_row_are_refused_with_the_reason(features: str) -> None:
    problem = Problem(3, features, False, Decimal(3))
    with pytest.raises(StudyError, match="say whose a report"):
        list(offers(study_of(problem), Cell(N, 0, 1)))
    with pytest.raises(ValueError, match="say whose a report"):
        questions(problem, N)


def test_a_question_of_one_labeler_is_refused_with_the_reason() -> None:
    with pytest.raises(StudyError, match="the rarest, which 1 answer: nothing is amplified"):
        task_of(n=ASKED + 3)


def test_the_worst_group_keeps_the_claim_of_the_task() -> None:
    mechanism = task_of(n=N - 3).menu[0]
    local, group = mechanism.get("local"), mechanism.get("group")
    assert local is not None and group is not None
    for size in (49, 50):
        assert worst_delta(float(local), size, float(EPSILON))[0] <= DELTA


WRONG = {
    "level": {"local": Decimal(3)},
    "group": {"group": Decimal(51)},
    "half a labeler": {"group": Decimal("49.5")},
    "one labeler": {"group": Decimal(1)},
    "delta": {"delta": Decimal("1e-4")},
    "below": {"local": Decimal("0.5")},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_client_checks_the_claim_by_itself(wrong: dict[str, Decimal]) -> None:
    task = task_of()
    parameters = dict(task.menu[0].parameters) | wrong
    bad = replace(task, menu=(Mechanism.of("randomized-response", **parameters),))
    with pytest.raises(ValueError, match="expected"):
        check_shuffled(bad, bad.menu[0])
    with pytest.raises(TaskInvalid, match="expected"):
        executable(bad)
    assert executable(task)


@pytest.mark.parametrize("part", [{"ties": Ties.HALF}, {"ties": Ties.DROP}, {"unit": Unit.LABELER, "cap": 1}])
def test_a_client_understands_shuffled_labels_alone(part: dict[str, Any]) -> None:
    understand(task_of())
    with pytest.raises(TaskInvalid):
        understand(replace(task_of(), **part))


def test_a_shuffled_task_survives_the_wire() -> None:
    raw = encode_task(task_of())
    assert encode_task(decode_task(raw)) == raw


def test_the_same_level_unshuffled_has_the_same_errors() -> None:
    """With one coin a label: shuffled reports at a level are local ones at that level, whoever they came from."""
    level = task_of().menu[0].get("local")
    assert level is not None
    local = replace(study_of(PAIRS, Arm(Trust.LOCAL, "randomized-response", "rr-mle")))
    local = replace(local, grid=Grid((N,), (level,), ()))
    cell = Cell(N, 0, 3)
    one, other = (list(run_cell(study, THETA, cell)) for study in (study_of(), local))
    assert np.allclose(thetas(one), thetas(other), rtol=1e-9, atol=1e-9)


def test_a_node_with_coins_of_the_system_answers_no_simulated_shuffler() -> None:
    room = in_process(study_of(), THETA, 1)
    from client.labeler import answer
    from protocol.codec import decode_reply

    node = replace(room.nodes[0], entropy="os", seed=None)
    reply = decode_reply(answer(encode_task(task_of()), node))
    assert not isinstance(reply, list)
    assert reply.code is Code.SHUFFLER_UNAVAILABLE
