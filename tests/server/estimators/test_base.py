"""What evidence and options refuse."""

import math
from typing import Any

import numpy as np
import pytest

from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Evidence, Options
from server.estimators.features import Features

GOOD: dict[str, Any] = {
    "rows": np.ones((3, 2)),
    "weights": None,
    "symbols": np.zeros(3, np.uint8),
    "half_sum": np.zeros(2),
    "contrast": 0.5,
    "flip": 0.25,
    "noise_stddev": 0.0,
}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rows", np.ones(3), r"expected rows of shape \(n, p\)"),
        ("rows", np.ones((0, 2)), "with n, p > 0"),
        ("rows", np.ones((3, 2), np.float32), "expected rows of float64"),
        ("rows", np.full((3, 2), np.nan), "expected finite rows"),
        ("half_sum", np.zeros(3), r"expected half_sum of float64 and shape \(2,\)"),
        ("half_sum", np.array([0.0, np.inf]), "expected finite half_sum"),
        ("symbols", np.zeros(2, np.uint8), "expected symbols of uint8"),
        ("symbols", np.zeros(3, np.int64), "expected symbols of uint8"),
        ("symbols", np.full(3, 3, np.uint8), "expected symbols 0 and 1, or 2 for ties, got 3"),
        ("weights", np.zeros(3), r"expected weights in \(0, 1\]"),
        ("weights", np.full(3, 1.5), r"expected weights in \(0, 1\]"),
        ("flip", 0.5, "expected flip = 0 or"),
        ("flip", 1e-30, "expected flip = 0 or"),
        ("flip", math.nan, "expected flip = 0 or"),
        ("contrast", 0.6, "expected contrast = 1 - 2 flip"),
        ("contrast", 0.0, "expected contrast = 1 - 2 flip"),
        ("noise_stddev", -1.0, "expected a finite noise_stddev >= 0"),
        ("noise_stddev", math.nan, "expected a finite noise_stddev >= 0"),
        ("features", Features.of(np.ones((4, 2)), None), "expected features of shape"),
    ],
)
def test_evidence_refuses(field: str, value: object, message: str) -> None:
    Evidence(**GOOD)
    with pytest.raises(ValueError, match=message):
        Evidence(**(GOOD | {field: value}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bound": 0.0}, "expected bound > 0"),
        ({"bound": math.nan}, "expected bound > 0"),
        ({"step": "oracle"}, r"expected step out of \('pilot',\) or a number, got 'oracle'"),
        ({"step": 0.0}, "expected a finite step > 0, got 0.0"),
        ({"step": math.inf}, "expected a finite step > 0, got inf"),
        ({"tau": "bond"}, "expected tau out of"),
        ({"tau": "bound", "bound": math.inf}, "expected a finite bound for tau"),
        ({"ridge": "temperd"}, "expected ridge out of"),
        ({"averaging": "some"}, "expected averaging out of"),
        ({"averaging": 0.5}, "expected averaging out of"),
        ({"interval": "none"}, "expected interval out of"),
        ({"tau": 0.0}, "expected a finite tau > 0"),
        ({"tau": math.nan}, "expected a finite tau > 0"),
        ({"ridge": -1.0}, "expected a finite ridge >= 0"),
        ({"ridge": math.inf}, "expected a finite ridge >= 0"),
    ],
)
def test_options_refuse(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**({"bound": 1.0} | changed))


def test_features_at_hand_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    rows, symbols = rng.normal(size=(900, 3)), rng.integers(0, 2, 900).astype(np.uint8)
    base = (rows, None, symbols, (symbols - 0.5) @ rows, 0.5, 0.25, 0.0)
    for name in ("debiased", "rr-map", "debiased-sgd"):
        one, other = (
            ESTIMATORS[name](Workspace(Evidence(*base, features=features)), Options(2.0)).u
            for features in (None, Features.of(rows, None))
        )
        np.testing.assert_array_equal(one, other)


def test_rows_are_looked_at_once_where_nobody_can_write_to_them() -> None:
    rows, symbols = np.ones((40, 2)), np.zeros(40, np.uint8)
    features, rest = Features.of(rows, None), (None, symbols, np.zeros(2), 0.5, 0.25, 0.0)
    assert not features.vouch_for(rows)  # they may be written to
    Evidence(rows, *rest, features)
    rows[7, 1] = np.nan
    with pytest.raises(ValueError, match="expected finite rows"):
        Evidence(rows, *rest, features)
    rows.flags.writeable = False
    with pytest.raises(ValueError, match="expected finite rows"):
        Evidence(rows, *rest, features)
    held = np.ones((40, 2))
    held.flags.writeable = False
    assert Features.of(held, None).vouch_for(held)
    assert not Features.of(held, None).vouch_for(held.copy())
    assert not Features.of(held, None).vouch_for(held[:])
