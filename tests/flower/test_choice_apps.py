"""Top choices over both Flower apps: the bits of the in-process runtime, given features and sizes included."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest

from protocol.arms import CHOICE_ESTIMATORS, MECHANISMS, Arm
from protocol.problem import Problem
from protocol.study import Grid, Study
from protocol.trust import Trust
from server.outcome import Outcome

SameBits = Callable[[Study, np.ndarray, int], list[Outcome]]
THETA = np.array([1.0, 0.0, -1.0])


def study(features: str) -> Study:
    """Every arm but those about panels, few rows; given ones have two to four choices."""
    given, sizes = None, None
    if features == "values":
        rng = np.random.default_rng(2)
        sizes = rng.integers(2, 5, size=45).astype(np.int32)
        given = np.where(np.arange(4)[:, None] < sizes[:, None, None], rng.normal(size=(45, 4, 3)), 0.0)
    problem = Problem(3, features, True, Decimal(2), given, "choice", "plackett-luce", 4, sizes)
    arms = tuple(
        Arm(trust, mechanism, name)
        for trust, name in CHOICE_ESTIMATORS
        for mechanism in MECHANISMS[trust, "choice"]
        if (name != "literal" or mechanism == "k-randomized-response") and trust is not Trust.SHUFFLED
    )
    return Study("choices", 3, 2, problem, Grid((45,), (Decimal("0.7"),), (Decimal("1e-5"),)), arms)


@pytest.mark.parametrize(("features", "clients"), [("gaussian", 1), ("gaussian", 3), ("values", 4)])
def test_every_arm_has_the_bits_of_the_in_process_runtime(same_bits: SameBits, features: str, clients: int) -> None:
    same_bits(study(features), THETA, clients)
