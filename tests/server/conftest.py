"""Test values of heavy-tailed estimation, each computed elsewhere in two ways."""

import csv
import os
from collections.abc import Callable
from pathlib import Path

import pytest

ORACLES = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "heavy_tailed.csv"


@pytest.fixture(scope="session")
def heavy_oracle() -> Callable[[str], float]:
    """The value whose name starts so: without the file a user's machine skips, continuous integration fails."""
    if not ORACLES.is_file():
        if os.environ.get("CI") == "true":
            pytest.fail(f"expected {ORACLES} to exist in continuous integration")
        pytest.skip(f"no oracle values beside the checkout: {ORACLES}")
    with ORACLES.open(newline="", encoding="utf-8") as file:
        values = {row["name"]: float(row["value"]) for row in csv.DictReader(file)}

    def found(start: str) -> float:
        (value,) = (value for name, value in values.items() if name.startswith(start))
        return value

    return found
