"""Oracle values, and all small sets of reports at once."""

import csv
import os
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

ORACLES = Path(__file__).resolve().parents[4] / "shared" / "oracles" / "heavy_tailed.csv"
Columns = Callable[[Iterable[float], int], NDArray[np.float64]]


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


@pytest.fixture(scope="session")
def all_columns() -> Columns:
    """All sets of `count` values out of `grid`, one a column: shape (count, len(grid)^count)."""

    def built(grid: Iterable[float], count: int) -> NDArray[np.float64]:
        return np.array(list(product(grid, repeat=count))).T

    return built
