"""Synthetic evidence for estimators."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from server.estimators.base import Evidence


@dataclass(frozen=True, eq=False)
class Drawn:
    """Evidence with what it was drawn from: features x (n, p), clear labels, weights (all one where clipped is off)."""

    evidence: Evidence
    truth: NDArray[np.float64]
    x: NDArray[np.float64]
    labels: NDArray[np.uint8]
    weights: NDArray[np.float64]


def draw(
    seed: int | list[int],
    n: int,
    p: int = 4,
    epsilon: float | None = None,
    noise: float | None = None,
    clipped: bool = False,
    scale: float = 1.4,
) -> Drawn:
    """Clear evidence; with epsilon that of randomised response; with noise that of a curator. Rows lie on a grid."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(1.0, -1.0, p + 1)[:p]
    x = np.round(rng.normal(size=(n, p)) * scale * 2**20) / 2**20
    labels = (rng.random(n) < 1 / (1 + np.exp(-x @ truth))).astype(np.uint8)
    uniform, shift = rng.random(n), rng.normal(size=p)
    weights = np.minimum(1.0, 2.0 / np.linalg.norm(x, axis=1)) if clipped else np.ones(n)
    rows = x * weights[:, None]
    contrast, flip, reported = 1.0, 0.0, labels
    if epsilon is not None:
        contrast, flip = math.tanh(epsilon / 2), math.exp(-epsilon) / (1 + math.exp(-epsilon))
        reported = np.where(uniform < flip, 1 - labels, labels).astype(np.uint8)
    half_sum = (reported - 0.5) @ rows + (0.0 if noise is None else noise * shift)
    symbols = None if noise is not None else reported
    public = weights if clipped else None
    return Drawn(Evidence(rows, public, symbols, half_sum, contrast, flip, noise or 0.0), truth, x, labels, weights)


@pytest.fixture(scope="session")
def drawn() -> Callable[..., Drawn]:
    """See `draw`."""
    return draw
