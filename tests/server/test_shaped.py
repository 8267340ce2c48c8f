"""Shaped noise end to end: sensitivity from integer rows, sums and rows un-mapped alike, and what it gains."""

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.choice import TaskInvalid, understand
from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources.synthetic import Synthetic
from protocol.arms import Arm
from protocol.codec import decode_reply, encode_task
from protocol.features import norms
from protocol.grid import to_integers
from protocol.messages import Refusal, Task
from protocol.problem import Problem
from protocol.shaping import SHAPED, shaping
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Cell, Grid, Study
from protocol.study_file import parse
from protocol.trust import Trust
from server.curator import SimulatedCurator
from server.designs import Designs
from server.estimators.workspace import Workspace
from server.evidence import Server, evidence
from server.listening import listen
from server.mechanisms import CENTRAL
from server.mechanisms.gaussian import gaussian_mu
from server.mechanisms.sensitivity import largest_squared_norm
from server.task_checks import check_task
from server.tasks import offers
from studies.in_process import run_cell
from studies.load import build, restore

SCALES = tuple(map(Decimal, ("0.5", "0.15", "0.05", "0.015", "0.005")))
DRAWN = Problem(5, "gaussian", False, None, scales=SCALES)
CLAIM = (Decimal(1), Decimal("1e-5"))
THETA = np.array([0.2, -0.1, 0.3, 0.0, 0.5])


def study_of(*arms: Arm, n: int = 200, repetitions: int = 1, problem: Problem = DRAWN) -> Study:
    return Study("s", 3, repetitions, problem, Grid((n,), CLAIM[:1], CLAIM[1:]), arms)


def task_of(study: Study) -> Task:
    (offer,) = offers(study, Cell(study.grid.n[0], 0, study.repetitions))
    assert offer.task is not None
    check_task(offer.task)
    return offer.task


def node(study: Study, theta: np.ndarray = THETA, client: int = 0, clients: int = 1) -> Node:
    features = FeatureStore(study.seed)
    source = Synthetic(study.problem, theta, study.seed, features, client, clients)
    return Node(source, Policy.simulation(), MemoryLedger(), "addressed", features, study.seed)


SHAPING = Arm(Trust.CENTRAL, SHAPED, "mle")


def test_a_label_moves_the_sum_of_a_client_by_a_row_that_the_server_measures() -> None:
    """All rows of one node, one label each: the sum of one client is y_i k_i, in integers, bit for bit."""
    study = study_of(SHAPING, n=30)
    task = task_of(study)
    radius = task.menu[0].get("radius")
    assert radius is not None and task.exponent is not None
    designs = Designs(FeatureStore(study.seed), study.seed, DRAWN, 30, 0)
    design = designs.get(task.exponent, float(radius), None, None, task.map)
    seen = set()
    for client in range(30):
        reply = decode_reply(answer(encode_task(task), node(study, client=client, clients=30)))
        assert not isinstance(reply, Refusal)
        (signed,) = reply
        k = to_integers(signed.report.payload.values[0], task.exponent)[0]
        own = to_integers(design.rows[client : client + 1], task.exponent)[0]
        assert (k == own).all() or not k.any()
        seen.add(bool(k.any()))
        assert sum(int(value) ** 2 for value in own) <= design.sensitivity_squared
    assert seen == {False, True}
    assert norms(design.rows).max() <= math.sqrt(5) * (1 + 1e-9)


@given(st.integers(0, 2**32), st.floats(-3, 3))
def test_privacy_does_not_rest_on_the_map(seed: int, stretch: float) -> None:
    """Whatever the (triangular) map is, the sensitivity covers the integer rows that it makes."""
    coins = np.random.default_rng(seed)
    matrix = np.tril(coins.standard_normal((5, 5)) * 10.0**stretch) + np.eye(5)
    if not matrix.diagonal().all():
        return
    design = Designs(FeatureStore(3), 3, DRAWN, 20, 0).get(-40, 1.5, None, None, matrix)
    integers = to_integers(design.rows, -40)
    assert max(sum(int(value) ** 2 for value in row) for row in integers) == design.sensitivity_squared
    assert design.sensitivity_squared == largest_squared_norm(design.rows, -40) <= (1.5 * 2.0**40) ** 2 * (1 + 1e-12)


def test_rows_and_sums_go_back_alike() -> None:
    """Without noise on them, half sums are those of the un-mapped rows to rounding, weights and all."""
    study = study_of(SHAPING)
    task, room = task_of(study), node(study)
    heard = listen([task], lambda raws: [answer(raw, room) for raw in raws])[task]
    server = Server(FeatureStore(study.seed), study.seed, SimulatedCurator(study.seed))
    designs = server.designs(DRAWN, 200, 0)
    found = evidence(server, heard, designs)
    labels = room.source.labels(task, 0, np.arange(200)).reveal()
    assert heard.collected.sums is not None and found.noise_factor is not None and found.weights is not None
    exact = found.noise_factor @ heard.collected.sums[0]
    np.testing.assert_allclose(exact, labels.astype(float) @ found.rows, atol=1e-9)
    plain = FeatureStore(study.seed).reduced(DRAWN, 200, 0, 0, 200)
    np.testing.assert_allclose(found.rows, found.weights[:, None] * plain, atol=1e-9)
    np.testing.assert_allclose(Workspace(found).noise, found.noise_stddev**2 * np.diag([1, 0.3, 0.1, 0.03, 0.01]))


