"""Test values of heavy-tailed estimation, and channels by short names."""

import csv
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from protocol.numeric import numeric_channel
from protocol.numeric.channel import NumericChannel

ORACLES = Path(__file__).resolve().parents[4] / "shared" / "oracles" / "heavy_tailed.csv"


@pytest.fixture(scope="session")
def heavy_oracle() -> Callable[[str], float]:
    """The value of this name, or the only one whose name starts so; without the file a user skips, CI fails."""
    if not ORACLES.is_file():
        if os.environ.get("CI") == "true":
            pytest.fail(f"expected {ORACLES} to exist in continuous integration")
        pytest.skip(f"no oracle values beside the checkout: {ORACLES}")
    with ORACLES.open(newline="", encoding="utf-8") as file:
        values = {row["name"]: float(row["value"]) for row in csv.DictReader(file)}

    def found(start: str) -> float:
        if start in values:
            return values[start]
        (value,) = (value for name, value in values.items() if name.startswith(start))
        return value

    return found


@pytest.fixture(scope="session")
def make() -> Callable[..., NumericChannel]:
    """make(name, dimension, epsilon, threshold="1", coordinates=None): a channel; delta of gaussian is 1e-5."""

    def channel(
        name: str, dimension: int, epsilon: str, threshold: str = "1", coordinates: int | None = None
    ) -> NumericChannel:
        parameters = {
            "epsilon": Decimal(epsilon),
            "threshold": Decimal(threshold),
            "dimension": Decimal(dimension),
        }
        if name == "gaussian":
            parameters["delta"] = Decimal("1e-5")
        if coordinates is not None:
            parameters["coordinates"] = Decimal(coordinates)
        return numeric_channel(name, parameters)

    return channel
