"""Labelers at levels of their own over both Flower apps: the bits of the in-process runtime."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest

from protocol.arms import MENU, Arm
from protocol.population import Population
from protocol.problem import Problem
from protocol.study import Grid, Study
from protocol.trust import Trust
from server.outcome import Outcome

SameBits = Callable[[Study, np.ndarray, int], list[Outcome]]
OPINIONS = np.array([[0.75, 0.0, -0.75], [0.5, 0.5, -1.0], [1.0, -0.5, -0.5]])  # the first is the mean of the others
STUDY = Study(
    name="levels",
    seed=5,
    repetitions=3,
    problem=Problem(3, "gaussian", True, Decimal(2)),
    grid=Grid((90,), (Decimal(1),), (Decimal("1e-5"),)),
    arms=(
        Arm(Trust.LOCAL, "randomized-response", "debiased"),
        *(Arm(Trust.LOCAL, MENU, name) for name in ("debiased", "debiased-sgd", "one-step", "rr-mle", "naive")),
    ),
    population=Population((Decimal("0.5"), Decimal(4)), (Decimal("0.5"), Decimal("0.5"))),
)


@pytest.mark.parametrize("clients", [1, 4])
def test_levels_and_opinions_have_the_bits_of_the_in_process_runtime(same_bits: SameBits, clients: int) -> None:
    outcomes = same_bits(STUDY, OPINIONS, clients)
    (menu,) = {outcome.levels for outcome in outcomes if outcome.arm.mechanism == MENU}
    assert sum(count for _, count in menu) == 90
    assert [level for level, _ in menu] == [Decimal("0.5"), 4]