def test_the_example_of_five_variances_by_formula() -> None:
    """H = Sigma / 4, variances 1, .3, .1, .03, .01, n = 5000: the errors that privacy alone adds, for one set of rows.

    Isotropic noise sqrt(tr(H^-1 Sigma H^-1)) s / n = 4 sqrt(tr Sigma^-1) D / (n mu) with the longest row D = 3.75, and
    shaped noise 4 sqrt(p l) / (n mu) with the highest leverage l = 26 without clipping.
    """
    variances, n, mu = np.array([1, 0.3, 0.1, 0.03, 0.01]), 5000, gaussian_mu(*CLAIM)
    stddev = 3.75 / mu
    inverse = 4 / variances
    assert math.sqrt((inverse**2 * variances).sum()) * stddev / n == pytest.approx(0.136, abs=0.001)
    assert math.sqrt((inverse**2).sum()) * stddev / n == pytest.approx(1.19, abs=0.01)
    scale = math.sqrt(26) / mu
    assert math.sqrt((inverse**2 * variances**2).sum()) * scale / n == pytest.approx(0.034, abs=0.001)
    assert math.sqrt((inverse**2 * variances).sum()) * scale / n == pytest.approx(0.18, abs=0.01)
    multiplier = CENTRAL[SHAPED].noise_multiplier(*CLAIM)
    assert multiplier == pytest.approx(1 / mu)


def test_the_example_of_five_variances_by_simulation() -> None:
    """theta = 0, n = 5000, 40 repetitions: errors of shaped, clipped and isotropic noise in this order, paired.

    The isotropic error is near 1.19 and the shaped one near the 0.36 of no privacy; the gaps are over 20 standard
    errors of a paired difference, so a wrong order has a chance below 1e-80.
    """
    names = (SHAPED, "gaussian-statistic-clipped", "gaussian-statistic")
    study = study_of(*(Arm(Trust.CENTRAL, name, "mle") for name in names), n=5000, repetitions=40)
    errors: dict[str, list[float]] = {name: [] for name in names}
    covered = []
    for outcome in run_cell(study, np.zeros(5), Cell(5000, 0, 40)):
        errors[outcome.arm.mechanism].append(float(outcome.theta @ outcome.theta))
        assert outcome.claim is not None
        if outcome.arm.mechanism == SHAPED:
            assert outcome.ci_low is not None and outcome.ci_high is not None
            covered.append((outcome.ci_low <= 0) & (outcome.ci_high >= 0))
    shaped, clipped, isotropic = (math.sqrt(np.mean(errors[name])) for name in names)
    assert shaped < 0.5 < clipped < 0.75 < 1.0 < isotropic
    # 200 intervals of 95 %, nearly independent: 0.95 +- 6 standard errors of 0.0154.
    assert np.mean(covered) > 0.857


def test_a_study_resolves_its_central_mechanism_when_it_is_read() -> None:
    def chosen(problem: Problem) -> str:
        content = {
            "study": {"name": "s", "seed": 1, "repetitions": 1},
            "problem": {},
            "grid": {"n": [4], "epsilon": [1], "delta": [Decimal("1e-5")]},
            "arm": [{"trust": "central", "estimator": "mle"}],
        }
        return parse(content, problem).arms[0].mechanism

    assert chosen(DRAWN) == SHAPED
    assert chosen(Problem(5, "gaussian", True, None)) == "gaussian-statistic-clipped"


def test_a_resolved_study_names_its_mechanism_and_restores_its_scales(tmp_path: Path) -> None:
    content = {
        "study": {"name": "s", "seed": 1, "repetitions": 1},
        "problem": {
            "kind": "pairwise",
            "dimension": 5,
            "features": "gaussian",
            "scales": list(SCALES),
            "theta": [0, 0, 0, 0, 0],
        },
        "grid": {"n": [4], "epsilon": [1], "delta": [Decimal("1e-5")]},
        "arm": [{"trust": "central", "estimator": "mle"}],
    }
    loaded = build(content, tmp_path)
    assert loaded.resolved["arms"][0]["mechanism"] == SHAPED
    assert loaded.resolved["problem"]["scales"] == list(map(str, SCALES))
    again = restore(loaded.resolved, tmp_path)
    assert (again.sha256, again.study.problem.scales) == (loaded.sha256, SCALES)


def test_features_that_do_not_span_the_space_are_refused_before_anybody_is_asked() -> None:
    apart = Problem(4, "items", True, None, np.array([[0, 1], [2, 3]], dtype=np.int32))
    with pytest.raises(StudyError, match="span"):
        task_of(study_of(SHAPING, n=2, problem=apart))


@pytest.mark.parametrize("matrix", [None, np.full((5, 5), 1e101)])
def test_clients_refuse_shaped_noise_without_a_map_or_with_a_vast_one(matrix: np.ndarray | None) -> None:
    task = replace(task_of(study_of(SHAPING)), map=matrix)
    with pytest.raises(TaskInvalid, match="map"):
        understand(task)
    refused = decode_reply(answer(encode_task(task), node(study_of(SHAPING))))
    assert isinstance(refused, Refusal)


def test_nothing_but_shaped_noise_takes_a_map() -> None:
    plain = task_of(study_of(Arm(Trust.CENTRAL, "gaussian-statistic", "mle")))
    mixed = replace(task_of(study_of(SHAPING)), menu=(*plain.menu, *task_of(study_of(SHAPING)).menu))
    for task in (replace(plain, map=shaping(DRAWN, 200)), mixed):
        with pytest.raises(TaskInvalid, match="map"):
            understand(task)
    with pytest.raises(StudyError, match="map"):
        check_task(replace(plain, map=shaping(DRAWN, 200)))
