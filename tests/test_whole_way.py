"""One label's whole way, in one process: the same bits for any split, block and order; failures are loud."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from client.labeler import answer
from client.policy import Policy
from protocol.codec import decode_reply, decode_task, encode_reply
from protocol.messages import Kind, Refusal
from protocol.runconfig import DEFAULT_STUDY
from protocol.study import Cell, Study, cells
from protocol.study_file import parse
from protocol.trust import Trust
from server.listening import RoundFailed
from server.outcome import Outcome
from server.rounds import play
from studies.in_process import InProcess, in_process, run_cell

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])


def study(features: str = "gaussian") -> Study:
    """All arms of the built-in study, one with an option."""
    content = tomllib.loads(DEFAULT_STUDY, parse_float=Decimal)
    content["study"] |= {"name": "small", "seed": 5}
    content["problem"]["features"] = features
    content["grid"] |= {"n": [300], "epsilon": [Decimal("0.5"), Decimal("2.0")]}
    (paper,) = (arm for arm in content["arm"] if arm.get("mechanism") == "objective-perturbation-paper")
    paper["norm"] = "unprojected"
    return parse(content)


def bits(outcomes: list[Outcome]) -> dict[tuple[object, ...], bytes]:
    return {(o.arm.name, o.epsilon, o.repetition): o.theta.tobytes() for o in outcomes}


@pytest.fixture(scope="module")
def reference() -> list[Outcome]:
    return list(run_cell(study(), THETA, Cell(300, 0, 4)))


@pytest.mark.parametrize("clients", [3, 8, 300])
def test_the_number_of_clients_changes_no_bit(reference: list[Outcome], clients: int) -> None:
    assert bits(list(run_cell(study(), THETA, Cell(300, 0, 4), clients))) == bits(reference)


@pytest.mark.parametrize("block", [1, 3])
def test_the_block_of_repetitions_changes_no_bit(reference: list[Outcome], block: int) -> None:
    pieces = [outcome for cell in cells(study(), block) for outcome in run_cell(study(), THETA, cell, 2)]
    assert bits(pieces) == bits(reference)


def through(change: Callable[[list[bytes]], list[bytes]], clients: int = 5) -> list[Outcome]:
    room = in_process(study(), THETA, clients)
    return list(play(study(), Cell(300, 0, 4), lambda tasks: change(room.ask(tasks)), room.server))


def test_the_order_of_arrival_changes_no_bit(reference: list[Outcome]) -> None:
    order = np.random.Generator(np.random.Philox(1))
    assert bits(through(lambda replies: [replies[i] for i in order.permutation(len(replies))])) == bits(reference)


def test_one_message_with_all_reports_is_as_good_as_many(reference: list[Outcome]) -> None:
    def joined(replies: list[bytes]) -> list[bytes]:
        decoded = [decode_reply(reply) for reply in replies]
        return [encode_reply([(signed.raw, signed.signature) for reply in decoded for signed in reply])]  # type: ignore[union-attr]

    assert bits(through(joined)) == bits(reference)


def test_an_arm_does_not_depend_on_the_arms_beside_it(reference: list[Outcome]) -> None:
    """An estimate may use its own task's reports only, so leaving other arms out changes no bit of it."""
    whole = study()
    for arm in whole.arms[1:]:
        alone = list(run_cell(replace(whole, arms=(arm,)), THETA, Cell(300, 1, 2)))
        expected = {k: v for k, v in bits(reference).items() if k[0] == arm.name and k[2] in (1, 2)}
        assert bits(alone) == expected


def test_an_estimate_does_not_depend_on_the_other_epsilon(reference: list[Outcome]) -> None:
    whole = study()
    alone = replace(whole, grid=replace(whole.grid, epsilon=(Decimal("2.0"),)))
    for key, theta in bits(list(run_cell(alone, THETA, Cell(300, 0, 1)))).items():
        assert theta == bits(reference)[key]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda replies: replies[1:], "got 240"),
        (lambda replies: [*replies, replies[0]], "already here"),
        (lambda replies: [*replies[1:], replies[0][:-1]], "do not parse"),
    ],
)
def test_a_round_that_is_not_complete_fails(change: Callable[[list[bytes]], list[bytes]], reason: str) -> None:
    with pytest.raises(RoundFailed, match=reason):
        through(change)


def test_a_refusal_fails_the_round_with_its_code() -> None:
    room = in_process(study(), THETA, 2)
    careful = replace(room.nodes[1], policy=Policy())  # local only, the default
    mixed = InProcess((room.nodes[0], careful), room.server)
    with pytest.raises(RoundFailed, match="TRUST_NOT_ALLOWED x 1"):
        list(play(study(), Cell(300, 0, 1), mixed.ask, mixed.server))


def test_what_crosses_the_border_in_each_trust_model() -> None:
    """Local arms send symbols made by the table they name; clear symbols and exact sums only answer their own tasks."""
    room = in_process(study(), THETA, 2)
    crossed: list[tuple[bytes, bytes]] = []

    def ask(tasks: list[bytes]) -> list[bytes]:
        pairs = [(raw, answer(raw, node)) for node in room.nodes for raw in tasks]
        crossed.extend(pairs)
        return [reply for _, reply in pairs]

    list(play(study(), Cell(300, 0, 1), ask, room.server))
    assert crossed
    for raw, reply in crossed:
        task, signed = decode_task(raw), decode_reply(reply)
        assert not isinstance(signed, Refusal)
        for report in (item.report for item in signed):
            assert report.payload.kind is (Kind.EXACT_SUMS if task.trust is Trust.CENTRAL else Kind.SYMBOLS)
            assert bool(report.table) is (task.trust is Trust.LOCAL)


def test_intervals_and_claims(reference: list[Outcome]) -> None:
    for outcome in reference:
        if outcome.arm.trust in (Trust.LOCAL, Trust.CENTRAL):
            assert outcome.claim is not None
            assert outcome.claim.epsilon == outcome.epsilon
            assert outcome.claim.delta == (0 if outcome.arm.trust is Trust.LOCAL else outcome.delta)
            assert outcome.coins == "addressed"
        else:
            assert outcome.claim is None
        if outcome.arm.trust is Trust.LOCAL:
            assert outcome.computed_epsilon is not None
            assert Decimal("0.99") * outcome.claim.epsilon <= outcome.computed_epsilon <= outcome.claim.epsilon  # type: ignore[union-attr]
        if outcome.ci_low is not None and outcome.ci_high is not None:
            assert (outcome.ci_low < outcome.theta).all()
            assert (outcome.theta < outcome.ci_high).all()
            assert not outcome.hit_boundary
        assert abs(outcome.theta.sum()) < 1e-12
        assert np.linalg.norm(outcome.theta) <= 3 * (1 + 1e-9)


def test_spheres_go_the_same_way() -> None:
    one = bits(list(run_cell(study("sphere"), THETA, Cell(300, 2, 2), 1)))
    assert bits(list(run_cell(study("sphere"), THETA, Cell(300, 2, 2), 7))) == one
