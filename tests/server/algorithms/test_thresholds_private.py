"""Thresholds chosen by looking: levels on the executed path, budgets that add up, bits, and who is refused."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.records import Records
from protocol.codec import decode_task, identity
from protocol.messages import Runs, Task
from protocol.privacy import Unit
from protocol.record_arms import EXCEEDANCES
from protocol.record_terms import run_of
from protocol.strict import StudyError
from protocol.study import Cell
from server.algorithms import thresholds_private
from server.algorithms.steps import Room
from server.algorithms.thresholds_private import ONE, Rule, by_histogram, by_selection, parts
from server.choice_record import ChoiceRequest, SimulatedChoice
from server.curator import LiveCurator
from server.evidence import Server
from server.listening import listen
from server.mechanisms.exact_choices import HISTOGRAM, Chooser
from server.record_rounds import play_records
from server.release import ReleaseLedger
from studies.in_process import InProcess, in_process
from studies.load import Loaded, build

CENTRAL, LOCAL = {"trust": "central"}, {"trust": "local", "mechanism": "hybrid"}
MEANS = [
    CENTRAL | {"estimator": "mean", "threshold": "private"},
    CENTRAL | {"estimator": "mean", "threshold": "private", "norm": "l2", "choice_share": Decimal("0.123456789")},
    CENTRAL | {"estimator": "mean", "threshold": "histogram"},
    LOCAL | {"estimator": "mean", "threshold": "private"},
    LOCAL | {"estimator": "recentred-mean", "recentre": "always"},
    CENTRAL | {"estimator": "recentred-mean", "recentre": "always"},
]
DESCENTS = [
    CENTRAL | {"estimator": "descent", "rounds": 3, "step": Decimal("0.5")} | more
    for more in (
        {"threshold": "private"},
        {"threshold": "histogram", "batches": "disjoint"},
        {"threshold": "adaptive"},
        {"threshold": "adaptive", "norm": "l2", "first": 3, "rate": 1, "quantile": Decimal("0.9")},
    )
]
ARMS = MEANS + DESCENTS


def study(arms: Sequence[dict], n: int = 300, dimension: int = 2, epsilon: str = "0.7") -> Loaded:
    content = {
        "study": {"name": "looking", "seed": 3, "repetitions": 2},
        "problem": {"kind": "records", "model": "mean", "dimension": dimension, "bound": 50},
        "records": {"features": "pareto(1.6)", "tail": Decimal("0.5"), "moment": 16},
        "grid": {"n": [n], "epsilon": [Decimal(epsilon)], "delta": [Decimal("1e-5")]},
        "arm": list(arms),
    }
    return build(content, Path())


def outcomes(loaded: Loaded, clients: int) -> list[tuple[str, int, bytes]]:
    room = in_process(loaded.study, loaded.theta, clients)
    found = play_records(loaded.study, Cell(loaded.study.grid.n[0], 0, 2), room.ask, room.server)
    return [(one.arm.name, one.repetition, one.theta.tobytes()) for one in found]


def test_bits_do_not_depend_on_clients() -> None:
    loaded = study(ARMS)
    one = outcomes(loaded, 1)
    assert len(one) == 2 * len(ARMS) and len({bits for *_, bits in one}) > len(ARMS)
    for clients in (3, 7):
        assert outcomes(loaded, clients) == one


def test_a_repetition_does_not_depend_on_its_block() -> None:
    loaded = study(ARMS)
    room = in_process(loaded.study, loaded.theta, 1)
    alone = list(play_records(loaded.study, Cell(300, 1, 1), room.ask, room.server))
    assert [(o.arm.name, 1, o.theta.tobytes()) for o in alone] == [one for one in outcomes(loaded, 1) if one[1] == 1]


@pytest.mark.parametrize("arm", ARMS, ids=str)
def test_what_ledgers_total_is_the_claim_exactly(arm: dict) -> None:
    """Of each row and repetition: epsilon and delta over all tasks that it answered, a run charged once."""
    loaded = study([arm])
    room = in_process(loaded.study, loaded.theta, 1)
    paid: dict[bytes, Task] = {}

    def ask(tasks: list[bytes]) -> list[bytes]:
        for raw in tasks:
            paid.setdefault(run_of(decode_task(raw)) or identity(raw), decode_task(raw))
        return room.ask(tasks)

    found = list(play_records(loaded.study, Cell(300, 0, 2), ask, room.server))
    delta = Decimal("1e-5") if arm["trust"] == "central" else Decimal(0)
    assert {(one.claim.epsilon, one.claim.delta) for one in found if one.claim} == {(Decimal("0.7"), delta)}
    spent: dict[tuple[int, int], tuple[Decimal, Decimal]] = {}
    for task in paid.values():
        rows = range(300) if task.rows is None else task.rows.numbers().tolist()
        for place in product(rows, range(task.first_repetition, task.first_repetition + task.repetitions)):
            epsilon, failing = spent.get(place, (Decimal(0), Decimal(0)))
            spent[place] = epsilon + (task.epsilon or 0), failing + (task.delta or 0)
    assert set(spent) == set(product(range(300), range(2)))
    assert set(spent.values()) == {(Decimal("0.7"), delta)}
    charges = room.nodes[0].ledger.totals  # the client's own account names the same tasks, runs and levels
    assert {name: charge.epsilon for name, charge in charges.items()} == {n: task.epsilon for n, task in paid.items()}


class Given:
    """Records that a test gives: one number a row."""

    synthetic, public = True, False

    def __init__(self, values: Sequence[float]) -> None:
        self.values = np.array(values)

    def check(self, task: Task) -> None: ...

    def rows(self, task: Task) -> Runs:
        return Runs.of(range(task.n))

    def facts(self, rows: np.ndarray) -> None: ...

    def levels(self, task: Task, rows: np.ndarray) -> None: ...

    def records(self, task: Task, repetition: int, rows: np.ndarray) -> Records:
        return Records(self.values[rows].reshape(-1, 1, 1), None)


@dataclass
class Noting:
    """A curator that notes what it is to choose by, and takes the first."""

    name = b""
    seen: list[tuple[ChoiceRequest, list[int]]] = field(default_factory=list)

    def release(self, *_: Any) -> Any:
        raise AssertionError("expected a choice")

    def choose(self, task: Task, request: ChoiceRequest, scores: list[int]) -> SimulatedChoice:
        self.seen.append((request, scores))
        if request.mechanism == HISTOGRAM:
            return SimulatedChoice(request, tuple(range(len(scores))), tuple(map(float, scores)))
        return SimulatedChoice(request, (0,), ())


def noted(values: Sequence[float], loaded: Loaded, rule: Rule) -> tuple[Chooser, list[int]]:
    """How a choice is made of these records, on the executed path, and by what scores."""
    whole, curator = in_process(loaded.study, loaded.theta, 1), Noting()
    node, server = replace(whole.nodes[0], source=Given(values)), replace(whole.server, curator=curator)
    (arm,), cell = loaded.study.arms, Cell(len(values), 0, 1)
    room = Room(loaded.study, cell, server, arm, loaded.study.grid.epsilon[0], Decimal("1e-5"), Unit.RECORD)
    steps = rule(room)
    heard = listen(next(steps), InProcess((node,), server).ask)
    with pytest.raises(StopIteration) as stopped:
        steps.send(list(heard.values()))
    assert stopped.value.value.arm.get("threshold") > 0
    ((request, scores),) = curator.seen
    return request.chooser, scores


def law_of(values: Sequence[float], loaded: Loaded) -> np.ndarray:
    """Probabilities of the grid's thresholds, as the executed path has them for these records."""
    chooser, scores = noted(values, loaded, by_selection)
    costs = [Fraction(abs(score), chooser.scale) + chooser.decay * place for place, score in enumerate(scores)]
    weights = np.exp([-float(cost - min(costs)) for cost in costs])
    return weights / weights.sum()


