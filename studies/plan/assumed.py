"""What a plan assumes: features and a parameter, which stands for the truth."""

import argparse
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from protocol.coins import Floats
from protocol.decimals import decimal
from protocol.problem import Problem
from protocol.strict import StudyError
from studies.moments import ORACLE_ROWS, fresh
from studies.theory.sandwich import Theory

LARGEST = Decimal("1e100")
SEED = 7  # of the fixed draw of features where no study names one


@dataclass(frozen=True, eq=False)
class Assumed:
    """Predictions under an assumption, the assumption in words, and what speaks against it."""

    theory: Theory
    words: str
    doubts: tuple[str, ...] = ()


class Correlated(Theory):
    """Predictions for normal rows x ~ N(0, C): `covariance` is C, shape (dimension, dimension)."""

    def __init__(self, problem: Problem, theta: Floats, covariance: Floats) -> None:
        super().__init__(problem, theta, SEED)
        values, vectors = np.linalg.eigh(covariance)
        standard = fresh(problem, SEED, ORACLE_ROWS, repetition=1) / np.sqrt(2)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        object.__setattr__(self, "drawn", np.ascontiguousarray(standard @ root.T))

    def radius(self, n: int) -> float:
        """sqrt(tr C) in reduced coordinates."""
        return float(np.sqrt(np.trace(self.second_moments)))


def number(text: str, name: str) -> Decimal:
    """A positive number of a flag. Raises StudyError."""
    try:
        value = decimal(text, name)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if not 0 < value < LARGEST:
        raise StudyError(f"{name}: expected a number > 0, got {text!r}")
    return value


def read_problem(args: argparse.Namespace, dimension: int, law: str, design: Floats | None = None) -> Problem:
    """The problem with the flags' ball and sum of coordinates. Raises StudyError."""
    bound = None if args.bound is None else number(args.bound, "--bound")
    try:
        return Problem(dimension, law, args.sum_zero, bound, design)
    except ValueError as error:
        raise StudyError(str(error)) from None


def check(assumed: Assumed) -> Assumed:
    """The same assumption; raises StudyError where it contradicts itself, or its features do not span the space."""
    problem, theta = assumed.theory.problem, assumed.theory.theta
    if (problem.kind, problem.model) != ("pairwise", "btl"):
        raise StudyError(
            f"expected kind pairwise and model btl, got {problem.kind} and {problem.model}: no formula yet"
        )
    length = float(np.sqrt((theta * theta).sum()))
    if problem.sum_zero and abs(theta.sum()) > 1e-9 * max(1.0, length):
        raise StudyError(f"--theta: expected a sum of 0, got {theta.sum():g}")
    if problem.bound is not None and length > float(problem.bound):
        raise StudyError(f"--theta: expected a norm of at most the bound {problem.bound}, got {length:g}")
    eigenvalues = np.linalg.eigvalsh(assumed.theory.second_moments)
    if not eigenvalues[0] > 1e-12 * eigenvalues[-1]:
        raise StudyError(
            "expected features that span the space: otherwise no number of labels is enough (one-hot items: --sum-zero)"
        )
    return assumed
