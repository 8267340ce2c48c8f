"""Arms that protect records, and one that protects nothing: what they say, and whom they refuse."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.choice import TaskInvalid, understand
from client.labeler import answer
from client.ledger import DiskLedger
from client.policy import Policy
from protocol.codec import decode_reply, encode_task
from protocol.coins import Address, Stream, normal, words
from protocol.messages import Code, Coins, Mechanism, Refusal, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.strict import StudyError
from protocol.study import Cell, Study
from protocol.study_file import parse
from protocol.trust import Trust
from server import private_estimate
from server.curator import LiveCurator, SimulatedCurator
from server.estimators.newton import EstimationError
from server.evidence import Heard, Server
from server.listening import listen
from server.mechanisms.standard import ApproximateMinimiser, Perturbation, noise_of, record_delta_bound
from server.outcome import Outcome, outcomes
from server.private_estimate import _minimum, released_estimate
from server.release import ReleaseLedger
from server.task_checks import check_task
from server.tasks import offers
from studies.in_process import in_process, run_cell

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
RECORD_ARMS = [
    {"trust": "central", "estimator": "released"},
    {"trust": "central", "estimator": "released", "constants": "paper"},
    {"trust": "central", "estimator": "released", "mechanism": "approximate-minimiser"},
    {"trust": "central", "estimator": "released", "mechanism": "approximate-minimiser", "constants": "paper"},
]
SGD = {"trust": "clear", "estimator": "objective-perturbation-sgd", "epsilon": Decimal(1), "delta": Decimal("1e-5")}
Run = Callable[..., list[Outcome]]


def study_of(*arms: dict[str, Any], n: int = 2000, features: str = "sphere", repetitions: int = 2) -> Study:
    problem = {"kind": "pairwise", "dimension": 5, "features": features, "bound": Decimal(3), "sum_zero": True}
    return parse(
        {
            "study": {"name": "s", "seed": 4, "repetitions": repetitions},
            "problem": problem,
            "grid": {"n": [n], "epsilon": [Decimal(4)], "delta": [Decimal("1e-5")]},
            "arm": list(arms),
        }
    )


def task_of(study: Study) -> Task:
    (offer,) = offers(study, Cell(study.grid.n[0], 0, study.repetitions))
    assert offer.task is not None
    return offer.task


def test_a_record_s_claim_says_what_it_protects_and_how_little_is_proved() -> None:
    for outcome in run_cell(study_of(*RECORD_ARMS), THETA, Cell(2000, 0, 2)):
        assert outcome.claim is not None and outcome.claim.unit is Unit.RECORD
        assert outcome.claim.neighbours == "replace one record"
        assert outcome.coins == "addressed" and outcome.ci_low is None
        said = " ".join(outcome.warnings)
        assert "shrunk" in said and "simulated labels only" in said and "interval-not-valid: " in said


def test_estimates_are_near_the_truth_and_the_same_bits_from_any_split() -> None:
    """n = 20000 at epsilon = 4: every error is below that of answering 0, 1.58, by far."""
    study, cell = study_of(*RECORD_ARMS, n=20_000, repetitions=1), Cell(20_000, 0, 1)
    alone, split = (list(run_cell(study, THETA, cell, clients)) for clients in (1, 3))
    assert all((one.theta == other.theta).all() for one, other in zip(alone, split, strict=True))
    errors = [float(np.linalg.norm(outcome.theta - THETA)) for outcome in alone]
    assert errors[0] < 0.4 and max(errors) < 0.8


def test_what_is_solved_is_the_perturbed_objective_with_shrunk_rows() -> None:
    """Against stationarity: the gradient of the mean loss, ridge and noise is zero at what comes out."""
    study = study_of(RECORD_ARMS[0] | {"radius": Decimal("0.7")}, n=300, repetitions=1)
    room, task = in_process(study, THETA, 1), task_of(study)
    heard = listen([task], room.ask)[task]
    designs = room.server.designs(study.problem, 300, 0)
    found = released_estimate(room.server, heard, designs).estimate
    assert task.exponent is not None and heard.collected.sums is not None
    design = designs.get(task.exponent, 0.7)
    assert np.linalg.norm(design.rows, axis=1).max() <= 0.7 * (1 + 1e-12)
    noise = noise_of(task, task.menu[0])
    assert isinstance(noise, Perturbation)
    gradient = design.rows.T @ (1 / (1 + np.exp(-(design.rows @ found.u)))) - heard.collected.sums[0]
    b = -(gradient + 300 * noise.ridge * found.u) / noise.stddev
    assert 0.01 < np.linalg.norm(b) < 5  # normal numbers, whatever they are
    quiet = _minimum(design.rows, heard.collected.sums[0] - 0.5 * design.total, noise, b, math.inf)
    np.testing.assert_allclose(quiet.u, found.u, atol=1e-9)


def test_how_long_the_curator_searched_stays_with_it() -> None:
    """Steps and the last decrement depend on records, and the claim covers the estimate alone."""
    study = study_of(RECORD_ARMS[0], repetitions=1)
    room, task = in_process(study, THETA, 1), task_of(study)
    heard = listen([task], room.ask)[task]
    found = released_estimate(room.server, heard, room.server.designs(study.problem, 2000, 0)).estimate
    assert found.iterations == 0 and math.isnan(found.decrement)


def test_noise_for_all_rows_is_not_claimed_for_fewer() -> None:
    """With 50 of 2000 rows the ridge is worth 50/2000 of what the noise was made for: delta is 0.4 and not 1e-5."""
    study = study_of(RECORD_ARMS[0], repetitions=1)
    room, task = in_process(study, THETA, 1), task_of(study)
    noise, radius = noise_of(task, task.menu[0]), task.menu[0].get("radius")
    assert isinstance(noise, Perturbation) and radius is not None
    kept, lost = (record_delta_bound(4.0, noise, n, float(radius)) for n in (2000, 50))
    assert kept <= 1e-5 and lost > 0.4
    part = replace(task, rows=Runs.of(range(50)))
    with pytest.raises(StudyError, match=r"expected all 2000 rows, .* got 50"):
        listen([part], room.ask)
    heard = listen([task], room.ask)[task]
    few = replace(heard, collected=replace(heard.collected, rows=np.arange(50)))
    with pytest.raises(ValueError, match=r"expected all 2000 rows, .* got 50"):
        released_estimate(room.server, few, room.server.designs(study.problem, 2000, 0))


def test_a_minimiser_that_is_not_reached_is_refused() -> None:
    rows = np.ones((4, 1))
    with pytest.raises(EstimationError, match="gradient"):
        _minimum(rows, np.array([1.0]), Perturbation(1.0, 0.1), np.array([0.5]), 0.01, tolerance=1e-10)


@pytest.mark.parametrize("arm", RECORD_ARMS[2:])
def test_an_approximate_minimiser_is_near_enough_and_gets_noise_of_its_own(
    arm: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is released less a minimum of the objective is the output's noise: the coins after those of the objective,
    since the two releases add up only if they are independent; and no estimate leaves that is not near enough."""
    study = study_of(arm, repetitions=1)
    room, task = in_process(study, THETA, 1), task_of(study)
    heard = listen([task], room.ask)[task]
    designs = room.server.designs(study.problem, 2000, 0)
    found = released_estimate(room.server, heard, designs).estimate
    assert task.exponent is not None and heard.collected.sums is not None and not found.hit_boundary
    radius = task.menu[0].get("radius")
    assert radius is not None
    design, noise = designs.get(task.exponent, float(radius)), noise_of(task, task.menu[0])
    assert isinstance(noise, ApproximateMinimiser) and isinstance(room.server.curator, SimulatedCurator)
    p = len(found.u)
    coins = normal(words(Address(room.server.curator.seed, Stream.CURATOR, 2000, 0), 0, 2 * p))
    total = heard.collected.sums[0] - 0.5 * design.total
    minimum = _minimum(design.rows, total, noise.objective, coins[:p], math.inf)
    assert np.linalg.norm(noise.output * coins[p:]) > 100 * np.finfo(float).eps
    np.testing.assert_allclose(found.u - minimum.u, noise.output * coins[p:], rtol=0, atol=1e-15)
    monkeypatch.setattr(private_estimate, "noise_of", lambda *_: replace(noise, tolerance=1e-300))
    with pytest.raises(EstimationError, match="gradient"):
        released_estimate(room.server, heard, designs)


