"""Constants of a sparse arm given by hand: as the law's, the same bits; other ones, the theorem's step and rounds."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.codec import decode_task
from protocol.messages import Task
from protocol.strict import StudyError
from protocol.study import Cell
from server.record_rounds import play_records
from studies.in_process import in_process, run_cell
from studies.load import Loaded, build

ESTIMATORS = [
    ("clear", "hard-thresholding"),
    ("central", "hard-thresholding"),
    ("central", "algorithm-5"),
    ("local", "hard-thresholding"),
    ("local", "two-phase"),
    ("local", "votes"),
]
N = 90
KNOWN = {"curvature": Decimal("0.75"), "smoothness": Decimal("1.75")}  # Var x and Var x + 4 (E x)^2


def study(arm: dict[str, Any], model: str = "linear") -> Loaded:
    """A sparse problem in six dimensions; features have variance 0.75 and mean 0.5, which is exact in doubles."""
    truth = {} if model == "mean" else {"theta": {"1": Decimal("0.5"), "4": -1}}
    content: dict[str, Any] = {
        "study": {"name": "constants", "seed": 7, "repetitions": 2},
        "problem": {"kind": "records", "model": model, "dimension": 6, **truth},
        "records": {"features": "uniform(-1, 2)", "tail": Decimal("0.5"), "moment": 7},
        "grid": {"n": [N], "epsilon": [1], "delta": [Decimal("1e-5")]},
        "arm": [arm],
    }
    content["records"] |= {"noise": "centred pareto(1.6)"} if model == "linear" else {}
    return build(content, Path())


def asked(loaded: Loaded) -> list[Task]:
    room, tasks = in_process(loaded.study, loaded.theta, 1), list[Task]()

    def ask(sent: list[bytes]) -> list[bytes]:
        tasks.extend(map(decode_task, sent))
        return room.ask(sent)

    list(play_records(loaded.study, Cell(N, 0, 2), ask, room.server))
    return tasks


def found(loaded: Loaded) -> list[list[float]]:
    return [outcome.theta.tolist() for outcome in run_cell(loaded.study, loaded.theta, Cell(N, 0, 2), 1)]


@pytest.mark.parametrize(("trust", "estimator"), ESTIMATORS)
def test_the_constants_of_the_law_said_by_hand_give_the_same_bits(trust: str, estimator: str) -> None:
    arm = {"trust": trust, "estimator": estimator, "sparsity": 2}
    assert found(study(arm | KNOWN)) == found(study(arm))


def test_other_constants_give_the_step_and_the_rounds_of_the_theorem() -> None:
    """eta = 2 / (3 gamma) is in a curator's task; T = ceil((gamma / mu) log(n) / (2 log 3)) rounds are asked."""
    arm = {"trust": "central", "estimator": "algorithm-5", "sparsity": 2}
    tasks = asked(study(arm | {"curvature": Decimal("0.5"), "smoothness": 2}))
    assert {task.menu[0].get("step") for task in tasks} == {Decimal("0.333333333333")}
    assert {task.round for task in tasks} == set(range(math.ceil(4 * math.log(N) / (2 * math.log(3)))))


def test_a_constant_that_is_not_said_is_that_of_the_law() -> None:
    """mu = 0.75, gamma = 1.75 of the law; a number of rounds, or a step, goes before what constants say."""
    arm = {"trust": "central", "estimator": "hard-thresholding", "sparsity": 2}
    smooth = asked(study(arm | {"smoothness": 3}))
    assert len(smooth) == math.ceil(4 * math.log(N) / (2 * math.log(3)))
    curved = asked(study(arm | {"curvature": Decimal("1.75"), "step": Decimal("0.1")}))
    assert len(curved) == math.ceil(math.log(N) / (2 * math.log(3)))
    assert {task.menu[0].get("step") for task in curved} == {Decimal("0.1")}
    few = asked(study(arm | {"smoothness": 4, "rounds": 2}))
    assert len(few) == 2 and {task.menu[0].get("step") for task in few} == {Decimal("0.166666666667")}


@pytest.mark.parametrize(
    ("support", "smoothness", "kept"),
    [(1, "1", 1), (1, "1.5", 3), (2, "1.5", 5), (1, "1.41421356", 2), (1, "1.41421357", 3), (2, "9", 6)],
)
def test_a_support_keeps_as_many_coordinates_as_the_theorem_says(support: int, smoothness: str, kept: int) -> None:
    """ceil((gamma / mu)^2 s*) of six, in exact numbers, as tasks and answers have it."""
    said = {"support": support, "curvature": 1, "smoothness": Decimal(smoothness), "rounds": 2}
    loaded = study({"trust": "central", "estimator": "hard-thresholding", **said})
    assert {task.menu[0].get("sparsity") for task in asked(loaded)} == {Decimal(kept)}
    assert {int(np.count_nonzero(theta)) for theta in found(loaded)} == {kept}


BOTH = {"curvature": 1, "smoothness": 2}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"sparsity": 2, "support": 1, **BOTH}, "not both"),
        ({"support": 7, **BOTH}, r"a support in 1\.\.6"),
        ({"support": Decimal("1.5"), **BOTH}, "whole number as support"),
        ({"support": 1}, "curvature and smoothness beside support"),
        ({"support": 1, "smoothness": 2}, "curvature and smoothness beside support"),
        ({"sparsity": 2, "rounds": 2, "step": 1, **BOTH}, "no curvature and no smoothness"),
        ({"sparsity": 2, "rounds": 2, **BOTH}, "no curvature where nothing"),
        ({"sparsity": 2, "curvature": 3, "smoothness": 2}, "curvature <= smoothness"),
        ({"sparsity": 2, "rounds": "theory", **BOTH}, "no rounds"),
    ],
)
def test_constants_that_decide_nothing_or_not_enough_are_refused_when_read(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(StudyError, match=reason):
        study({"trust": "central", "estimator": "algorithm-5", **said})


def test_a_mean_has_no_constants() -> None:
    with pytest.raises(StudyError, match="of a mean"):
        study({"trust": "central", "estimator": "algorithm-5", "sparsity": 2, "smoothness": 1}, "mean")


def test_a_constant_that_contradicts_the_law_is_refused_before_anybody_is_asked() -> None:
    with pytest.raises(StudyError, match=r"expected curvature <= smoothness, got 2 > 1\.75"):
        asked(study({"trust": "central", "estimator": "algorithm-5", "sparsity": 2, "curvature": 2}))
