"""Rows of one hospital: made up here, read from its own file in life."""

import numpy as np

SLOPES = np.array([1.5, -1.0, 0.5])  # what made them up
EACH = 400


def rows(hospital: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (EACH, 3) and whether each patient got well (EACH,)."""
    coins = np.random.default_rng(hospital)
    x = coins.normal(size=(EACH, len(SLOPES)))
    return x, coins.random(EACH) < 1 / (1 + np.exp(-x @ SLOPES))
