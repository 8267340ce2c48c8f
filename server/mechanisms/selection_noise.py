"""What selections share: noise from words, a sparse answer, checks. For simulation: doubles leak through low bits."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Floats, Words, uniform


@dataclass(frozen=True)
class Selected:
    """Coordinates in the order in which they were chosen, and a value of each; zero elsewhere."""

    support: NDArray[np.int64]
    values: Floats

    def vector(self, dimension: int) -> Floats:
        """The same with zeros written out, shape (dimension,)."""
        full = np.zeros(dimension)
        full[self.support] = self.values
        return full


@dataclass(frozen=True)
class Cost:
    """What a selection costs: `rho` of zCDP, and a `pure` level, infinity where there is none. Both rounded up."""

    rho: float
    pure: float


def laplace(words: Words) -> Floats:
    """One standard Laplace number a word: sign(u - 1/2) times -log(2 min(u, 1 - u)), u of `protocol.coins.uniform`."""
    drawn = uniform(words)
    noise: Floats = np.where(drawn > 0.5, -1.0, 1.0) * np.log(2 * np.minimum(drawn, 1 - drawn))
    return noise


def exponential(words: Words) -> Floats:
    """One standard exponential number a word: -log u."""
    noise: Floats = -np.log(uniform(words))
    return noise


def gumbel(words: Words) -> Floats:
    """One standard Gumbel number a word: -log(-log u)."""
    noise: Floats = -np.log(-np.log(uniform(words)))
    return noise


def check(vector: Floats, sparsity: int, scale: float, words: Words, rows: int) -> None:
    """Raise TypeError or ValueError for a vector, a sparsity, a scale or words (rows, d) that do not fit."""
    if vector.dtype != np.float64 or words.dtype != np.uint64:
        raise TypeError(f"expected a float64 vector and uint64 words, got {vector.dtype} and {words.dtype}")
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError(f"expected a vector of finite numbers, got shape {vector.shape}")
    if not 1 <= sparsity <= len(vector):
        raise ValueError(f"expected 1 <= sparsity <= {len(vector)}, got {sparsity}")
    if not (math.isfinite(scale) and scale >= 0):
        raise ValueError(f"expected scale >= 0 and finite, got {scale}")
    if words.shape != (rows, len(vector)):
        raise ValueError(f"expected words of shape {(rows, len(vector))}, got {words.shape}")
