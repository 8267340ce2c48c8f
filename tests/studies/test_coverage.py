"""coverage.toml: 95 % intervals hold the truth between 93 % and 97 % of the time, where there are any.

1,000 repetitions of 5 coordinates whose estimates sum to zero: the standard error of a share is at most 0.7 %, so a
true 95 % leaves these limits with a probability below 5e-3 a cell even if coordinates moved together; the seed was
chosen before the first look, and the study is a fixed run.
"""

from pathlib import Path

import numpy as np
import pytest

from studies.load import load
from studies.run import run
from studies.summary import summarise

STUDY = Path(__file__).parents[2] / "studies" / "toml" / "coverage.toml"
BOUNDARY = 0.06  # the share of repetitions without an interval; measured 0.041 at most


@pytest.mark.slow
@pytest.mark.parametrize("features", ["gaussian", "sphere"])
def test_intervals_hold_the_truth_as_often_as_they_say(features: str, tmp_path: Path) -> None:
    loaded = load(STUDY, [f"problem.features={features}"])
    found = summarise(run(loaded, tmp_path), theta=loaded.theta)
    assert len(found) == 9
    for one in found:
        assert one.boundary_rate <= BOUNDARY
        assert one.coverage is not None
        # One step is known to be too narrow where little is known: docs/ESTIMATORS.md.
        low = 0.91 if one.arm.endswith("one-step") else 0.93
        assert low <= one.coverage <= 0.97, one


def test_few_repetitions_are_not_far_off(tmp_path: Path) -> None:
    """60 repetitions of 5 coordinates, of which 2 at least are free: 6 standard errors of 2 % below 0.95."""
    loaded = load(STUDY, ["study.repetitions=60", "grid.epsilon=[2.0]", "grid.n=[2000]"])
    for one in summarise(run(loaded, tmp_path, jobs=1), theta=loaded.theta):
        assert one.coverage is not None
        assert one.coverage >= 0.83
        assert np.isfinite(one.moments.mean)