def test_the_level_of_the_choice_by_all_small_data_sets() -> None:
    """Three records of five sizes, through the client and the border: every pair of neighbours."""
    loaded = study([MEANS[0] | {"choice_failure": Decimal("0.9")}], n=3, dimension=1, epsilon="8")
    part = float(parts(Decimal(8), thresholds_private.SHARE)[0])
    sizes = (0.2, -1.5, 6.0, 1e9, math.inf)
    laws = {data: law_of(data, loaded) for data in product(sizes, repeat=3) if data == tuple(sorted(data))}
    laws |= {data: laws[tuple(sorted(data))] for data in product(sizes, repeat=3)}
    worst = 0.0
    for data, law in laws.items():
        for place, size in product(range(3), sizes):
            other = laws[(*data[:place], size, *data[place + 1 :])]
            worst = max(worst, float(np.log(law / other).max()))
    assert part / 2 < worst <= part * (1 + 1e-12)


def test_a_replaced_record_moves_two_bins_by_one_row() -> None:
    """All neighbours of three records of five sizes, through the client and the border."""
    loaded = study([MEANS[2]], n=3, dimension=1)
    sizes = (0.001, -1.5, 6.0, 1e9, math.inf)
    bins = {data: np.array(noted(data, loaded, by_histogram)[1]) for data in product(sizes, repeat=3)}
    moves = set()
    for data, place, size in product(bins, range(3), sizes):
        move = np.abs(bins[data] - bins[(*data[:place], size, *data[place + 1 :])])
        assert set(move[move > 0].tolist()) <= {ONE}
        moves.add(int(np.count_nonzero(move)))
    assert max(moves) == 2
    assert noted(sizes[:3], loaded, by_histogram)[0].moved == ONE


