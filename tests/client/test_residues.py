"""What members of a sum under masks add: fresh noise of their rows' variance, once, and nothing outside a session."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from client.choice import TaskInvalid
from client.draws import AddressedDraws, SecretDraws
from client.labeler import answer
from client.policy import Policy
from client.residues import noise_of, residues
from protocol.arms import Arm
from protocol.codec import decode_reply, encode_task
from protocol.coins import Address, Stream, Words, words
from protocol.messages import Code, Coins, Mechanism, Refusal, Task
from protocol.noise.terms import Terms, terms_of
from protocol.problem import Problem
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.tasks import offers

ROWS = np.arange(40)
PROBLEM = Problem(4, "gaussian", True, Decimal(3))


class Live(AddressedDraws):
    """Coins that are taken for the system's, and are the same every time the test runs."""

    coins = Coins.OS

    def __init__(self, place: int) -> None:
        super().__init__(7, 40, place)
        self._place = place

    def vectors(self, rows: NDArray[np.int64], count: int) -> Words:
        """Others for every place."""
        return words(Address(7, Stream.AUDIT, 40, self._place), 0, count * len(rows)).reshape(len(rows), count)


def task_of(law: str = "skellam", **changes: Any) -> Task:
    study = Study(
        "residues",
        3,
        1,
        PROBLEM,
        Grid((40,), (Decimal(1),), (Decimal("0.00001"),)),
        (Arm(Trust.DISTRIBUTED, law, "mle"),),
    )
    (offer,) = offers(study, Cell(40, 0, 1))
    assert offer.task is not None
    return replace(offer.task, **changes)


def of(task: Task) -> Terms:
    return terms_of(task, task.menu[0])


@pytest.mark.parametrize("law", ["skellam", "discrete-gaussian", "binomial"])
@pytest.mark.parametrize("rows", [1, 7])
def test_live_noise_has_the_variance_of_its_rows(law: str, rows: int) -> None:
    """1,500 numbers, nearly normal: 1e-9 of right samplers fail on either side."""
    shares = of(task_of(law)).shares
    drawn = np.array([noise_of(shares, ROWS[:rows], Live(place)) for place in range(500)])
    freedom = drawn.size
    ratio = float((drawn.astype(float) ** 2).sum()) / float(shares.share * rows)
    assert chi2.ppf(1e-9, freedom) * 0.99 <= ratio <= chi2.isf(1e-9, freedom) * 1.01
    assert abs(drawn.mean()) <= 6.2 * float(shares.share * rows) ** 0.5 / freedom**0.5


def test_coins_of_the_system_are_other_ones_each_time() -> None:
    shares = of(task_of()).shares
    found = {noise_of(shares, ROWS[:3], SecretDraws()).tobytes() for _ in range(20)}
    assert len(found) == 20


def test_simulated_noise_is_the_rows_own_whoever_answers() -> None:
    shares, draws = of(task_of()).shares, AddressedDraws(7, 40, 0)
    whole = noise_of(shares, ROWS, draws)
    parts = [noise_of(shares, part, draws) for part in (ROWS[:1], ROWS[1:17], ROWS[17:])]
    assert whole.tolist() == np.sum(parts, axis=0).tolist()


def test_noise_that_is_used_twice_hides_one_member_behind_its_own_share_only() -> None:
    """Two cohorts that differ in a member: with old noise their difference is what that one added, with new noise not.

    Its label moves it by one and a half standard deviations of the noise left, and by a quarter of one of all of it.
    """
    task = task_of()
    terms, unit = of(task), 2.0 ** (task.exponent or 0)
    label = np.zeros((1, 3))
    label[0, 0] = np.trunc(terms.sensitivity_squared**0.5 - 1) * unit  # y q of the member, as long as any

    def added(rows: NDArray[np.int64], sums: NDArray[np.float64], place: int) -> NDArray[np.int64]:
        found = residues(task, task.menu[0], rows, sums, lambda _: AddressedDraws(7, 40, place))
        return found[0].astype(np.int64)

    def opened(values: NDArray[np.int64]) -> NDArray[np.int64]:
        half = task.modulus // 2
        return (values + half) % task.modulus - half

    one, others, nothing = ROWS[:1], ROWS[1:], np.zeros((1, 3))
    both = added(one, label, 0) + added(others, nothing, 0)
    reused = opened(both - added(others, nothing, 0))
    assert reused.tolist() == opened(added(one, label, 0)).tolist()
    share, all_of_it = float(terms.shares.share) ** 0.5, float(terms.shares.variance) ** 0.5
    assert abs(reused[0] * unit - label[0, 0]) <= 6 * share * unit
    fresh = [opened(both - added(others, nothing, place))[0] - reused[0] for place in range(1, 60)]
    assert np.std(np.array(fresh, dtype=float)) > 0.7 * all_of_it
    assert label[0, 0] / unit / share > 1.5 > label[0, 0] / unit / all_of_it


def test_nothing_is_added_for_a_claim_that_its_noise_does_not_keep() -> None:
    task = task_of()
    (item,) = task.menu
    for wrong in (
        replace(task, menu=(Mechanism.of(item.name, **(dict(item.parameters) | {"variance": Decimal(4000)})),)),
        replace(task, trust=Trust.CENTRAL),
        replace(task, exponent=None),
        replace(task, modulus=0),
    ):
        with pytest.raises(TaskInvalid, match="expected"):
            residues(wrong, wrong.menu[0], ROWS, np.zeros((1, 3)), lambda _: SecretDraws())


def test_no_client_answers_such_a_task_by_itself(desk: Any, votes: Any) -> None:
    """Its own share is all of the noise that would be on its sum."""
    node = desk.node(votes, Policy(trusts=frozenset(Trust)))
    reply = decode_reply(answer(encode_task(task_of()), node))
    assert isinstance(reply, Refusal) and reply.code is Code.TASK_INVALID