def test_a_live_curator_refuses_with_the_reason() -> None:
    study = study_of(RECORD_ARMS[0], repetitions=1)
    room, task = in_process(study, THETA, 1), task_of(study)
    heard = listen([task], room.ask)[task]
    designs = room.server.designs(study.problem, 2000, 0)
    with ReleaseLedger(None) as ledger, pytest.raises(ValueError, match="real numbers"):
        released_estimate(replace(room.server, curator=LiveCurator(ledger)), heard, designs)
    real = Heard(task, heard.task_id, replace(heard.collected, coins=Coins.OS))
    for server in (room.server, Server(room.server.features, 4, None)):
        with pytest.raises(ValueError, match="simulated"):
            released_estimate(server, real, designs)
    assert isinstance(room.server.curator, SimulatedCurator)


def test_a_node_of_real_labels_refuses_records_whatever_its_policy_says(tmp_path: Path) -> None:
    study = study_of(RECORD_ARMS[0], repetitions=1)
    (node,) = in_process(study, THETA, 1).nodes

    class Real:
        synthetic = False

        def __getattr__(self, name: str) -> Any:
            return getattr(node.source, name)

    policy = Policy(trusts=frozenset(Trust), units=frozenset(Unit), max_epsilon=None)
    raw, ledger = encode_task(task_of(study)), DiskLedger(tmp_path / "ledger.sqlite")
    refused = decode_reply(
        answer(raw, replace(node, source=Real(), policy=policy, ledger=ledger, entropy="os", seed=None))
    )  # type: ignore[arg-type]
    assert isinstance(refused, Refusal) and refused.code is Code.UNIT_NOT_ALLOWED
    assert not isinstance(decode_reply(answer(raw, node)), Refusal)
    default = decode_reply(answer(raw, replace(node, policy=Policy(trusts=frozenset(Trust)))))
    assert isinstance(default, Refusal) and default.code is Code.UNIT_NOT_ALLOWED


