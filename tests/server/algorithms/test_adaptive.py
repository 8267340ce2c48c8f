"""Thresholds that follow a quantile: where they go without noise, what they cost, and counts that no rows can have."""

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.labeler import answer
from protocol.codec import decode_reply, decode_task, encode_task, identity
from protocol.grid import to_integers
from protocol.messages import Code, Mechanism, Refusal, Report, Task
from protocol.privacy import Unit
from protocol.record_terms import Bounded, squared_sensitivity
from protocol.study import Cell
from server.algorithms.adaptive import LEAST, MOST, WEIGHT
from server.algorithms.steps import Room
from server.algorithms.thresholds_private import by_selection
from server.collect_records import check_records
from server.record_rounds import play_records
from studies.in_process import InProcess, in_process
from studies.load import Loaded, build

DESCENT = {"trust": "central", "estimator": "descent", "rounds": 30, "step": Decimal("0.5"), "threshold": "adaptive"}


def study(epsilon: str, dimension: int = 1, n: int = 4000, **options: object) -> Loaded:
    content = {
        "study": {"name": "adaptive", "seed": 11, "repetitions": 1},
        "problem": {"kind": "records", "model": "mean", "dimension": dimension},
        "records": {"features": "pareto(1.6)"},
        "grid": {"n": [n], "epsilon": [Decimal(epsilon)], "delta": [Decimal("1e-5")]},
        "arm": [DESCENT | options],
    }
    return build(content, Path())


def played(loaded: Loaded) -> tuple[InProcess, list[Task]]:
    room, asked = in_process(loaded.study, loaded.theta, 1), []

    def ask(tasks: list[bytes]) -> list[bytes]:
        asked.extend(map(decode_task, tasks))
        return room.ask(tasks)

    list(play_records(loaded.study, Cell(loaded.study.grid.n[0], 0, 1), ask, room.server))
    return room, asked


def test_with_hardly_any_noise_the_threshold_ends_at_the_quantile_of_gradients() -> None:
    """At the last theta, whose records are drawn again; from both sides. Steps are of 2 % in the end."""
    for first in ("0.1", "200"):
        room, asked = played(study("900", quantile=Decimal("0.9"), rate=3, first=Decimal(first)))
        last = asked[-1]
        assert last.theta is not None
        source = room.nodes[0].source
        features, _, _ = source.records(last, 0, np.arange(4000)).reveal()
        sizes = np.abs(features[:, 0, 0] - last.theta[0, 0])
        threshold = float(last.menu[0].get("threshold") or 0)
        assert (sizes <= threshold).mean() == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("dimension", [1, 4, 100])
def test_the_count_takes_its_share_of_the_budget_and_no_more(norm: str, dimension: int) -> None:
    _, asked = played(study("1", dimension, n=100, rounds=3, norm=norm))
    for task in asked:
        how = Bounded.of(task.menu[0])
        with_count = squared_sensitivity(how, -40, dimension)
        without = squared_sensitivity(replace(how, counted=0.0), -40, dimension)
        assert 1 < with_count / without <= (1 + WEIGHT**2) * (1 + 1e-9)
        assert LEAST <= how.threshold <= MOST and how.rounds == 3


def asked_of(loaded: Loaded, name: str) -> tuple[InProcess, Task]:
    room, cell = in_process(loaded.study, loaded.theta, 1), Cell(50, 0, 1)
    (arm,) = loaded.study.arms
    whole = Room(loaded.study, cell, room.server, arm, Decimal(1), Decimal("1e-5"), Unit.RECORD)
    if name == "exceedances":
        return room, next(by_selection(whole))[0]
    how = Bounded(1.0, rounds=2, counted=0.25)
    return room, whole.task(how, counted=Decimal("0.25"), first=Decimal(1), rate=Decimal(1), quantile=Decimal("0.9"))


@pytest.mark.parametrize("name", ["exceedances", "gaussian"])
def test_counts_that_no_rows_can_have_are_rejected(name: str) -> None:
    room, task = asked_of(study("1", n=50), name)
    reply = decode_reply(answer(encode_task(task), room.nodes[0]))
    assert isinstance(reply, list)
    report, rows = reply[0].report, np.arange(50)
    check_records(task, report, rows)
    assert task.exponent is not None
    to_integers(report.payload.values, task.exponent)

    def refused(change: dict[int, float], message: str) -> None:
        values = report.payload.values.copy()
        for place, value in change.items():
            values[0, 0, place] = value
        with pytest.raises(ValueError, match=message):
            check_records(task, changed(report, values), rows)

    if name == "exceedances":
        message = "numbers of rows out of 50 that fall"
        for change in ({-1: 1.0, -2: 0.0}, {0: 51.0}, {-1: -1.0}, {-1: 0.5}, {0: 3.0, 1: 4.0}):
            refused(change, message)
    else:
        refused({-1: 50 * 0.25 + 0.25}, "count of contributions beyond")
        refused({-1: -0.25}, "count of contributions beyond")
        refused({0: 51.0}, "larger than 50 rows can have")
    refused({0: math.nan}, "finite")


def changed(report: Report, values: np.ndarray) -> Report:
    return replace(report, payload=replace(report.payload, values=values))


@pytest.mark.parametrize(
    "change",
    [
        {"highest": None},
        {"lowest": Decimal("0.5")},
        {"threshold": Decimal(2)},
        {"rounds": Decimal(2)},
        {"rows": Decimal(1)},
        {"counted": Decimal("0.5")},
        {"highest": Decimal(2000)},
    ],
)
def test_clients_refuse_what_is_no_count(change: dict[str, Decimal | None]) -> None:
    room, task = asked_of(study("1", n=50), "exceedances")
    parameters = {k: v for k, v in (dict(task.menu[0].parameters) | change).items() if v is not None}
    raw = encode_task(replace(task, menu=(Mechanism.of("exceedances", **parameters),)))
    assert decode_reply(answer(raw, room.nodes[0])) == Refusal(identity(raw), Code.TASK_INVALID)
