"""What means in clear and Algorithm 3 do where groups, shapes and thresholds are said, by hand."""

from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from client.sources.synthetic_records import SyntheticRecords
from protocol.record_law import RecordLaw
from protocol.strict import StudyError
from protocol.study import Cell
from studies.in_process import run_cell
from studies.load import Loaded, build

N, D = 103, 2
CLEAR = {"trust": "clear", "estimator": "mean"}
THIRD = {"trust": "central", "estimator": "algorithm-3"}


def study(*arms: dict[str, Any], **tables: Any) -> Loaded:
    content = {
        "study": {"name": "options", "seed": 5, "repetitions": 1},
        "problem": {"kind": "records", "model": "mean", "dimension": D},
        "records": {"features": "pareto(1.6)", "tail": Decimal("0.5"), "moment": 16},
        "grid": {"n": [N], "epsilon": [1], "delta": [Decimal("1e-5")]},
        "arm": list(arms),
        **tables,
    }
    return build(content, Path())


def found(*arms: dict[str, Any]) -> list[NDArray[np.float64]]:
    loaded = study(*arms)
    return [one.theta for one in run_cell(loaded.study, loaded.theta, Cell(N, 0, 1))]


def drawn() -> NDArray[np.float64]:
    """The records of the study's one repetition, (N, D)."""
    loaded = study(CLEAR)
    law = loaded.study.records
    assert isinstance(law, RecordLaw)
    source = SyntheticRecords(loaded.study.problem, law, loaded.theta, 5)
    x, _ = source._draw(N, 0, 0, N)
    return x[:, 0]


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        (THIRD, "central/gaussian-classical/algorithm-3, or a threshold, a number"),
        ({"trust": "central", "estimator": "mean", "threshold": "mse"}, "or a threshold, a number"),
        ({"trust": "central", "estimator": "algorithm-1"}, "since it has no threshold of its own"),
        ({"trust": "local", "estimator": "mean"}, "or a threshold, a number"),
    ],
)
def test_a_study_says_how_contributions_are_bounded(arm: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=r"\[records\] expected tail and moment for .*" + said):
        study(arm, records={"features": "pareto(1.6)"})
    for bounded in (
        CLEAR,
        {**THIRD, "threshold": 3},
        {"trust": "central", "estimator": "mean", "threshold": "private"},
    ):
        study(bounded, records={"features": "pareto(1.6)"})


def test_clear_means_are_bounded_where_a_threshold_is_said() -> None:
    x = drawn()
    whole, clipped, truncated = found(CLEAR, {**CLEAR, "threshold": 3}, {**CLEAR, "threshold": 3, "shape": "truncate"})
    assert whole == pytest.approx(x.mean(axis=0))
    assert clipped == pytest.approx(np.minimum(x, 3).mean(axis=0))
    assert truncated == pytest.approx(np.where(x <= 3, x, 0).mean(axis=0))


@pytest.mark.parametrize("groups", [1, 4, 7])
def test_a_clear_median_of_means_by_hand(groups: int) -> None:
    """Groups are runs of rows, cut at floor(k n / m)."""
    x = drawn()
    cuts = [k * N // groups for k in range(groups + 1)]
    means = [x[low:high].mean(axis=0) for low, high in pairwise(cuts)]
    (ours,) = found({**CLEAR, "estimator": "median-of-means", "groups": groups})
    assert ours == pytest.approx(np.median(means, axis=0))


def test_algorithm_3_adds_noise_in_proportion_to_its_threshold() -> None:
    """Beyond all records nothing is cut: 2 theta(t) - theta(2t) is the median without noise, for both shapes."""
    top = Decimal(int(np.abs(drawn()).max()) + 1)
    arms = [{**THIRD, "groups": 6, "threshold": top * k} for k in (1, 2)]
    once, twice, clipped, clear = found(
        *arms, {**arms[0], "shape": "clip"}, {**CLEAR, "estimator": "median-of-means", "groups": 6}
    )
    assert 2 * once - twice == pytest.approx(clear, abs=1e-6)
    assert (once == clipped).all() and not (once == twice).any()


@pytest.mark.parametrize("arm", [CLEAR, THIRD])
def test_rules_for_thresholds_are_refused_where_there_are_none(arm: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match="expected a number as threshold, got 'bound'"):
        found({**arm, "threshold": "bound"})
