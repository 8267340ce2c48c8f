"""Aggregators of arms about records: what comes out, with which noise, at which cost, and which arms are refused."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from client.choice import TaskInvalid
from client.record_choice import execute
from protocol.aggregates import AGGREGATES
from protocol.codec import Signed, decode_reply, decode_task, encode_reply, encode_report
from protocol.coins import Address, Stream, normal, words
from protocol.messages import Task
from protocol.record_terms import Bounded, bounded, channel_of, run_of, squared_sensitivity
from protocol.strict import StudyError
from protocol.study import Cell
from protocol.trust import Trust
from server.aggregators import AGGREGATORS, central_refusal
from server.aggregators.arithmetic import mean_rows
from server.aggregators.base import Options
from server.mechanisms.composition import exact_epsilon, exact_noise_multiplier
from server.rounds import play
from studies.in_process import in_process
from studies.load import Loaded, build, restore

Floats = NDArray[np.float64]
N, REPETITIONS = 40, 2
CLEAR: dict[str, Any] = {"trust": "clear", "estimator": "mean"}
LOCAL, CENTRAL = {**CLEAR, "trust": "local", "mechanism": "piecewise", "coordinates": 3}, {**CLEAR, "trust": "central"}
OPTIONS: dict[str, dict[str, Any]] = {
    "coordinate-median": {},
    "median-of-means": {"groups": 8},
    "trimmed-mean": {"trim": Decimal("0.25")},
    "geometric-median": {},
    "krum": {"faulty": Decimal("0.2")},
    "multi-krum": {"faulty": Decimal("0.2")},
    "centred-clipping": {"radius": Decimal("1.5"), "steps": 2},
}
AS_NUMBERS = {
    "median-of-means": Options(groups=8),
    "trimmed-mean": Options(trim=10),
    "krum": Options(faulty=8),
    "multi-krum": Options(faulty=8),
    "centred-clipping": Options(radius=1.5, steps=2),
}


def study(*arms: dict[str, Any], epsilon: int = 1) -> Loaded:
    return build(
        {
            "study": {"name": "aggregates", "seed": 9, "repetitions": REPETITIONS},
            "problem": {"kind": "records", "model": "mean", "dimension": 3},
            "records": {"features": "centred pareto(1.6) + 1", "tail": Decimal("0.5"), "moment": 16},
            "grid": {"n": [N], "epsilon": [epsilon], "delta": [Decimal("1e-5")]},
            "arm": list(arms),
        },
        Path(),
    )


def seen(loaded: Loaded, clients: int = 1) -> tuple[list[Floats], list[tuple[Task, Floats]]]:
    """What an arm finds in each repetition, and its tasks with the payloads that one client answered."""
    room, heard = in_process(loaded.study, loaded.theta, clients), list[tuple[Task, Floats]]()

    def ask(raws: list[bytes]) -> list[bytes]:
        replies = room.ask(raws)
        for raw, reply in zip(raws, replies, strict=False):
            items: Any = decode_reply(reply)
            assert isinstance(items[0], Signed)
            heard.append((decode_task(raw), np.array(items[0].report.payload.values)))
        return replies

    found = [one.theta for one in play(loaded.study, Cell(N, 0, REPETITIONS), ask, room.server)]
    return found, heard


@pytest.mark.parametrize("arm", [CLEAR, LOCAL], ids=["clear", "local"])
@pytest.mark.parametrize("name", OPTIONS)
def test_reports_are_aggregated_as_they_are(name: str, arm: dict[str, Any]) -> None:
    found, ((task, values),) = seen(study({**arm, "aggregate": name, **OPTIONS[name]}))
    options = AS_NUMBERS.get(name, Options())
    assert task.trust is Trust.parse(arm["trust"]) and values.shape == (REPETITIONS, N, 3)
    for theta, reports in zip(found, values, strict=True):
        assert theta.tolist() == (-AGGREGATORS[name].function(reports, options)).tolist()


@pytest.mark.parametrize("name", ["coordinate-median", "median-of-means", "trimmed-mean"])
def test_a_coordinate_is_aggregated_over_those_who_report_it(name: str) -> None:
    """One of three coordinates each, scaled by three: medians over all would be medians of zeros."""
    found, ((_, values),) = seen(study({**LOCAL, "aggregate": name, "coordinates": 1, **OPTIONS[name]}))
    for theta, reports in zip(found, values, strict=True):
        assert ((reports != 0).sum(axis=1) == 1).all()
        for j in range(3):
            own = reports[reports[:, j] != 0, j : j + 1] / 3
            trim = Options(groups=min(8, len(own)), trim=len(own) // 4)
            assert theta[j] == pytest.approx(-AGGREGATORS[name].function(own, trim)[0], rel=1e-12)


def noise(repetition: int, round: int, count: int = 3) -> Floats:
    return normal(words(Address(9, Stream.CURATOR, N, repetition, round), 0, count))


def test_a_curator_trims_bounded_rows_and_adds_noise_for_that() -> None:
    arm = {**CENTRAL, "aggregate": "trimmed-mean", "trim": Decimal("0.25"), "threshold": 3}
    found, ((task, values),) = seen(study(arm))
    assert Bounded.of(task.menu[0]) == Bounded(3.0, kind="rows") and np.abs(values).max() == 3
    stddev = exact_noise_multiplier(Decimal(1), Decimal("1e-5")) * 2 * 3 * np.sqrt(3) / (N - 20)
    for repetition, theta in enumerate(found):
        plain = np.sort(values[repetition], axis=0)[10:30].mean(axis=0)
        np.testing.assert_allclose(theta, -(plain + stddev * noise(repetition, 0)), rtol=1e-12, atol=1e-12)


def test_a_mean_by_centred_clipping_is_a_few_exact_sums_that_share_the_claim() -> None:
    found, heard = seen(study({**CENTRAL, "aggregate": "centred-clipping", "threshold": 2, "steps": 3}))
    records = seen(study(CLEAR))[1][0][1]  # gradients at 0, -x
    assert [task.round for task, _ in heard] == [0, 1, 2] and len({run_of(task) for task, _ in heard}) == 1
    stddev = exact_noise_multiplier(Decimal(1), Decimal("1e-5"), 3) * 4 / N
    for repetition, theta in enumerate(found):
        at = np.zeros(3)
        for round in range(3):
            pulled = bounded(at + records[repetition], Bounded(2.0, "l2"))
            at = at - (mean_rows(pulled) + stddev * noise(repetition, round))
        np.testing.assert_allclose(theta, at, rtol=1e-9, atol=1e-9)


def test_a_descent_clips_around_its_last_release() -> None:
    arm = {**CENTRAL, "estimator": "descent", "rounds": 3, "aggregate": "centred-clipping", "threshold": 2}
    found, heard = seen(study({**arm, "average": "last", "step": Decimal("0.5")}))
    records = seen(study(CLEAR))[1][0][1]
    stddev = exact_noise_multiplier(Decimal(1), Decimal("1e-5"), 3) * 4 / N
    assert len({run_of(task) for task, _ in heard}) == 1
    for repetition, theta in enumerate(found):
        at, last = np.zeros(3), np.zeros(3)
        for round, (task, _) in enumerate(heard):
            assert task.centre is not None and np.allclose(task.centre[repetition], last, rtol=1e-9, atol=1e-9)
            last = last + mean_rows(bounded(at + records[repetition] - last, Bounded(2.0, "l2")))
            last = last + stddev * noise(repetition, round)
            at = at - 0.5 * last
        np.testing.assert_allclose(theta, at, rtol=1e-9, atol=1e-9)


def test_a_descent_of_local_reports_starts_clipping_at_the_last_output() -> None:
    arm = {**LOCAL, "estimator": "descent", "rounds": 2, "aggregate": "centred-clipping", "average": "last"}
    found, heard = seen(study(arm))
    for repetition, theta in enumerate(found):
        first, second = (values[repetition] for _, values in heard)
        function = AGGREGATORS["centred-clipping"].function
        start = function(first, Options())
        moved = function(second, Options(start=tuple(start.tolist())))
        assert theta.tolist() == (-start - moved).tolist()


@pytest.mark.parametrize("name", OPTIONS)
def test_no_aggregate_depends_on_who_has_which_rows(name: str) -> None:
    arms = [{**arm, "aggregate": name, **OPTIONS[name]} for arm in (CLEAR, LOCAL)]
    if name in ("trimmed-mean", "centred-clipping"):
        arms += [{**CENTRAL, "aggregate": name, **{k: v for k, v in OPTIONS[name].items() if k != "radius"}}]
    loaded = study(*arms)
    bits = {
        clients: [
            one.theta.tobytes()
            for room in [in_process(loaded.study, loaded.theta, clients)]
            for one in play(loaded.study, Cell(N, 0, REPETITIONS), room.ask, room.server)
        ]
        for clients in (1, 3, 7)
    }
    assert bits[1] == bits[3] == bits[7]


def test_one_liar_moves_a_mean_and_no_median() -> None:
    """A holder whose clear report is 1e100 everywhere."""

    def errors(**options: Any) -> float:
        loaded = study({**CLEAR, **options})
        room = in_process(loaded.study, loaded.theta, 1)

        def ask(raws: list[bytes]) -> list[bytes]:
            (reply,) = room.ask(raws)
            items: Any = decode_reply(reply)
            values = items[0].report.payload.values.copy()
            values[:, 7] = 1e100
            lie = replace(items[0].report, payload=replace(items[0].report.payload, values=values))
            return [encode_reply([(encode_report(lie), b"")])]

        return max(np.abs(one.theta).max() for one in play(loaded.study, Cell(N, 0, 2), ask, room.server))

    assert errors() > 1e98
    for name in ("coordinate-median", "geometric-median", "krum", "multi-krum", "trimmed-mean"):
        assert errors(aggregate=name, **OPTIONS[name]) < 20, name


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({**CLEAR, "trim": Decimal("0.1")}, "expected an aggregate beside trim"),
    ({**CLEAR, "groups": 4}, "expected an aggregate beside groups"),
    ({**CLEAR, "aggregate": "krum"}, "expected faulty beside aggregate = 'krum'"),
    ({**CLEAR, "aggregate": "mean", "trim": Decimal("0.1")}, "expected no trim beside"),
    ({**CLEAR, "aggregate": "trimmed-mean", "trim": Decimal("0.5")}, "expected trim below 0.5"),
    ({**CLEAR, "aggregate": "centred-clipping", "steps": Decimal("1.5")}, "whole number as steps"),
    ({**CLEAR, "aggregate": "median"}, "aggregate: expected one of"),
    ({**CENTRAL, "aggregate": "median-of-means", "groups": 4}, "estimator = 'median-of-means'"),
    ({**CENTRAL, "aggregate": "trimmed-mean", "trim": Decimal("0.1"), "norm": "l2"}, "trims each coordinate"),
    ({**CENTRAL, "aggregate": "centred-clipping", "radius": 1}, "as threshold under a central claim"),
    ({**CENTRAL, "aggregate": "centred-clipping", "shape": "truncate"}, "holders clip lengths"),
    ({**CENTRAL, "aggregate": "centred-clipping", "threshold": "private"}, "needs no look at records"),
    ({**CENTRAL, "aggregate": "centred-clipping", "estimator": "descent", "steps": 2}, "each of its rounds is one"),
    ({**LOCAL, "threshold": "paper"}, "expected threshold = 'mse', a number, or none"),
    ({**LOCAL, "coordinates": 4}, "expected coordinates in 1..3"),
    ({**LOCAL, "mechanism": "gaussian"}, "expected no coordinates beside gaussian"),
    ({**CLEAR, "threshold": "mse"}, "expected a number as threshold"),
    ({**CLEAR, "shape": "truncate"}, "expected a threshold beside shape"),
    ({**CENTRAL, "estimator": "algorithm-3", "threshold": "bound"}, "expected a number as threshold"),
]


@pytest.mark.parametrize(("arm", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_arms_that_do_not_go_together_are_refused_when_they_are_read(arm: dict[str, Any], text: str) -> None:
    with pytest.raises(StudyError, match=text):
        study(arm)


@pytest.mark.parametrize("name", [name for name, one in AGGREGATES.items() if one.refusal])
def test_no_central_claim_rests_on_what_one_report_moves_at_will(name: str) -> None:
    with pytest.raises(StudyError) as raised:
        study({**CENTRAL, "aggregate": name, **OPTIONS[name]})
    assert str(raised.value).endswith(str(central_refusal(name)))


def test_names_are_those_of_the_server() -> None:
    assert list(AGGREGATES) == list(AGGREGATORS)
    assert {name for name, one in AGGREGATES.items() if one.refusal} == {
        name for name, one in AGGREGATORS.items() if not one.central
    }


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_one_row_moves_what_is_kept_of_sorted_rows_no_further_than_a_sum(norm: str) -> None:
    """Every neighbour of every three rows of some two coordinates, in integers as a curator has them."""
    how = Bounded(2.0, norm)
    rows = [
        tuple(row.astype(int))
        for row in bounded(np.array(list(product((-2.0, -1, 0, 1, 2), repeat=2))), how)
        if norm == "linf" or np.hypot(*row) <= 2
    ]
    rows = sorted(set(rows))[:: 1 if norm == "l2" else 3]

    def kept(data: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
        return np.sort(np.array(data), axis=0)[1:-1].sum(axis=0)

    sums = {data: kept(data) for data in product(rows, repeat=3)}
    most = max(int(((total - sums[(*data[:2], other)]) ** 2).sum()) for data, total in sums.items() for other in rows)
    assert most <= squared_sensitivity(how, 0, 2)


def test_two_shares_that_are_left_out_are_two_tasks() -> None:
    arm = {**CENTRAL, "estimator": "mean", "aggregate": "trimmed-mean", "threshold": 3}
    loaded = study(*({**arm, "trim": Decimal(share)} for share in ("0.1", "0.2")))
    asked: list[Task] = []
    room = in_process(loaded.study, loaded.theta, 1)

    def ask(raws: list[bytes]) -> list[bytes]:
        asked.extend(map(decode_task, raws))
        return room.ask(raws)

    list(play(loaded.study, Cell(N, 0, REPETITIONS), ask, room.server))
    assert [task.menu[0].get("trim") for task in asked] == [Decimal("0.1"), Decimal("0.2")]


def test_an_arm_with_an_aggregate_is_restored_from_its_results() -> None:
    loaded = study(
        {**CLEAR, "aggregate": "krum", "faulty": Decimal("0.2")}, {**CENTRAL, "aggregate": "centred-clipping"}
    )
    again = restore(loaded.resolved, Path())
    assert again.sha256 == loaded.sha256


def local_rounds(ask_of: Callable[[Task], None]) -> Loaded:
    arm = {"trust": "local", "mechanism": "gaussian", "estimator": "descent", "rounds": 4, "batches": "all"}
    loaded = study(arm)
    for task, _ in seen(loaded)[1]:
        ask_of(task)
    return loaded


def test_gaussian_reports_over_rounds_are_one_claim_composed_exactly() -> None:
    asked: list[Task] = []
    loaded = local_rounds(asked.append)
    assert [(task.round, task.epsilon, task.delta) for task in asked] == [(t, 1, Decimal("1e-5")) for t in range(4)]
    assert len({run_of(task) for task in asked}) == 1 and run_of(asked[0]) is not None
    channel: Any = channel_of(asked[0].menu[0])
    multiplier = channel.stddev / (2 * channel.bound)
    level = exact_epsilon(Decimal("1e-5"), 4, multiplier)
    assert 1 - 1e-6 < level <= 1
    room = in_process(loaded.study, loaded.theta, 1)
    list(play(loaded.study, Cell(N, 0, REPETITIONS), room.ask, room.server))
    (charge,) = room.nodes[0].ledger.totals.values()  # type: ignore[attr-defined]
    assert (charge.epsilon, charge.delta) == (1, Decimal("1e-5"))


def test_a_round_beyond_a_shared_claim_is_refused() -> None:
    asked: list[Task] = []
    local_rounds(asked.append)
    execute(asked[3])
    with pytest.raises(TaskInvalid, match="round below 4"):
        execute(replace(asked[3], round=4))
