"""Sums that a session opens: bit-identical to the plain sums of those who stayed, wherever others dropped out."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

from protocol.messages import Code, Runs, Task
from protocol.secure.codec import decode_ask
from protocol.secure.graph import terms, tolerated
from protocol.secure.messages import Stage
from server.evidence import Heard
from server.secure.session import securely

Make = Callable[..., Any]
SEED = 20260


def dropping(gone: dict[Stage, Collection[int]]) -> Callable[[str, bytes], bytes | None]:
    """Members that do not get what is asked at a stage, nor anything later."""

    def tamper(name: str, raw: bytes) -> bytes | None:
        stage, client = decode_ask(raw).stage, int(name.split()[1])
        return None if any(client in who for when, who in gone.items() if when <= stage) else raw

    return tamper


def same(room: Any, heard: Heard, who: Collection[int]) -> None:
    """The opened sum is the plain one of these members."""
    collected = heard.collected
    assert collected.rows.tolist() == sorted(who)
    np.testing.assert_array_equal(collected.residues, room.sum(heard.task, who))
    half = heard.task.modulus // 2
    assert collected.sums is not None and collected.residues is not None
    assert ((-half <= collected.sums) & (collected.sums < half)).all()
    np.testing.assert_array_equal(collected.sums.astype(np.int64) % heard.task.modulus, collected.residues)


def test_members_who_all_stay_open_the_plain_sum(room_of: Make, task_of: Make) -> None:
    for members in (1, 2, 3, 7):
        room, task = room_of(members), task_of(members, members)
        heard = securely([task], room.ask)[task]
        assert room.rounds == 5 and heard.collected.rejected == ()
        same(room, heard, range(members))


@pytest.mark.parametrize("modulus", [2, 1 << 8, 1 << 33, 1 << 53])
def test_every_modulus_opens(room_of: Make, task_of: Make, modulus: int) -> None:
    room, task = room_of(4), task_of(4, 3, modulus=modulus)
    same(room, securely([task], room.ask)[task], range(4))


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("stage", list(Stage))
def test_whoever_drops_out_at_a_stage_is_in_the_sum_or_not_as_a_whole(
    room_of: Make, task_of: Make, stage: Stage, share: float
) -> None:
    """Who was masked counts, though it is gone when the sum is opened; who was not is not in it."""
    members = 10
    gone = list(range(3, 3 + int(share * members)))
    room, task = room_of(members), task_of(members, 6)
    room.tamper = dropping({stage: gone})
    heard = securely([task], room.ask)[task]
    stayed = set(range(members)) - set(gone)
    same(room, heard, range(members) if stage >= Stage.CONSENT else stayed)


def test_members_drop_out_at_every_stage_of_one_session(room_of: Make, task_of: Make) -> None:
    members = 20
    room, tasks = room_of(members), [task_of(members, 13), task_of(members, 11, width=3, modulus=1 << 40)]
    room.tamper = dropping(
        {Stage.KEYS: [0], Stage.SHARES: [1, 2], Stage.INPUT: [3, 9], Stage.CONSENT: [4], Stage.OPENING: [19]}
    )
    heard = securely(tasks, room.ask)
    for task in tasks:
        same(room, heard[task], set(range(members)) - {0, 1, 2, 3, 9})


@pytest.mark.parametrize(
    ("stage", "most"), [(Stage.SHARES, 6), (Stage.INPUT, 6), (Stage.CONSENT, 6), (Stage.OPENING, 6)]
)
def test_below_the_least_members_nothing_is_opened(room_of: Make, task_of: Make, stage: Stage, most: int) -> None:
    members = 10
    assert terms(members).agree == most
    room, task = room_of(members), task_of(members, 1)
    for stay, opened in ((most, True), (most - 1, False)):
        room.tamper = dropping({stage: range(stay, members)})
        collected = securely([task], room.ask)[task].collected
        assert (collected.residues is not None) == opened
        if not opened:
            assert collected.sums is None and not len(collected.rows) and "expected" in collected.rejected[0]


def test_below_the_rows_that_noise_is_sized_for_nothing_is_opened(room_of: Make, task_of: Make) -> None:
    members, honest = 10, 9
    for gone, opened in (([4], True), ([4, 5], False)):
        for stage in (Stage.KEYS, Stage.SHARES, Stage.INPUT):
            room, task = room_of(members), task_of(members, honest)
            room.tamper = dropping({stage: gone})
            assert (securely([task], room.ask)[task].collected.residues is not None) == opened


@pytest.mark.parametrize(("says", "gone", "opened"), [(1, 0, True), (1, 2, False), (3, 2, False), (50, 8, False)])
def test_a_cheat_that_says_it_has_more_rows_does_not_stand_in_for_others(
    room_of: Make, task_of: Make, says: int, gone: int, opened: bool
) -> None:
    """Of 20 rows 19 are to stay, and a tenth may cheat: rows that two members say are theirs may be nobody's."""
    room, task = room_of(20, colluding="0.1"), task_of(20, 19)
    room.members[5].says = says
    room.tamper = dropping({Stage.KEYS: range(20 - gone, 20)})
    collected = securely([task], room.ask)[task].collected
    assert (collected.residues is not None) == opened
    if says > 1:
        assert set(collected.refusals) == {Code.TOO_FEW_MEMBERS}, "the server takes what it is told; members do not"


