"""Arms that share a pass get the bits that their estimators give them alone."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.study import Cell
from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Options
from server.estimators.side_by_side import together
from studies.in_process import run_cell
from studies.load import build

Draw = Callable[..., Any]
LEVELS = (None, 1.0, 2.0, 4.0)


def arms(drawn: Draw, seed: int, options: Options, ties: bool = False) -> list[tuple[str, Workspace, Options]]:
    """Clear and randomised reports about one array of rows; more than a block of them."""
    made = []
    rows = drawn(seed, 4500).evidence.rows
    for epsilon in LEVELS:
        evidence = replace(drawn(seed, 4500, epsilon=epsilon).evidence, rows=rows)
        if ties and epsilon is None:
            evidence = replace(
                evidence, symbols=np.where(np.arange(4500) % 7 == 3, 2, evidence.symbols).astype("uint8")
            )
        made.append(("sgd" if epsilon is None else "debiased-sgd", Workspace(evidence), options))
    return made


@pytest.mark.parametrize("bound", [math.inf, 0.8])
@pytest.mark.parametrize("ties", [False, True])
def test_a_pass_of_many_arms_has_the_bits_of_each_alone(drawn: Draw, bound: float, ties: bool) -> None:
    asked = arms(drawn, 1, Options(bound), ties)
    asked += [(name, seen, Options(bound, step=0.05 * k)) for k in range(1, 5) for name, seen, _ in asked[:4]]
    assert len(asked) == 20  # more than there are lanes
    found = together(asked)
    assert sorted(found) == list(range(20))
    for place, (name, seen, options) in enumerate(asked):
        alone = ESTIMATORS[name](Workspace(seen.evidence), options)
        np.testing.assert_array_equal(found[place].u, alone.u)
        assert found[place].hit_boundary == alone.hit_boundary and found[place].warnings == alone.warnings == ()


def test_what_shares_nothing_is_left_to_its_estimator(drawn: Draw) -> None:
    usual = Options(3.0)
    one, other = arms(drawn, 2, usual), arms(drawn, 3, usual)
    assert together([one[1], other[1]]) == {}  # other rows
    assert together([one[1], (*one[2][:2], Options(2.0))]) == {}  # another ball
    assert together([(*one[1][:2], replace(usual, averaging="all"))] * 2) == {}
    assert together([("debiased", *one[1][1:])] * 2) == {}
    assert together([("sgd", *one[1][1:])] * 2) == {}  # of randomised labels: its estimator refuses
    central = ("sgd", Workspace(drawn(2, 50, noise=1.0).evidence), usual)
    assert together([central, central]) == {}
    assert set(together([one[0], other[1], central, one[1]])) == {0, 3}


def test_arms_of_a_study_have_the_bits_of_studies_of_one_arm() -> None:
    local = {"trust": "local", "mechanism": "randomized-response"}
    clear = {"trust": "clear", "estimator": "sgd"}
    every = [clear, local | {"estimator": "debiased-sgd"}, local | {"estimator": "rr-mle"}]

    def estimates(own: list[dict[str, str]], levels: list[str]) -> dict[Any, bytes]:
        content = {
            "study": {"name": "s", "seed": 5, "repetitions": 2},
            "problem": {
                "kind": "pairwise",
                "dimension": 3,
                "features": "gaussian",
                "theta": [0.5, 0.0, -0.5],
                "bound": Decimal(1),
            },
            "grid": {"n": [300], "epsilon": [Decimal(level) for level in levels]},
            "arm": own,
        }
        loaded = build(content, Path())
        played = run_cell(loaded.study, loaded.truth, Cell(300, 0, 2), clients=2)
        return {(one.arm.estimator, one.epsilon, one.repetition): one.theta.tobytes() for one in played}

    whole = estimates(every, ["0.5", "2"])
    assert len(whole) == 2 * (1 + 2 + 2)
    alone = estimates([clear], ["0.5"])
    for arm in every[1:]:
        for level in ("0.5", "2"):
            alone |= estimates([arm], [level])
    assert whole == alone
