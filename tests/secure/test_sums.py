"""Sums that a session opens: bit-identical to the plain sums of those who stayed, wherever others dropped out."""

import numpy as np

from server.secure.session import securely
from tests.secure.conftest import room_of, task_of

SEED = 20260


def test_members_who_all_stay_open_the_plain_sum() -> None:
    for members in (1, 2, 3, 7):
        room, task = room_of(members), task_of(members, members)
        heard = securely([task], room.ask)[task]
        assert room.rounds == 5
        assert heard.collected.rejected == () and heard.collected.rows.tolist() == list(range(members))
        assert heard.collected.residues is not None and heard.collected.sums is not None
        np.testing.assert_array_equal(heard.collected.residues, room.sum(task))
