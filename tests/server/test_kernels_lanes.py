"""Several arms in one pass have the bits of each on its own."""

import math

import numpy as np
import pytest

from server.kernels_descent import descend
from server.kernels_lanes import descend_lanes


@pytest.mark.parametrize("lanes", [1, 5, 16])
@pytest.mark.parametrize("bound", [math.inf, 0.7])
def test_every_lane_is_a_descent_of_its_own(lanes: int, bound: float) -> None:
    rng = np.random.default_rng(lanes)
    rows, symbols = rng.normal(size=(700, 3)), (rng.random((700, lanes)) < 0.6).astype(np.uint8)
    flips, alphas = rng.uniform(0, 0.45, lanes), rng.uniform(0.05, 0.5, lanes)
    flips[0] = 0.0
    contrasts = 1.0 - 2.0 * flips
    together = np.zeros((3, lanes))
    for start, end in ((0, 300), (300, 700)):  # a pass may come in parts
        descend_lanes(rows[start:end], symbols[start:end], contrasts, flips, alphas, bound, float(start), together)
    columns = np.ascontiguousarray(rows.T)
    for lane in range(lanes):
        u = np.zeros(3)
        own = symbols[:, lane].astype(np.float64)
        descend(columns, own, contrasts[lane], flips[lane], alphas[lane], bound, 0.0, u)
        np.testing.assert_array_equal(together[:, lane], u)
        assert np.linalg.norm(u) <= bound * (1 + 1e-15)
