"""Means of holders in two stages: the moment that is assumed of the second, and who answers in which."""

import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from protocol.codec import decode_task
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.study import Cell
from server.algorithms.bounds import central_bound
from server.algorithms.recentred import pilot_error, recentred_moment
from server.algorithms.steps import Room
from server.record_rounds import play_records
from studies.in_process import in_process
from studies.load import Loaded, build


def study(arm: dict, per_holder: int, n: int = 400) -> Loaded:
    content = {
        "study": {"name": "holders", "seed": 5, "repetitions": 2},
        "problem": {"kind": "records", "model": "mean", "dimension": 1},
        "records": {"features": "pareto(1.6)", "tail": Decimal("0.5"), "moment": 16, "per_holder": per_holder},
        "grid": {"n": [n], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
        "arm": [arm],
    }
    return build(content, Path())


def room_of(loaded: Loaded) -> Room:
    (arm,), cell = loaded.study.arms, Cell(loaded.study.grid.n[0], 0, 2)
    server = in_process(loaded.study, loaded.theta, 1).server
    return Room(loaded.study, cell, server, arm, Decimal(1), Decimal("1e-5"), Unit.HOLDER)


def asked_by(loaded: Loaded) -> list[Task]:
    whole, asked = in_process(loaded.study, loaded.theta, 3), []

    def ask(tasks: list[bytes]) -> list[bytes]:
        asked.extend(map(decode_task, tasks))
        return whole.ask(tasks)

    list(play_records(loaded.study, Cell(loaded.study.grid.n[0], 0, 2), ask, whole.server))
    return asked


@pytest.mark.parametrize("trust", ["central", "local"])
def test_each_holder_answers_in_one_half_and_the_second_at_the_centre(trust: str) -> None:
    first, second = asked_by(study({"trust": trust, "estimator": "recentred-mean", "recentre": "always"}, 100, n=401))
    assert first.rows is not None and second.rows is not None
    assert first.rows.numbers().tolist() == list(range(200))
    assert second.rows.numbers().tolist() == list(range(200, 401))
    assert first.theta is None and second.theta is not None and second.theta.shape == (2, 1)
    assert first.epsilon == second.epsilon == 1 and first.unit is Unit.HOLDER
    assert second.menu[0].get("threshold") < first.menu[0].get("threshold")


def test_few_records_of_a_holder_are_not_recentred_unless_an_arm_says_so() -> None:
    arm = {"trust": "central", "estimator": "recentred-mean"}
    assert [len(asked_by(study(arm, count, n=4000))) for count in (1, 9, 10, 100)] == [1, 1, 1, 2]
    given = arm | {"recentred_moment": 8}
    assert [len(asked_by(study(given, count))) for count in (1, 9, 10)] == [1, 1, 2]
    assert len(asked_by(study(arm | {"recentre": "always"}, 2))) == 2


@pytest.mark.parametrize("trust", ["central", "local"])
def test_the_moment_of_the_second_stage_covers_the_truth(trust: str) -> None:
    """u_c of Pareto(1.6), and the (1 + v)-th moment of means of k about a centre at the bound of the first stage."""
    loaded = study({"trust": trust, "estimator": "recentred-mean"}, 100, n=2000)
    room, mean = room_of(loaded), 1.6 / 0.6
    central = quad(lambda u: abs(u ** (-1 / 1.6) - mean) ** 1.5, 0, 1, points=[mean**-1.6], limit=500)[0]
    assert central <= 2**0.5 * 16
    drawn = np.random.default_rng(1).random((4000, 100)) ** (-1 / 1.6)
    for error in (0.0, 1.0, 3.0):
        found = float((np.abs(drawn.mean(axis=1) - mean - error) ** 1.5).mean())
        assert found < recentred_moment(room, 100, error)
    assert recentred_moment(room, 100, 0.0) == pytest.approx(recentred_moment(room, 1, 0.0) * 1.99 / 10)


def test_the_error_of_the_first_stage_is_above_what_happens() -> None:
    """The root of the mean square over 200 repetitions; the tail is heavier than what is assumed by little."""
    loaded = study({"trust": "central", "estimator": "recentred-mean"}, 1, n=1000)
    room, how = room_of(loaded), central_bound(room_of(loaded), 1000)
    drawn = np.minimum(np.random.default_rng(2).random((200, 1000)) ** (-1 / 1.6), how.threshold).mean(axis=1)
    noise = 2 * how.threshold * 3.7305 / 1000 * np.random.default_rng(3).standard_normal(200)
    assert math.sqrt(((drawn + noise - 1.6 / 0.6) ** 2).mean()) < pilot_error(room, how, 1000)
