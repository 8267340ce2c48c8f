"""All small sets of reports at once."""

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

Columns = Callable[[Iterable[float], int], NDArray[np.float64]]


@pytest.fixture(scope="session")
def all_columns() -> Columns:
    """All sets of `count` values out of `grid`, one a column: shape (count, len(grid)^count)."""

    def built(grid: Iterable[float], count: int) -> NDArray[np.float64]:
        return np.array(list(product(grid, repeat=count))).T

    return built
