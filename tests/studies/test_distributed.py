"""Sums under masks, from labels to estimates: the same bits whoever holds the rows, and the curator's accuracy."""

from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from client.policy import Policy
from client.residues import noise_of
from client.rows import answerable
from protocol.arms import DISTRIBUTED, Arm
from protocol.features import coordinates
from protocol.messages import Coins, Task
from protocol.noise.terms import terms_of
from protocol.problem import Problem
from protocol.study import Cell, Grid, Study
from protocol.terms import row_exponent
from protocol.trust import Trust
from server.collect import Collected
from server.evidence import Heard, Server
from server.kinds import kind_of
from server.listening import RoundFailed, listen
from server.outcome import Outcome
from server.rounds import options
from server.tasks import offers
from studies.in_process import in_process, run_cell

Floats = NDArray[np.float64]
THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
DELTA = Decimal("0.00001")
PAIRS = Problem(5, "gaussian", sum_zero=True, bound=Decimal(3))
THURSTONE = replace(PAIRS, model="thurstone")
CHOICES = replace(PAIRS, kind="choice", model="plackett-luce", choices=4)
SHAPED = Problem(5, "gaussian", False, Decimal(3), scales=(Decimal(9), *(Decimal(1),) * 4))
ITEMS = Problem(
    5, "items", True, Decimal(3), np.array([[i % 5, (i % 5 + 1 + i % 3) % 5] for i in range(400)], dtype=np.int32)
)


def study_of(problem: Problem, *arms: Arm, n: int = 400, repetitions: int = 2, epsilon: str = "1") -> Study:
    return Study("sums", 5, repetitions, problem, Grid((n,), (Decimal(epsilon),), (DELTA,)), arms)


def arm(law: str = "skellam", estimator: str = "mle", **choices: Decimal) -> Arm:
    return Arm(Trust.DISTRIBUTED, law, estimator, tuple(sorted(choices.items())))


def run(study: Study, clients: int) -> list[Outcome]:
    return list(run_cell(study, THETA, Cell(study.grid.n[0], 0, study.repetitions), clients))


@pytest.mark.parametrize("problem", [PAIRS, THURSTONE, CHOICES, SHAPED, ITEMS])
def test_the_same_bits_whoever_holds_the_rows(problem: Problem) -> None:
    estimator = "matching" if problem is THURSTONE else "mle"
    study = study_of(problem, *(arm(law, estimator) for law in DISTRIBUTED))
    found = {clients: run(study, clients) for clients in (1, 3, 8)}
    assert len(found[1]) == 6
    for clients in (3, 8):
        for one, other in zip(found[1], found[clients], strict=True):
            assert one.theta.tobytes() == other.theta.tobytes()
            assert one.ci_low is None or (other.ci_low is not None and one.ci_low.tobytes() == other.ci_low.tobytes())
    for outcome in found[1]:
        assert outcome.claim is not None and str(outcome.claim.epsilon) == "1" and outcome.claim.delta == DELTA
        assert outcome.coins == Coins.ADDRESSED.label


def heard_of(study: Study, clients: int = 3) -> tuple[Server, Task, Heard]:
    room = in_process(study, THETA, clients)
    (offer,) = offers(study, Cell(study.grid.n[0], 0, study.repetitions))
    assert offer.task is not None
    return room.server, offer.task, listen([offer.task], room.replies)[offer.task]


@pytest.mark.parametrize("law", DISTRIBUTED)
def test_what_is_opened_is_the_sum_and_the_rows_own_noise(law: str) -> None:
    study = study_of(PAIRS, arm(law))
    _, task, heard = heard_of(study)
    room, terms = in_process(study, THETA, 1), terms_of(task, task.menu[0])
    (node,) = list(room.nodes)
    rows = answerable(task, node.source)
    for repetition in range(2):
        v = room.server.designs(PAIRS, 400, repetition).get(row_exponent(task), terms.radius).rows
        y = node.source.labels(task, repetition, rows).reveal().astype(np.float64)  # type: ignore[union-attr]
        noise = noise_of(terms.shares, rows, node.draws(task, repetition))
        assert heard.collected.sums is not None
        assert heard.collected.sums[repetition].tolist() == (y @ v + noise * 2.0 ** row_exponent(task)).tolist()
        assert np.abs(noise).max() <= 6 * float(terms.shares.share * 400) ** 0.5


