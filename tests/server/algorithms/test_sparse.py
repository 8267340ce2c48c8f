"""Sparse learning over the border: oracle values, rounds by hand, bits, who answers what, and what is refused."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.records import Records
from client.sources import Facts
from protocol.codec import decode_task
from protocol.coins import Address, Stream, words
from protocol.laws import Law
from protocol.messages import Mechanism, Runs, Task
from protocol.record_terms import Bounded, bounded
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Cell
from protocol.trust import Trust
from server.algorithms.sparse_terms import largest, restricted_curvature
from server.curator import SimulatedCurator
from server.evidence import Server
from server.mechanisms.peeling import step_change
from server.mechanisms.selection_rounds import shared_rounds
from server.rounds import play
from server.task_checks import check_task
from studies.in_process import in_process, run_cell
from studies.load import Loaded, build

Floats = NDArray[np.float64]
CLEAR: dict[str, Any] = {"trust": "clear", "estimator": "hard-thresholding"}
CENTRAL, LOCAL = {**CLEAR, "trust": "central"}, {**CLEAR, "trust": "local"}


def study(arms: Sequence[dict[str, Any]], n: int = 60, **tables: Any) -> Loaded:
    """A sparse regression in six dimensions; tables replace keys of its own, or take them away with None."""
    content: dict[str, Any] = {
        "study": {"name": "sparse", "seed": 7, "repetitions": 2},
        "problem": {"kind": "records", "model": "linear", "dimension": 6, "theta": {"1": Decimal("0.5"), "4": -1}},
        "records": {"features": "uniform(-1, 2)", "noise": "centred pareto(1.6)", "tail": Decimal("0.5"), "moment": 7},
        "grid": {"n": [n], "epsilon": [1], "delta": [Decimal("1e-5")]},
    }
    merged = {name: {**table, **tables.get(name, {})} for name, table in content.items()}
    kept = {name: {key: value for key, value in table.items() if value is not None} for name, table in merged.items()}
    given = [{"sparsity": 2, "rounds": 3, **arm} for arm in arms]
    wanted = [{key: value for key, value in arm.items() if value is not None} for arm in given]
    return build({**kept, "arm": wanted}, Path())


def played(loaded: Loaded, clients: int = 1) -> list[Floats]:
    cell = Cell(loaded.study.grid.n[0], 0, loaded.study.repetitions)
    return [outcome.theta for outcome in run_cell(loaded.study, loaded.theta, cell, clients)]


class FourRows:
    """Records that an oracle was computed from."""

    synthetic, public = True, False
    x = np.array([[1.0, 0, 2], [0, 1, -1], [1, 1, 0], [2, -1, 1]])
    y = np.array([1.0, 2, 3, 40])

    def check(self, task: Task) -> None:
        """Every task fits."""

    def rows(self, task: Task) -> Runs:
        return Runs.of(range(4))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        return None

    def levels(self, task: Task, rows: NDArray[np.int64]) -> tuple[Sequence[Decimal], NDArray[np.int64]] | None:
        return None

    def records(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Records:
        return Records(self.x[rows, None, :], self.y[rows, None])


def of_four_rows(sparsity: int) -> Floats:
    arm = {**CLEAR, "threshold": 10, "shape": "truncate", "step": Decimal("0.6666666666666666"), "rounds": 1}
    problem = {"dimension": 3, "theta": [0, 0, 0]}
    loaded = study([{**arm, "sparsity": sparsity}], 4, problem=problem, study={"repetitions": 1})
    features = FeatureStore(7)
    node = Node(FourRows(), Policy.simulation(), MemoryLedger(), "addressed", features, 7)
    server = Server(features, 7, SimulatedCurator(7))
    (outcome,) = play(loaded.study, Cell(4, 0, 1), lambda tasks: [answer(raw, node) for raw in tasks], server)
    return outcome.theta


def test_one_step_without_noise(heavy_oracle: Callable[[str], float]) -> None:
    """The fourth row lies beyond the threshold in every coordinate."""
    step = of_four_rows(3)
    assert step[0] == pytest.approx(heavy_oracle("IHT step (zero noise) B=10: h[0]"), rel=1e-15)
    assert step[1:] == pytest.approx([heavy_oracle("IHT h[1]"), heavy_oracle("IHT h[2]")], rel=1e-15)
    kept = of_four_rows(1)
    assert kept.tolist() == [0, step[1], 0]
    assert kept[1] == pytest.approx(heavy_oracle("IHT peel s=1"), rel=1e-15)


def gradients(loaded: Loaded, repetition: int, rows: range, at: Floats) -> Floats:
    """The gradients of rows, from the address of their coins."""
    law, d = loaded.study.records, 6
    assert law is not None and law.noise is not None
    drawn = words(Address(7, Stream.RECORDS, loaded.study.grid.n[0], repetition), 0, rows.stop * 7).reshape(-1, 7)
    x, noise = law.features.sample(drawn[:, :d, None]), law.noise.sample(drawn[:, d:])
    y = x @ loaded.theta + noise
    return ((x @ at - y)[:, None] * x)[rows.start :]


@pytest.mark.parametrize("mechanism", ["gumbel-gaussian", "peeling-cai", "permute-and-flip"])
@pytest.mark.parametrize("batches", ["all", "disjoint"])
def test_rounds_by_hand(mechanism: str, batches: str) -> None:
    """Every round again with numpy: bounded gradients, the step, noise of lambda = 2 B eta / m, nothing else."""
    arm = {**CENTRAL, "mechanism": mechanism, "batches": batches, "threshold": 2, "step": Decimal("0.25")}
    loaded = study([arm])
    pure = mechanism == "permute-and-flip"
    rounds = 3 if batches == "all" else 1
    selection = shared_rounds(mechanism, Decimal(1), None if pure else Decimal("1e-5"), 2, rounds)
    size = 60 if batches == "all" else 20
    for repetition, found in enumerate(played(loaded)):
        at = np.zeros(6)
        for t in range(3):
            rows = range(60) if batches == "all" else range(20 * t, 20 * t + 20)
            mean = bounded(gradients(loaded, repetition, rows, at), Bounded(2.0)).mean(axis=0)
            coins = words(Address(7, Stream.CURATOR, 60, repetition, t), 0, selection.word_rows * 6)
            moved = at - 0.25 * mean
            at = selection.select(moved, step_change(2.0, 0.25, size), coins.reshape(-1, 6)).vector(6)
        assert found == pytest.approx(at, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("shape", ["clip", "truncate"])
def test_one_record_moves_a_step_by_lambda_and_no_more(shape: str) -> None:
    """Every neighbour of every batch of three records with gradients -3, ..., 3 in two coordinates: B = 2, tight."""
    how, m, eta = Bounded(2.0, shape=shape), 3, 0.75
    each = bounded(np.array(list(product(range(-3, 4), repeat=2)), dtype=np.float64), how)
    moves = np.abs(each[:, None] - each[None]).max(axis=2) * eta / m  # the other records cancel
    assert moves.max() == 2 * 2.0 * eta / m
    assert moves.max() <= step_change(2.0, eta, m) <= moves.max() * (1 + 1e-15)


ALL_ARMS: list[dict[str, Any]] = [
    {**CLEAR, "batches": "disjoint"},
    CENTRAL,
    {"trust": "central", "estimator": "algorithm-5"},
    {**LOCAL, "mechanism": "piecewise", "coordinates": 1},
    {**LOCAL, "estimator": "two-phase", "mechanism": "hybrid"},
    {**LOCAL, "estimator": "two-phase", "mechanism": "gaussian"},
    {**LOCAL, "estimator": "votes", "mechanism": "priv-unit"},
]


@pytest.mark.parametrize(("model", "noise"), [("linear", "centred pareto(1.6)"), ("logistic", None)])
def test_bits_do_not_depend_on_clients(model: str, noise: str | None) -> None:
    loaded = study(ALL_ARMS, problem={"model": model, "bound": 2}, records={"noise": noise})
    one = played(loaded, 1)
    assert len(one) == 2 * len(ALL_ARMS)
    for found in one:
        assert np.isfinite(found).all() and (found != 0).sum() <= 2
        assert float(np.sqrt((found * found).sum())) <= 2 * (1 + 1e-12)
    for clients in (3, 7):
        assert [found.tobytes() for found in played(loaded, clients)] == [found.tobytes() for found in one]


def tasks_of(arm: dict[str, Any], n: int = 60) -> list[Task]:
    """All tasks that an arm asks."""
    loaded, asked = study([arm], n), list[Task]()
    room = in_process(loaded.study, loaded.theta, 1)

    def ask(raws: list[bytes]) -> list[bytes]:
        asked.extend(decode_task(raw) for raw in raws)
        return room.ask(raws)

    assert len(list(play(loaded.study, Cell(n, 0, 2), ask, room.server))) == 2
    return asked


@pytest.mark.parametrize("estimator", ["hard-thresholding", "two-phase", "votes"])
def test_a_holder_answers_once(estimator: str) -> None:
    asked = tasks_of({**LOCAL, "estimator": estimator, "mechanism": "piecewise"})
    for repetition in range(2):
        own = [task for task in asked if task.first_repetition <= repetition < task.first_repetition + task.repetitions]
        rows = np.concatenate([task.rows.numbers() for task in own if task.rows is not None])
        assert len(own) == (3 if estimator == "hard-thresholding" else 4)
        assert len(set(rows.tolist())) == len(rows) == 60
        assert all(task.trust is Trust.LOCAL and task.epsilon == 1 and not task.delta for task in own)
    if estimator != "hard-thresholding":
        later = [task for task in asked if task.round]
        assert all(task.coordinates is not None and task.coordinates.count == 2 for task in later)
        first = {"two-phase": "duchi", "votes": "unary"}[estimator]
        assert [task.menu[0].name for task in asked if not task.round] == [first]


def test_reuse_is_one_claim_and_batches_are_one_each() -> None:
    together, alone = tasks_of(CENTRAL), tasks_of({**CENTRAL, "batches": "disjoint"})
    assert [(task.round, task.menu[0].get("rounds")) for task in together] == [(t, Decimal(3)) for t in range(3)]
    assert all(task.rows is None for task in together)
    assert [task.menu[0].get("rounds") for task in alone] == [None] * 3
    assert sorted(row for task in alone if task.rows for row in task.rows.numbers().tolist()) == list(range(60))


def test_pure_claims_need_no_delta() -> None:
    loaded = study([{**CENTRAL, "mechanism": "peeling-pure"}], grid={"delta": None})
    (outcome, _) = run_cell(loaded.study, loaded.theta, Cell(60, 0, 2))
    assert outcome.claim is not None and (outcome.claim.epsilon, outcome.claim.delta) == (Decimal(1), Decimal(0))


@pytest.mark.parametrize(
    ("arm", "match"),
    [
        ({**CENTRAL, "sparsity": 7}, "sparsity in 1..6"),
        ({**CENTRAL, "sparsity": Decimal("1.5")}, "whole number"),
        ({**CENTRAL, "mechanism": "gaussian"}, "mechanism"),
        ({"trust": "central", "estimator": "descent", "mechanism": "peeling-cai", "step": 1}, "mechanism|sparsity"),
        ({**CENTRAL, "mechanism": "peeling-cai", "split": Decimal("0.5")}, "no split"),
        ({**CENTRAL, "split": 1}, "between 0 and 1"),
    ],
)
def test_arms_that_are_refused(arm: dict[str, Any], match: str) -> None:
    with pytest.raises(StudyError, match=match):
        study([arm])


@pytest.mark.parametrize(
    ("arm", "n", "match"),
    [
        ({**CLEAR, "threshold": "mse"}, 60, "a number as threshold"),
        ({**CENTRAL, "batches": "disjoint"}, 2, "at least 3 rows"),
        ({**LOCAL, "estimator": "votes", "mechanism": "duchi"}, 1, "two rows"),
    ],
)
def test_runs_that_are_refused(arm: dict[str, Any], n: int, match: str) -> None:
    with pytest.raises(StudyError, match=match):
        played(study([arm], n))


def test_steps_need_a_law_with_a_variance() -> None:
    unsaid = {**CLEAR, "rounds": None}
    assert all(np.isfinite(found).all() for found in played(study([unsaid])))
    for said in ({"rounds": 3}, {"step": 1}):
        with pytest.raises(StudyError, match="finite variance"):
            played(study([{**unsaid, **said}], records={"features": "centred pareto(1.6)"}))


def test_a_task_whose_noise_does_not_keep_its_claim_is_not_sent() -> None:
    (task, *_) = tasks_of({**CENTRAL, "batches": "disjoint", "mechanism": "peeling-cai"})
    check_task(task)
    given = dict(task.menu[0].parameters)
    for spoiled, match in (
        ({"sparsity": Decimal("1.5")}, "whole sparsity"),
        ({"sparsity": Decimal(900), "epsilon": Decimal(30)}, "keep"),
        ({"l2": Decimal(1)}, "by coordinate"),
        ({"split": Decimal("0.5")}, "no share"),
    ):
        menu = (Mechanism.of("peeling-cai", **{**given, **spoiled}),)
        with pytest.raises(StudyError, match=match):
            check_task(replace(task, menu=menu, epsilon=menu[0].get("epsilon")))


@pytest.mark.parametrize("law", ["uniform(-1, 2)", "uniform(0, 1)", "normal(0, 2)"])
def test_restricted_curvature_by_all_blocks(law: str) -> None:
    """The extreme eigenvalues of all blocks of E x x^T."""
    features = Law.parse(law)
    second = np.full((5, 5), features.mean**2) + np.eye(5) * features.variance
    for k in range(1, 6):
        spectra = [np.linalg.eigvalsh(second[np.ix_(part, part)]) for part in combinations(range(5), k)]
        found = restricted_curvature("linear", features, k)
        assert found.strength == pytest.approx(min(each[0] for each in spectra), rel=1e-12)
        assert found.smoothness == pytest.approx(max(each[-1] for each in spectra), rel=1e-12)
        assert restricted_curvature("logistic", features, k).smoothness == pytest.approx(found.smoothness / 4)


def test_the_largest_coordinates() -> None:
    assert largest(np.array([0.5, -3.0, 2.0, 0.0, -2.5]), 2).tolist() == [1, 4]
    assert largest(np.array([1.0, -1.0, 1.0]), 2).tolist() == [0, 1]
