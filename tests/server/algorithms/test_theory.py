"""Rounds and steps by the theorems: what a played study asks is what the theorems say; missing constants are told."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from protocol.codec import decode_task
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.study import Cell
from server.algorithms.steps import Room
from server.algorithms.theory import curvature_of, rounds_of, step_of
from server.descent_thresholds import convex_descent, strong_descent
from server.record_rounds import play_records
from studies.in_process import in_process
from studies.load import Loaded, build

THEORY = {"rounds": "theory", "step": "theory"}
CONVEX = {"trust": "central", "estimator": "algorithm-2-convex", **THEORY}
STRONG = {"trust": "central", "estimator": "algorithm-2-strong", **THEORY}
DESCENT = {"trust": "central", "estimator": "descent", **THEORY}
N = 4000


def study(arm: dict[str, Any], model: str = "linear", epsilon: str = "1", **problem: Any) -> Loaded:
    """Features of [0, sqrt(3)]: E x x^T = 0.75 + 0.25 I, eigenvalues 0.25 and 1.75 in two dimensions."""
    truth = {} if model == "mean" else {"theta": [Decimal("0.5"), Decimal("0.5")]}
    noise = {"noise": "centred pareto(1.6)"} if model == "linear" else {}
    inside = {"bound": 2, **problem}
    content = {
        "study": {"name": "theory", "seed": 11, "repetitions": 1},
        "problem": {
            "kind": "records",
            "model": model,
            "dimension": 2,
            **truth,
            **{key: value for key, value in inside.items() if value},
        },
        "records": {"features": "uniform(0, 1.7320508075688772)", **noise, "tail": Decimal("0.5"), "moment": 16},
        "grid": {"n": [N], "epsilon": [Decimal(epsilon)], "delta": [Decimal("1e-5")]},
        "arm": [arm],
    }
    return build(content, Path())


def room_of(loaded: Loaded, n: int = N) -> Room:
    (arm,), room = loaded.study.arms, in_process(loaded.study, loaded.theta, 1)
    epsilon, delta = loaded.study.grid.epsilon[0], loaded.study.grid.delta[0]
    return Room(loaded.study, Cell(n, 0, 1), room.server, arm, epsilon, delta, Unit.RECORD)


def asked(loaded: Loaded) -> list[Task]:
    room = in_process(loaded.study, loaded.theta, 1)
    tasks: list[Task] = []

    def ask(sent: list[bytes]) -> list[bytes]:
        tasks.extend(map(decode_task, sent))
        return room.ask(sent)

    list(play_records(loaded.study, Cell(N, 0, 1), ask, room.server))
    return tasks


@pytest.mark.parametrize("arm", [CONVEX, DESCENT])
def test_convex_arms_have_the_rounds_and_steps_of_theorem_6(arm: dict[str, Any]) -> None:
    loaded = study(arm)
    rounds = convex_descent(16, 0.5, N, 1, 2, 1.75 * 4, 4).rounds
    assert rounds > 1 and {task.round for task in asked(loaded)} == set(range(rounds))
    assert step_of(room_of(loaded), rounds) == pytest.approx(1 / (1.75 * math.sqrt(rounds)), rel=1e-11)


@pytest.mark.parametrize(("arm", "paper"), [(STRONG, True), (DESCENT | {"batches": "disjoint"}, False)])
def test_strong_arms_have_the_rounds_and_steps_of_theorem_7(arm: dict[str, Any], paper: bool) -> None:
    loaded = study(arm | {"curvature": 1}, epsilon="900")
    for n in (N, 10**9):  # 10^9 rows are counted, not asked
        rounds = strong_descent(16, 0.5, n, 900, 1e-5, 2, 0.05, (1, 1.75), 4, paper).rounds
        room = room_of(loaded, n)
        assert rounds_of(room) == rounds and (rounds > 1 or paper or n == N)
    assert step_of(room, rounds) == pytest.approx(1 / 2.75, rel=1e-11)


def test_what_an_arm_says_goes_before_what_the_law_says() -> None:
    for said, expected in (({}, (0.25, 1.75)), ({"smoothness": 3}, (0.25, 3)), ({"curvature": 1}, (1, 1.75))):
        found = curvature_of(room_of(study(DESCENT | {"batches": "disjoint"} | said)))
        assert (found.strength, found.smoothness) == pytest.approx(expected)
    ridge = curvature_of(room_of(study(DESCENT | {"batches": "disjoint", "ridge": 1})))
    assert (ridge.strength, ridge.smoothness) == pytest.approx((1.25, 2.75))
    mean = curvature_of(room_of(study(DESCENT, "mean")))
    assert (mean.strength, mean.smoothness) == (1, 1)


@pytest.mark.parametrize("arm", [CONVEX, STRONG, DESCENT, DESCENT | {"batches": "disjoint"}])
def test_thresholds_of_the_theorems_as_printed(arm: dict[str, Any]) -> None:
    """(u epsilon n / (d^(3/2) sqrt(T)))^(1/(1+v)), by hand; T is 1 in Theorem 6, whatever the rounds are."""
    said = arm | {"threshold": "theory", "rounds": 4, "step": Decimal("0.1")}
    by_hand = {over: (16 * N / (2**1.5 * over**0.5)) ** (2 / 3) for over in (1, 4)}
    over = 4 if arm["estimator"] == "algorithm-2-strong" or "batches" in arm else 1
    tasks = asked(study(said))
    assert {task.round for task in tasks} == {0, 1, 2, 3}
    for task in tasks:
        assert float(task.menu[0].get("threshold") or 0) == pytest.approx(by_hand[over], rel=1e-11)


def test_rounds_and_threshold_of_a_theorem_go_together() -> None:
    loaded = study(CONVEX | {"threshold": "theory"})
    theorem = convex_descent(16, 0.5, N, 1, 2, 1.75 * 4, 4)
    tasks = asked(loaded)
    assert {task.round for task in tasks} == set(range(theorem.rounds))
    assert float(tasks[0].menu[0].get("threshold") or 0) == pytest.approx(theorem.threshold, rel=1e-11)


def test_a_length_is_bounded_at_root_d_times_the_threshold_of_a_coordinate() -> None:
    tasks = asked(study(DESCENT | {"threshold": "theory", "rounds": 2, "norm": "l2"}))
    expected = (16 * N / 2**1.5) ** (2 / 3) * math.sqrt(2)
    assert float(tasks[0].menu[0].get("threshold") or 0) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("arm", [CONVEX, STRONG])
def test_a_threshold_can_be_given(arm: dict[str, Any]) -> None:
    tasks = asked(study(arm | {"threshold": Decimal("2.5"), "rounds": 2, "step": Decimal("0.1")}))
    assert {task.menu[0].get("threshold") for task in tasks} == {Decimal("2.5")}


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        (DESCENT | {"trust": "local"}, "trusted curator"),
        (DESCENT | {"threshold": "private"}, "chosen by looking"),
        (DESCENT | {"rounds": 5, "step": 1, "smoothness": 1}, "nothing else uses them"),
        (DESCENT | {"curvature": 2, "smoothness": 1}, "curvature <= smoothness"),
        (DESCENT | {"estimator": "hard-thresholding", "sparsity": 1}, "no rounds and no step"),
        (CONVEX | {"threshold": "mse"}, "number as threshold"),
        (DESCENT | {"trust": "local", "rounds": 5, "threshold": "theory"}, "where holders randomise"),
        ({"trust": "central", "estimator": "algorithm-5", "sparsity": 1, "threshold": "theory"}, "unknown key"),
        (
            {"trust": "central", "estimator": "hard-thresholding", "sparsity": 1, "threshold": "theory"},
            "that of descents",
        ),
    ],
)
def test_what_theory_does_not_cover_is_refused_when_read(arm: dict[str, Any], reason: str) -> None:
    with pytest.raises(StudyError, match=reason):
        study(arm)


def test_rounds_by_theory_need_a_bound() -> None:
    with pytest.raises(StudyError, match=r"a bound in \[problem\]"):
        study(DESCENT, bound=None)


def test_a_logistic_loss_has_no_curvature_of_its_own() -> None:
    with pytest.raises(StudyError, match="none of its own"):
        rounds_of(room_of(study(STRONG, "logistic")))
    assert rounds_of(room_of(study(STRONG | {"curvature": Decimal("0.05")}, "logistic"))) >= 1
    assert rounds_of(room_of(study(CONVEX, "logistic"))) >= 1