def test_two_rules_for_one_threshold_are_two_tasks_and_both_are_paid_for() -> None:
    """One sum of counts, and two choices by it, would be more than its claim."""
    rules: list[dict] = [{"threshold": "private"}, {"threshold": "histogram"}]
    rules += [rules[0] | more for more in ({"choice_weight": "none"}, {"choice_failure": Decimal("0.2")})]
    loaded = study([CENTRAL | {"estimator": "mean"} | rule for rule in rules])
    room, asked = in_process(loaded.study, loaded.theta, 1), []

    def ask(tasks: list[bytes]) -> list[bytes]:
        asked.extend(task for task in map(decode_task, tasks) if task.menu[0].name == EXCEEDANCES)
        return room.ask(tasks)

    with ReleaseLedger(None) as ledger:
        server = replace(room.server, curator=LiveCurator(ledger))
        assert len(list(play_records(loaded.study, Cell(300, 0, 1), ask, server))) == 4
    assert len(asked) == 4


def test_a_real_curator_follows_a_quantile_and_a_sum_is_noised_for_all_its_coordinates() -> None:
    loaded = study([DESCENTS[2]])
    room = in_process(loaded.study, loaded.theta, 2)
    ledger = ReleaseLedger(None)
    server = Server(room.server.features, 3, LiveCurator(ledger))
    asked: list[Task] = []

    def ask(tasks: list[bytes]) -> list[bytes]:
        asked.extend(map(decode_task, tasks))
        return room.ask(tasks)

    (found,) = play_records(loaded.study, Cell(300, 0, 1), ask, server)
    assert np.isfinite(found.theta).all() and len(asked) == 3
    assert len({task.menu[0].get("threshold") for task in asked}) == 3
    names = {run_of(task) for task in asked}
    assert len(names) == 1 and None not in names
    assert all(set(node.ledger.totals) == names for node in room.nodes)


def test_the_room_that_is_left_has_the_rest_of_the_claim() -> None:
    for claim, share in product(("1", "0.3", "1e-9", "3.14159265358979"), ("0.4", "0.123456789", "0.999")):
        first, rest = parts(Decimal(claim), Decimal(share))
        assert first + rest == Decimal(claim) and 0 < first <= Decimal(claim) * Decimal(share) and rest > 0


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        (CENTRAL | {"estimator": "median-of-means", "threshold": "private"}, "median-of-means has no budget for it"),
        (LOCAL | {"estimator": "descent", "threshold": "private"}, "descent has no budget for it"),
        (LOCAL | {"estimator": "mean", "threshold": "histogram"}, "mean has no budget for it"),
        (CENTRAL | {"estimator": "mean", "threshold": "adaptive"}, "mean has no budget for it"),
        (CENTRAL | {"estimator": "mean", "choice_share": Decimal("0.4")}, "beside .'choice_share'."),
        (MEANS[0] | {"choice_share": 1}, "choice_share between 0 and 1"),
        (CENTRAL | {"estimator": "descent", "step": 1, "rate": 1}, "threshold = 'adaptive' beside"),
        (CENTRAL | {"estimator": "mean", "mechanism": "exceedances"}, "mechanism"),
    ],
)
def test_arms_that_look_without_a_budget_are_refused(arm: dict, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study([arm])
