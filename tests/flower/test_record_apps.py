"""Rounds about records over both Flower apps: the bits of the in-process runtime, and what missing holders change."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict

from client.sources.synthetic import write_truth
from protocol.arms import Arm
from protocol.codec import decode_bundle, decode_reply, decode_task
from protocol.laws import Law
from protocol.messages import Task
from protocol.parcel import parcel_of
from protocol.record_law import RecordLaw
from protocol.runconfig import read, write
from protocol.study import Study, cells
from protocol.trust import Trust
from server.app import RunFailed
from server.app import app as server_app
from server.outcome import Outcome
from server.outcome_record import cell_name, decode
from studies.in_process import run_cell
from studies.load import build

SameBits = Callable[[Study, np.ndarray, int], list[Outcome]]
Virtual = Callable[[int], list[dict[str, Any]]]
THETA = np.array([0.5, 0.0, -0.5])
ROUNDS = Decimal(4)
MOVES = (("rounds", ROUNDS), ("step", Decimal("0.25")))


def study(model: str, *arms: Arm) -> Study:
    """Few records of a heavy-tailed law."""
    assumed = {"tail": Decimal("0.5"), "moment": 16}
    law = {"features": "pareto(1.6)"} if model == "mean" else {"features": "uniform(0, 1)", "noise": "student-t(2.5)"}
    content = {
        "study": {"name": "records", "seed": 3, "repetitions": 2},
        "problem": {"kind": "records", "model": model, "dimension": 3, "bound": 2},
        "records": law | assumed,
        "grid": {"n": [60], "epsilon": [Decimal("0.9")], "delta": [Decimal("1e-5")]},
        "arm": [{"trust": "none", "estimator": "zero"}],
    }
    content["problem"] |= {} if model == "mean" else {"theta": [float(value) for value in THETA]}
    return replace(build(content, Path()).study, arms=arms)


MEANS = study(
    "mean",
    Arm(Trust.CLEAR, "none", "mean"),
    Arm(Trust.CENTRAL, "gaussian-classical", "algorithm-1"),
    Arm(Trust.CENTRAL, "gaussian-classical", "algorithm-3"),
    Arm(Trust.CENTRAL, "gaussian", "mean"),
    Arm(Trust.CENTRAL, "gaussian", "mean", (("threshold", "private"),)),
    Arm(Trust.CENTRAL, "gaussian", "median-of-means", (("groups", Decimal(6)),)),
    Arm(Trust.CENTRAL, "gaussian", "mean", (("aggregate", "trimmed-mean"), ("trim", Decimal("0.1")))),
    *(Arm(Trust.LOCAL, mechanism, "mean") for mechanism in ("laplace", "piecewise", "duchi-cube", "gaussian")),
)
DESCENTS = study(
    "linear",
    Arm(Trust.CLEAR, "none", "descent", MOVES),
    Arm(Trust.CENTRAL, "gaussian", "descent", MOVES),
    Arm(Trust.CENTRAL, "gaussian", "descent", (("batches", "disjoint"), *MOVES)),
    Arm(Trust.CENTRAL, "gaussian-classical", "algorithm-2-convex", MOVES),
    Arm(Trust.CENTRAL, "gumbel-gaussian", "hard-thresholding", (MOVES[0], ("sparsity", Decimal(2)), MOVES[1])),
    Arm(Trust.LOCAL, "piecewise", "descent", MOVES),
)


@pytest.mark.parametrize("clients", [1, 3, 7])
@pytest.mark.parametrize("asked", [MEANS, DESCENTS], ids=["means", "descents"])
def test_every_arm_has_the_bits_of_the_in_process_runtime(same_bits: SameBits, asked: Study, clients: int) -> None:
    assert read(write(asked)).study.fingerprint == asked.fingerprint
    same_bits(asked, THETA, clients)


@pytest.fixture
def outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the server leaves outcomes."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    return tmp_path


def play(grid: Any, nodes: list[dict[str, Any]], asked: Study, change: Any, **config: Any) -> None:
    told = {**write(asked), "truth": write_truth(THETA), "deadline": 0.3, **config}
    room = grid(nodes, told)
    room.change = change
    server_app(room, Context(1, 1, {}, RecordDict(), told))


def tasks_of(message: Message) -> list[Task]:
    raw = parcel_of(message.content)
    return [decode_task(task) for task in decode_bundle(raw)]


def test_a_round_is_one_message_to_each_node_and_theta_travels(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    seen: dict[int, list[list[Task]]] = {}

    def note(asked: Message, reply: Message) -> list[Message]:
        seen.setdefault(asked.metadata.dst_node_id, []).append(tasks_of(asked))
        return [reply]

    play(grid, virtual(3), DESCENTS, note, mode="strict")
    told = (outcomes / "rounds.txt").read_text("utf-8").splitlines()
    first, *others = seen.values()
    assert len(first) == len(told) == int(ROUNDS) and all(len(other) == len(first) for other in others)
    for index, (tasks, line) in enumerate(zip(first, told, strict=True)):
        assert f"{len(tasks)} tasks, " in line and {task.round for task in tasks} == {index}
        moved = [task.theta is not None and bool(np.any(task.theta)) for task in tasks]
        assert all(moved) if index else not any(moved)


# Who does not answer is missing from n, and from nothing else


def silent(*nodes: int, after: int = 0) -> Callable[[Message, Message], list[Message]]:
    """Nodes that answer `after` messages and no more."""
    answered = dict.fromkeys(nodes, 0)

    def change(asked: Message, reply: Message) -> list[Message]:
        node = asked.metadata.dst_node_id
        if node in answered:
            answered[node] += 1
        return [reply] if answered.get(node, 0) <= after or node not in answered else []

    return change


def found(folder: Path, asked: Study) -> list[Outcome]:
    (cell,) = cells(asked)
    return [decode(line, asked) for line in (folder / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()]


def sums_of(message: Message) -> np.ndarray:
    """The exact sums in a node's reply to one central task: (repetitions, d)."""
    (reply,) = decode_bundle(parcel_of(message.content))
    found = decode_reply(reply)
    assert isinstance(found, list)
    (signed,) = found
    return np.asarray(signed.report.payload.values[:, 0], dtype=np.float64)


