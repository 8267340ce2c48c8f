"""What sparse algorithms share: how long their steps are and how many, batches, and iterates with few coordinates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from protocol.laws import Law
from protocol.strict import StudyError
from server.algorithms.bounds import rounded
from server.algorithms.projections import PROJECTIONS
from server.algorithms.steps import Floats, Found, Room
from server.thresholds import positive

Indices = NDArray[np.int64]
ON_BOUNDARY = 1 - 1e-9


@dataclass(frozen=True)
class Curvature:
    """Restricted strong convexity and smoothness: of a risk between vectors that differ in few coordinates."""

    strength: float
    smoothness: float


def restricted_curvature(model: str, features: Law, coordinates: int) -> Curvature:
    """Of a model's risk in directions of at most `coordinates` coordinates, from the law of independent features.

    Linear: the extreme eigenvalues of blocks of E x x^T, Var x and Var x + k (E x)^2 for k coordinates. Logistic: a
    quarter of these, which bounds its smoothness; its strength falls as scores grow, and is what it is at 0. Mean: 1.

    Raises ValueError for features without a variance. Source: Tao, Wu, Cheng, Wang 2022, Assumption 2.

    >>> restricted_curvature("linear", Law.parse("uniform(0, 1)"), 3).smoothness
    0.8333333333333334
    """
    if model == "mean":
        return Curvature(1.0, 1.0)
    variance, square = features.variance, features.mean**2
    positive(variance=variance)
    factor = 0.25 if model == "logistic" else 1.0
    least = variance if coordinates > 1 else variance + square
    return Curvature(factor * least, factor * (variance + coordinates * square))


@dataclass(frozen=True)
class Terms:
    """How many coordinates are kept, how long a step is, and how many there are."""

    sparsity: int
    step: Decimal
    rounds: int


def terms_of(room: Room) -> Terms:
    """The arm's, or 2 / (3 gamma) and (gamma / mu) log(n) / (2 log 3) steps, which leave 1/sqrt(n) of the start.

    gamma and mu are the arm's smoothness and curvature, or follow from the law of features; with a `support` of s*,
    ceil((gamma / mu)^2 s*) coordinates are kept, or all. A mean needs one step of length 1.
    Raises StudyError where neither the arm nor the law of features says.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 5 and Theorem 10; the constant 1 of s is ours.
    """
    sparsity, step, rounds = _kept(room), room.arm.get("step"), room.whole("rounds", 0)
    if room.study.problem.model == "mean":
        return Terms(sparsity, step if isinstance(step, Decimal) else Decimal(1), rounds or 1)
    if isinstance(step, Decimal) and rounds:
        return Terms(sparsity, step, rounds)
    found = _constants(room, sparsity, both=not rounds)
    usual = Decimal(repr(rounded(2 / (3 * found.smoothness))))
    count = math.ceil(found.smoothness / found.strength * math.log(max(room.n, 2)) / (2 * math.log(3)))
    return Terms(sparsity, step if isinstance(step, Decimal) else usual, rounds or count)


def _kept(room: Room) -> int:
    """How many coordinates are kept, as the arm says, or as its support and its constants do, in exact numbers."""
    support, gamma, mu = (room.arm.get(name) for name in ("support", "smoothness", "curvature"))
    if isinstance(support, Decimal) and isinstance(gamma, Decimal) and isinstance(mu, Decimal):
        return min(room.dimension, math.ceil((Fraction(gamma) / Fraction(mu)) ** 2 * Fraction(support)))
    return room.whole("sparsity", 1)


def _constants(room: Room, sparsity: int, both: bool) -> Curvature:
    """The arm's constants, the law's in 2s coordinates for what it does not say; `both`: not the smoothness alone."""
    strength, smoothness, law = room.number("curvature", 0.0), room.number("smoothness", 0.0), room.study.records
    if not smoothness or (both and not strength):
        asked = "a step and rounds, or curvature and smoothness"
        if law is None:
            raise StudyError(f"{room.arm.name}: expected {asked}: nothing is known of these features")
        try:
            found = restricted_curvature(room.study.problem.model, law.features, min(2 * sparsity, room.dimension))
        except ValueError as error:
            raise StudyError(f"{room.arm.name}: expected {asked}: {error}") from None
        strength, smoothness = strength or found.strength, smoothness or found.smoothness
    if strength > smoothness:
        raise StudyError(f"{room.arm.name}: expected curvature <= smoothness, got {strength:g} > {smoothness:g}")
    return Curvature(strength or smoothness, smoothness)


def batches(room: Room, rows: range, rounds: int) -> list[range]:
    """Disjoint runs of floor(n / T) of the rows; what is over is not used, as printed. Raises StudyError."""
    size = len(rows) // rounds
    if not size:
        raise StudyError(f"{room.arm.name}: expected at least {rounds} rows for {rounds} disjoint batches")
    return [rows[t * size : (t + 1) * size] for t in range(rounds)]


def largest(vector: Floats, sparsity: int) -> Indices:
    """The coordinates of the largest |w_j|, the lowest indices among equals, in rising order."""
    return np.sort(np.argsort(-np.abs(vector), kind="stable")[:sparsity]).astype(np.int64)


@dataclass(eq=False)
class SparsePath:
    """The iterates of a block of repetitions: zero but on supports, where they are projected as the arm asks."""

    room: Room
    at: Floats = field(init=False)

    def __post_init__(self) -> None:
        bound = self.room.study.problem.bound
        self._radius = 1.0 if bound is None else float(bound)
        self._kind = self.room.word("project", "none" if bound is None else "ball")
        self.at = self.room.start

    def move(self, chosen: Sequence[tuple[Indices, Floats]]) -> None:
        """Put each repetition where its support and the values there say."""
        self.at = self.room.start
        for index, (support, values) in enumerate(chosen):
            self.at[index, support] = PROJECTIONS[self._kind](values[None, :], self._radius)[0]

    @property
    def found(self) -> Found:
        """The last iterate."""
        length = np.sqrt((self.at * self.at).sum(axis=1))
        ball = self._kind == "ball"
        return Found(self.at, length >= self._radius * ON_BOUNDARY if ball else np.zeros(len(length), dtype=np.bool_))