def test_units_and_mechanisms_belong_together_on_both_sides() -> None:
    record = task_of(study_of(RECORD_ARMS[0]))
    label = task_of(study_of({"trust": "central", "estimator": "mle", "mechanism": "gaussian-statistic"}))
    for task in (replace(record, unit=Unit.LABEL), replace(label, unit=Unit.RECORD)):
        with pytest.raises(TaskInvalid, match="record"):
            understand(task)
        with pytest.raises(StudyError, match="record"):
            check_task(task)
    check_task(record)
    more = Mechanism.of(record.menu[0].name, **(dict(record.menu[0].parameters) | {"bonus": Decimal(1)}))
    (node,) = in_process(study_of(RECORD_ARMS[0]), THETA, 1).nodes
    assert isinstance(decode_reply(answer(encode_task(replace(record, menu=(more,))), node)), Refusal)


def test_features_of_a_file_are_no_secret_that_a_record_could_have() -> None:
    study = study_of(RECORD_ARMS[0], n=2)
    given = Problem(5, "values", True, Decimal(3), np.eye(5)[:2])
    with pytest.raises(StudyError, match="drawn features"):
        check_task(task_of(replace(study, problem=given)))


@pytest.mark.parametrize(
    "arm",
    [
        {"trust": "central", "estimator": "released", "mechanism": "gaussian-statistic"},
        {"trust": "central", "estimator": "mle", "mechanism": "approximate-minimiser"},
        {"trust": "central", "estimator": "released", "ridge": 0},
        {"trust": "central", "estimator": "released", "ridge": "tempered"},
        {"trust": "central", "estimator": "released", "constants": "loose"},
        {"trust": "central", "estimator": "mle", "constants": "paper"},
        {"trust": "central", "estimator": "objective-perturbation-sgd"},
        {"trust": "local", "estimator": "objective-perturbation-sgd"},
        {"trust": "clear", "estimator": "objective-perturbation-sgd"},
        {"trust": "clear", "estimator": "objective-perturbation-sgd", "epsilon": 1, "delta": 1},
        {"trust": "clear", "estimator": "sgd", "epsilon": 1, "delta": Decimal("1e-5")},
    ],
)
def test_what_does_not_go_together_is_refused_when_a_study_is_read(arm: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        study_of(arm)


def test_a_ridge_or_claim_that_cannot_be_kept_is_refused_before_anybody_is_asked() -> None:
    small = {"trust": "central", "estimator": "released", "ridge": Decimal("1e-9"), "constants": "paper"}
    with pytest.raises(StudyError, match="ridge"):
        task_of(study_of(small))


def test_an_approximate_minimiser_gets_its_own_noise() -> None:
    task = task_of(study_of(RECORD_ARMS[2]))
    assert isinstance(noise_of(task, task.menu[0]), ApproximateMinimiser)


def test_one_pass_with_one_noise_vector_claims_nothing_and_is_for_simulated_labels_only() -> None:
    study = study_of(SGD | {"step": Decimal("0.06")}, n=3000, repetitions=1)
    (outcome,) = run_cell(study, THETA, Cell(3000, 0, 1))
    assert outcome.claim is None and outcome.epsilon is None and outcome.computed_epsilon is None
    assert any("Theorem 5.2 covers the exact minimiser" in warning for warning in outcome.warnings)
    assert 0.001 < np.linalg.norm(outcome.theta - THETA) < 1
    room, task = in_process(study, THETA, 1), task_of(study)
    heard = listen([task], room.ask)[task]
    real = Heard(task, heard.task_id, replace(heard.collected, coins=Coins.OS))
    with pytest.raises(ValueError, match="simulated labels"):
        list(outcomes(study, study.arms[0], 0, real, None))  # type: ignore[arg-type]
