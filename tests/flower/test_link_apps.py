"""Other models of pairs over both Flower apps: the bits of the in-process runtime."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest

from protocol.arms import LINK_ESTIMATORS, MECHANISMS, Arm
from protocol.links import LINKS
from protocol.problem import Problem
from protocol.runconfig import read, write
from protocol.study import Grid, Study
from protocol.trust import Trust
from server.outcome import Outcome

SameBits = Callable[[Study, np.ndarray, int], list[Outcome]]
THETA = np.array([1.0, 0.0, -1.0])


def study(model: str) -> Study:
    """Every arm with the first mechanisms of its trust model, but those about panels; few rows."""
    problem = Problem(3, "sphere", True, Decimal(2), None, "pairwise", model)
    known = [(trust, name) for trust, name in LINK_ESTIMATORS if trust is not Trust.SHUFFLED]
    arms = tuple(Arm(trust, MECHANISMS[trust, "pairwise"][0], name) for trust, name in known)
    return Study(model, 3, 2, problem, Grid((45,), (Decimal("0.7"),), (Decimal("1e-5"),)), arms)


@pytest.mark.parametrize("model", [name for name in LINKS if name != "btl"])
def test_every_arm_has_the_bits_of_the_in_process_runtime(same_bits: SameBits, model: str) -> None:
    asked = study(model)
    assert read(write(asked)).study.problem.model == model
    same_bits(asked, THETA, 3)