@pytest.mark.parametrize(("gone", "opened"), [(2, True), (3, False)])
def test_cheats_count_as_all_there_whoever_drops_out(room_of: Make, task_of: Make, gone: int, opened: bool) -> None:
    """Of 20 members two may cheat, and stay; 18 rows less theirs are as many as noise is sized for, 17 less theirs not.

    The server says who dropped out: a tenth of those whom it leaves is no bound of cheats.
    """
    room, task = room_of(20, colluding="0.1"), task_of(20, 17)
    room.tamper = dropping({Stage.INPUT: range(20 - gone, 20)})
    collected = securely([task], room.ask)[task].collected
    assert (collected.residues is not None) == opened


def test_a_member_that_expects_more_cheats_than_thresholds_are_for_takes_no_part(room_of: Make, task_of: Make) -> None:
    for colluding, opened in (("0.1", True), ("0.3", False)):
        room, task = room_of(10, colluding=colluding), task_of(10, 5)
        collected = securely([task], room.ask)[task].collected
        assert (collected.residues is not None) == opened
        assert collected.refusals == ({} if opened else {Code.TOO_FEW_MEMBERS: 10})


@pytest.mark.parametrize("members", [2, 3, 4, 5, 7, 9, 10, 19, 20, 48, 49, 300])
def test_two_lists_with_enough_signatures_share_an_honest_member(members: int) -> None:
    assert members >= terms(members).agree > (members + tolerated(members)) / 2
    assert tolerated(members) == max(members // 10, members > 2)
    assert members - 3 * members // 10 >= terms(members).agree, "as many may drop out as is said"


def test_members_of_a_policy_with_a_least_number_refuse_fewer(room_of: Make, task_of: Make) -> None:
    room, task = room_of(4, least=5), task_of(4, 2)
    collected = securely([task], room.ask)[task].collected
    assert collected.residues is None and collected.refusals == {Code.TOO_FEW_MEMBERS: 4}
    assert collected.refusing[Code.TOO_FEW_MEMBERS] == {f"client {client}" for client in range(4)}


def test_tasks_about_other_rows_have_sessions_of_their_own_side_by_side(room_of: Make, task_of: Make) -> None:
    members = 9
    room = room_of(members)
    groups = [Runs.of(range(start, members, 3)) for start in range(3)]
    tasks: list[Task] = [task_of(members, 3, rows=rows) for rows in groups]

    def tamper(name: str, raw: bytes) -> bytes | None:
        ask = decode_ask(raw)
        held = [
            int(name.split()[1]) in rows.numbers()
            for task, rows in zip(tasks, groups, strict=True)
            if ask.agenda.tasks == (by_task[task],)
        ]
        return raw if held == [True] else None

    from protocol.codec import encode_task, identity

    by_task = {task: identity(encode_task(task)) for task in tasks}
    room.tamper = tamper
    heard = securely(tasks, room.ask)
    assert room.rounds == 5
    for task, rows in zip(tasks, groups, strict=True):
        same(room, heard[task], rows.numbers().tolist())


@pytest.mark.parametrize("members", [49, pytest.param(100, marks=pytest.mark.slow)])
def test_members_open_their_sum_over_a_circle(room_of: Make, task_of: Make, members: int) -> None:
    """Three of ten drop out, at several stages."""
    assert terms(members).crowd > 0
    room, task = room_of(members), task_of(members, 7 * members // 10, width=10)
    gone = np.random.Generator(np.random.Philox(SEED)).permutation(members)[: 3 * members // 10].tolist()
    first, last = members // 10, members // 4
    room.tamper = dropping({Stage.SHARES: gone[:first], Stage.INPUT: gone[first:last], Stage.OPENING: gone[last:]})
    heard = securely([task], room.ask)[task]
    same(room, heard, set(range(members)) - set(gone[:last]))


@pytest.mark.slow
def test_a_thousand_members_open_their_sum(room_of: Make, task_of: Make) -> None:
    members = 1000
    room, task = room_of(members), task_of(members, 700, width=10)
    gone = np.random.Generator(np.random.Philox(SEED)).permutation(members)[:300].tolist()
    room.tamper = dropping({Stage.INPUT: gone[:250], Stage.CONSENT: gone[250:]})
    heard = securely([task], room.ask)[task]
    same(room, heard, set(range(members)) - set(gone[:250]))