STEP = (("average", "last"), ("project", "none"), ("rounds", Decimal(1)), ("step", Decimal(1)))


@pytest.mark.parametrize(
    "asked",
    [
        study("mean", Arm(Trust.CENTRAL, "gaussian", "mean")),
        study("mean", Arm(Trust.CENTRAL, "gaussian-classical", "algorithm-1")),
        study("linear", Arm(Trust.CENTRAL, "gaussian", "descent", STEP)),
    ],
    ids=["mean", "algorithm-1", "descent"],
)
def test_missing_holders_change_n_and_leave_the_noise_of_the_sum(
    grid: Any, virtual: Virtual, outcomes: Path, asked: Study
) -> None:
    """n theta is a sum and its noise: without a node it is smaller by that node's sum, so the noise is the same."""
    lost = []

    def drop(message: Message, reply: Message) -> list[Message]:
        if message.metadata.dst_node_id != 102:
            return [reply]
        lost.append(sums_of(reply))
        return []

    play(grid, virtual(4), asked, drop, mode="live")
    whole = list(run_cell(asked, THETA, cells(asked)[0]))
    ((missing,), part) = lost, found(outcomes, asked)
    for one, all_of_them, own in zip(part, whole, missing, strict=True):
        np.testing.assert_allclose(60 * all_of_them.theta - 45 * one.theta, -own, rtol=0, atol=1e-9)
        assert one.claim == all_of_them.claim and one.claim is not None
        assert one.warnings == ("rows-missing: 15 answers missing over all rounds",) and not all_of_them.warnings


def test_the_noise_of_a_median_is_that_of_its_smallest_group(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    """2 tau sqrt(d) / g: where one of two groups of 30 keeps 15, twice as much. Of zeros the median is 0."""
    asked = replace(
        study("mean", Arm(Trust.CENTRAL, "gaussian-classical", "algorithm-3", (("groups", Decimal(2)),))),
        records=RecordLaw(Law.parse("constant(0)", "features"), tail=Decimal("0.5"), moment=Decimal(16)),
    )
    play(grid, virtual(4), asked, silent(101), mode="live")
    whole = list(run_cell(asked, THETA, cells(asked)[0]))
    for one, all_of_them in zip(found(outcomes, asked), whole, strict=True):
        np.testing.assert_allclose(one.theta, 2 * all_of_them.theta, rtol=1e-12)


def test_a_median_of_noisy_means_leaves_out_groups_without_an_answer(
    grid: Any, virtual: Virtual, outcomes: Path
) -> None:
    """Of four groups, each a node's, three are left: the claim is each group's, and stays."""
    asked = study("mean", Arm(Trust.CENTRAL, "gaussian", "median-of-means", (("groups", Decimal(4)),)))
    play(grid, virtual(4), asked, silent(101), mode="live")
    for outcome in found(outcomes, asked):
        assert outcome.warnings == ("rows-missing: 15 answers missing over all rounds",) and outcome.claim is not None


def test_a_node_that_goes_in_the_middle_is_missing_from_then_on(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    """Groups of rows that were all its own are left out of medians."""
    kept = tuple(arm for arm in DESCENTS.arms if arm.get("batches") != "disjoint" and arm.trust is not Trust.LOCAL)
    asked = replace(DESCENTS, arms=kept)
    play(grid, virtual(4), asked, silent(103, after=2), mode="live")
    assert len((outcomes / "rounds.txt").read_text("utf-8").splitlines()) == int(ROUNDS)
    whole = list(run_cell(asked, THETA, cells(asked)[0]))
    for outcome, all_of_them in zip(found(outcomes, asked), whole, strict=True):
        assert outcome.warnings[-1] == "rows-missing: 30 answers missing over all rounds"
        assert outcome.claim == all_of_them.claim and outcome.coins == all_of_them.coins == "addressed"


def test_local_reports_of_those_who_answered_count(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    asked = study("mean", Arm(Trust.LOCAL, "piecewise", "mean"))
    play(grid, virtual(4), asked, silent(101), mode="live")
    assert {outcome.warnings for outcome in found(outcomes, asked)} == {
        ("rows-missing: 15 answers missing over all rounds",)
    }


@pytest.mark.parametrize("trust", [Trust.CENTRAL, Trust.LOCAL])
def test_a_round_that_nobody_answers_fails_and_says_which(
    grid: Any, virtual: Virtual, outcomes: Path, trust: Trust
) -> None:
    """Batches are runs of rows: the node that has all of one is gone."""
    mechanism = "gaussian" if trust is Trust.CENTRAL else "piecewise"
    options = (("batches", "disjoint"), *MOVES)
    asked = study("linear", Arm(trust, mechanism, "descent", options))
    with pytest.raises(RunFailed) as caught:
        play(grid, virtual(4), asked, silent(102, after=1), mode="live")
    expected = f"expected somebody to answer round 2 of the {trust.label} task at n = 60, epsilon = 0.9"
    assert expected in str(caught.value) and "15 rows were asked" in str(caught.value)


def test_a_strict_run_insists_on_every_row(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    with pytest.raises(RunFailed, match="expected a reply of node 102, got none"):
        play(grid, virtual(4), DESCENTS, silent(102, after=1), mode="strict")
