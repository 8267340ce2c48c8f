"""Sessions over both Flower apps and a Grid in memory: the bits of the in-process runtime, and nodes that drop out."""

import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict

from client.sources.synthetic import write_truth
from protocol.arms import Arm
from protocol.codec import decode_task, decode_tasks
from protocol.errors import WireError
from protocol.parcel import parcel_of
from protocol.runconfig import read, write
from protocol.secure.codec import decode_ask
from protocol.secure.messages import SessionAsk, Stage
from protocol.study import Study, cells
from protocol.trust import Trust
from server.app import RunFailed
from server.app import app as server_app
from server.outcome_record import cell_name, decode, encode
from studies.in_process import run_cell
from studies.load import build

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
N = 60


def study_of(honest: str = "0.6") -> Study:
    """A distributed arm of each law, and a central and a local one beside them."""
    study = read({}).study
    counted = (("honest", Decimal(honest)), ("survivors", Decimal(honest)))
    shares = [Arm(Trust.DISTRIBUTED, law, "mle", counted) for law in ("skellam", "discrete-gaussian", "binomial")]
    others = [arm for arm in study.arms if arm.estimator in ("mle", "rr-mle")]
    return replace(study, repetitions=2, grid=replace(study.grid, n=(N,)), arms=(*others, *shares))


def asks(message: Message) -> Iterator[SessionAsk]:
    """What a message asks of sessions."""
    for raw in decode_tasks(parcel_of(message.content))[0]:
        with suppress(WireError):
            yield decode_ask(raw)


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_sessions_over_flower_open_the_sums_of_one_process(
    same_bits: Callable[[Study, np.ndarray, int], list[Any]], clients: int
) -> None:
    outcomes = same_bits(study_of(), THETA, clients)
    assert sum(outcome.arm.trust is Trust.DISTRIBUTED for outcome in outcomes) == 3 * 2 * len(study_of().grid.epsilon)


@pytest.mark.parametrize("clients", [2, 5])
def test_a_process_of_many_clients_opens_the_same_sums(clients: int) -> None:
    study = study_of()
    (cell,) = cells(study)
    one, many = (list(run_cell(study, THETA, cell, count)) for count in (1, clients))
    assert [encode(outcome, study) for outcome in one] == [encode(outcome, study) for outcome in many]


def live(grid: Any, folder: Path, study: Study, lost: dict[Stage, set[int]], config: Any) -> list[Any]:
    """A live run of ten nodes, some of which are gone from a stage on; its outcomes."""

    grid.sent = list[Message]()

    def change(asked: Message, reply: Message) -> list[Message]:
        grid.sent.append(asked)
        for ask in asks(asked):
            if any(asked.metadata.dst_node_id in nodes for when, nodes in lost.items() if when <= ask.stage):
                return []
        return [reply]

    grid.change = change
    server_app(grid, Context(1, 1, {}, RecordDict(), config))
    (cell,) = cells(study)
    lines = (folder / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
    return [decode(line, study) for line in lines]


def test_a_live_run_goes_on_without_nodes_that_drop_out(
    grid: Any, virtual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate is of the rows whose input came; its numbers are finite, and rows are counted."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    study = replace(study_of(), arms=study_of().arms[-3:-2])
    config = {**write(study), "truth": write_truth(THETA), "deadline": 1.0, "clients": 10, "mode": "live"}
    lost = {Stage.SHARES: {101}, Stage.INPUT: {104, 108}, Stage.OPENING: {102}}
    found = live(grid(virtual(10), config), tmp_path, study, lost, config)
    assert found and all(np.isfinite(outcome.theta).all() and outcome.claim for outcome in found)


def test_a_live_run_with_too_few_left_opens_nothing_and_says_why(
    grid: Any, virtual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    study = replace(study_of("0.9"), arms=study_of("0.9").arms[-3:-2])
    config = {**write(study), "truth": write_truth(THETA), "deadline": 0.5, "clients": 10, "mode": "live"}
    with pytest.raises(RunFailed, match=r"expected at least 54 rows \(least\) at stage INPUT, got 48"):
        live(grid(virtual(10), config), tmp_path, study, {Stage.INPUT: {104, 108}}, config)


def test_a_session_that_failed_is_asked_for_again_under_another_attempt(
    grid: Any, virtual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task of the second session says so: it has another name, hence other keys and masks, and opens."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    study = replace(study_of("0.9"), arms=study_of("0.9").arms[-3:-2])
    config = {**write(study), "truth": write_truth(THETA), "deadline": 0.5, "clients": 10, "mode": "live"}
    with pytest.raises(RunFailed):
        live(grid(virtual(10), config), tmp_path, study, {Stage.INPUT: {104, 108}}, config)
    again, room = {**config, "attempt": 1}, grid(virtual(10), {**config, "attempt": 1})
    found = live(room, tmp_path, study, {}, again)
    assert len(found) == 2 * len(study.grid.epsilon) and all(np.isfinite(outcome.theta).all() for outcome in found)
    asked = [ask for message in room.sent for ask in asks(message) if ask.stage is Stage.KEYS]
    assert asked and {decode_task(raw).attempt for ask in asked for raw in ask.tasks} == {1}


@pytest.mark.slow
def test_a_live_descent_goes_on_without_nodes_that_drop_out(
    grid: Any, virtual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node is gone from a stage of the first round's session on: the second round's session is one of the others."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    text = f"""
study = {{ name = "rounds", seed = 11, repetitions = 2 }}
problem = {{ kind = "records", model = "mean", dimension = 3, bound = 2 }}
records = {{ features = "student-t(3)", tail = 1, moment = 4 }}
grid = {{ n = [{N}], epsilon = [1.0], delta = [1e-5] }}
arm = [{{ trust = "distributed", estimator = "descent", rounds = 2, survivors = 0.8 }}]
"""
    loaded = build(tomllib.loads(text, parse_float=Decimal), Path())
    study, theta = loaded.study, loaded.theta
    config = {**write(study), "truth": write_truth(theta), "deadline": 1.0, "clients": 10, "mode": "live"}
    room = grid(virtual(10), config)
    found = live(room, tmp_path, study, {Stage.INPUT: {104}}, config)
    assert found and all(np.isfinite(outcome.theta).all() and outcome.claim for outcome in found)
    assert any("12 answers missing over all rounds" in text for text in found[0].warnings)
    sessions = [ask for message in room.sent for ask in asks(message) if ask.stage is Stage.CONSENT]
    assert {len(ask.survivors) for ask in sessions} == {9} and len({ask.session for ask in sessions}) == 2