def estimates(server: Server, study: Study, heard: Heard) -> list[Floats]:
    """Of every repetition, (p,)."""
    kind, (arm,) = kind_of(study.problem), study.arms
    found = []
    for repetition in range(study.repetitions):
        designs = kind.designs(server, study.problem, heard.task.n, repetition)
        seen = kind.seen(server, heard, designs)
        found.append(kind.estimators[arm.estimator](seen, options(study.problem, arm)).u)
    return found


def paired(n: int, honest: str, epsilon: str, repetitions: int) -> float:
    """The mean error over that of the curator's sum of exact rows, with the same noise, each at its own scale.

    What differs is how large noise is, that rows are rounded, and how that is undone. The law of the noise is as good
    as the curator's: its increments are, to a few parts in 10^8.
    """
    study = study_of(PAIRS, arm(honest=Decimal(honest)), n=n, repetitions=repetitions, epsilon=epsilon)
    server, task, heard = heard_of(study, clients=1)
    errors = [estimates(server, study, heard), curated(study, noise_in_units(task, study))]
    target = coordinates(PAIRS, THETA)
    own, theirs = (np.mean([np.linalg.norm(u - target) for u in found]) for found in errors)
    return float(own / theirs)


def noise_in_units(task: Task, study: Study) -> Floats:
    """The noise that rows added, over its standard deviation: (repetitions, p)."""
    terms = terms_of(task, task.menu[0])
    (node,) = list(in_process(study, THETA, 1).nodes)
    rows = np.arange(task.n)
    drawn = [noise_of(terms.shares, rows, node.draws(task, at)) for at in range(study.repetitions)]
    return np.array(drawn) / float(terms.shares.share * task.n) ** 0.5


def curated(study: Study, noise: Floats) -> list[Floats]:
    """Estimates of a curator that adds this noise to its exact sum, at the scale that it needs."""
    arm = Arm(Trust.CENTRAL, "gaussian-statistic-clipped", "mle")
    central = replace(study, arms=(arm,))
    room, kind = in_process(central, THETA, 1), kind_of(PAIRS)
    (offer,) = offers(central, Cell(study.grid.n[0], 0, study.repetitions))
    assert offer.task is not None
    heard = listen([offer.task], room.replies)[offer.task]
    assert heard.collected.sums is not None
    found = []
    for repetition, own in enumerate(noise):
        seen = kind.seen(room.server, heard, kind.designs(room.server, PAIRS, offer.task.n, repetition))
        half_sum = heard.collected.sums[repetition] - 0.5 * seen.evidence.rows.sum(axis=0)
        known = replace(seen.evidence, half_sum=half_sum + seen.evidence.noise_stddev * own)
        found.append(kind.estimators["mle"](type(seen)(known), options(PAIRS, arm)).u)
    return found


def test_as_accurate_as_a_curator() -> None:
    assert abs(paired(1000, "1", "1", 5) - 1) <= 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("n", [3000, 10_000])
def test_as_accurate_as_a_curator_over_a_hundred_repetitions(n: int) -> None:
    assert abs(paired(n, "1", "1", 100) - 1) <= 1e-3
    assert 1 <= paired(n, "0.9", "1", 100) <= 1.02


def test_a_node_that_does_not_trust_sums_under_masks_adds_to_none() -> None:
    study = study_of(PAIRS, arm())
    room = in_process(study, THETA, 2)
    nodes = [replace(node, policy=Policy()) for node in room.nodes]
    (offer,) = offers(study, Cell(400, 0, 2))
    assert offer.task is not None
    with pytest.raises(RoundFailed, match="TRUST_NOT_ALLOWED x 2"):
        listen([offer.task], partial(type(room).replies, replace(room, nodes=nodes)))


def test_collected_sums_are_one_vector_a_repetition() -> None:
    _, task, heard = heard_of(study_of(CHOICES, arm()))
    found: Collected = heard.collected
    assert found.sums is not None and found.sums.shape == (2, 4) and len(found.rows) == 400
    assert found.symbols is None and found.values is None
    assert task.modulus > 2 * np.abs(found.sums).max() * 2.0 ** -row_exponent(task)
