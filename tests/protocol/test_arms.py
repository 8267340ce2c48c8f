"""Options of arms that do not go together are refused before anybody is asked."""

from decimal import Decimal
from typing import Any

import pytest

from protocol.arms import conflict
from protocol.strict import StudyError
from protocol.study_file import parse


def study(arm: dict[str, Any], bound: bool = True) -> dict[str, Any]:
    problem = {"kind": "pairwise", "dimension": 3, "features": "gaussian"}
    return {
        "study": {"name": "x", "seed": 1, "repetitions": 1},
        "problem": problem | ({"bound": Decimal(3)} if bound else {}),
        "grid": {"n": [9], "epsilon": [1], "delta": [Decimal("1e-5")]},
        "arm": [arm],
    }


@pytest.mark.parametrize(
    ("arm", "bound", "message"),
    [
        ({"estimator": "debiased-sgd", "step": Decimal(1), "averaging": "half"}, True, "no step beside averaging"),
        ({"estimator": "debiased", "tau": Decimal(1)}, True, r'\[arm 1\] expected ridge = "tempered" beside tau'),
        ({"estimator": "debiased", "ridge": Decimal(1), "tau": Decimal(1)}, True, 'ridge = "tempered" beside tau'),
        ({"estimator": "rr-map", "tau": "bound"}, False, r'expected a bound in \[problem\] for tau = "bound"'),
        ({"estimator": "debiased", "ridge": "temperd"}, True, "did you mean 'tempered'"),
        ({"estimator": "debiased-sgd", "averaging": Decimal(1)}, True, "averaging"),
        ({"estimator": "rr-map", "interval": "bootstrap"}, True, "interval"),
    ],
)
def test_options_that_do_not_go_together(arm: dict[str, Any], bound: bool, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        parse(study({"trust": "local"} | arm, bound))


@pytest.mark.parametrize(
    "arm",
    [
        {"estimator": "debiased-sgd", "step": Decimal(1), "averaging": "last"},
        {"estimator": "debiased", "ridge": "tempered", "tau": "marginal", "interval": "bootstrap"},
        {"estimator": "rr-map", "tau": "bound"},
        {"estimator": "one-step", "interval": "wald"},
    ],
)
def test_options_that_do(arm: dict[str, Any]) -> None:
    (read,) = parse(study({"trust": "local"} | arm)).arms
    assert dict(read.options) == {key: value for key, value in arm.items() if key != "estimator"}
    assert conflict(read.estimator, dict(read.options), ball=True) is None


@pytest.mark.parametrize(
    ("counted", "fits"),
    [
        ({}, True),
        ({"survivors": Decimal("0.7")}, True),  # honest follows it
        ({"honest": Decimal("0.7"), "survivors": Decimal("0.7")}, True),
        ({"honest": Decimal("0.71"), "survivors": Decimal("0.7")}, False),
        ({"survivors": Decimal("1.01")}, False),
        ({"honest": Decimal("1.01")}, False),
    ],
)
def test_honest_rows_are_among_those_who_stay(counted: dict[str, Decimal], fits: bool) -> None:
    arm = {"trust": "distributed", "mechanism": "skellam", "estimator": "mle", **counted}
    if fits:
        assert dict(parse(study(arm)).arms[0].options) == counted
        return
    with pytest.raises(StudyError, match="honest"):
        parse(study(arm))
