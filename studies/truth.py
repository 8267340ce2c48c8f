"""The truth of a synthetic study, and the one option that may know it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from protocol.coins import Floats
from protocol.decimals import canonical
from protocol.links import LINKS
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.strict import StudyError
from protocol.study import Study
from studies.choice_score import choice_curvature
from studies.moments import ORACLE_ROWS, dot, fresh, gram, reduce

SUM_TOLERANCE = 1e-12


def read_theta(value: Any, problem: Problem) -> Floats:
    """The truth of a [problem] table: `dimension` finite numbers in the ball, summing to 0 (to 1e-12) where asked.

    A table names coordinates from 0 on, such as { 3 = 0.5, 17 = -0.5 }: the others are 0. Raises StudyError.
    """
    place = "[problem] theta"
    if isinstance(value, Mapping):
        value = _filled(value, problem.dimension, place)
    if not isinstance(value, list) or len(value) != problem.dimension:
        raise StudyError(f"{place}: expected {problem.dimension} numbers (the dimension), got {_shown(value)}")
    if any(isinstance(item, bool) or not isinstance(item, int | float | Decimal) for item in value):
        raise StudyError(f"{place}: expected numbers, got {_shown(value)}")
    theta = np.array([float(item) for item in value])
    if not np.isfinite(theta).all():
        raise StudyError(f"{place}: expected finite numbers, got {_shown(value)}")
    if problem.sum_zero and abs(theta.sum()) > SUM_TOLERANCE:
        raise StudyError(f"{place}: expected a sum of 0 because sum_zero = true, got {theta.sum():g}")
    length = float(np.sqrt((theta * theta).sum()))
    if problem.bound is not None and length > float(problem.bound):
        raise StudyError(f"{place}: expected a norm of at most bound = {problem.bound}, got {length:g}")
    return theta


def _filled(table: Mapping[str, Any], dimension: int, place: str) -> list[Any]:
    """The numbers of a table by coordinate, zeros elsewhere."""
    full: list[Any] = [0] * dimension
    for name, number in table.items():
        if name != str(int(name) if name.isdecimal() else None) or int(name) >= dimension:
            raise StudyError(f"{place}: expected coordinates from 0 to {dimension - 1}, got {name!r}")
        full[int(name)] = number
    return full


def read_opinions(value: Any, theta: Floats, study: Study) -> Floats | None:
    """The truth of a [population] table: one theta a level, shape (levels, dimension); None where all share one.

    What is estimated and scored is the opinion of everybody alike, so [problem] theta has to be their mean by share
    (to 1e-9). Raises StudyError.
    """
    place, population = "[population] theta", study.population
    if value is None or population is None:
        return None
    if not isinstance(value, list) or len(value) != len(population.levels):
        raise StudyError(f"{place}: expected one list of numbers for each of {len(population.levels)} levels")
    opinions = np.array([read_theta(each, study.problem) for each in value])
    shares = np.array([float(share) for share in population.shares])
    mean = (shares[:, None] * opinions).sum(axis=0)
    if np.abs(mean - theta).max() > 1e-9:
        said = f"{mean.tolist()}, got {theta.tolist()}"
        raise StudyError(f"[problem] theta: expected the mean of {place} by share, {said}")
    return opinions


def record_mean(problem: Problem, law: RecordLaw) -> Floats:
    """What the mean of a study's records is: that of their law, in every coordinate. Raises StudyError without one."""
    try:
        return np.full(problem.dimension, law.features.mean)
    except ValueError as error:
        raise StudyError(f"[records] features: {error}") from None


def oracle_step(study: Study, theta: Floats) -> Decimal:
    """lambda_min(H(theta)), H = E[sigma'(theta . x) x x^T] in reduced coordinates, to six digits.

    Of other models of pairs H is what clear labels say, E[f^2 / (F (1 - F)) x x^T]; of top choices the mean covariance
    of features under the probabilities of choices. Over a fixed draw of 2^17 rows (2^15 sets of choices; METRICS,
    repetition 1). It knows the truth: for comparisons only.
    Raises StudyError where H is singular.
    Source: derived; it replaces gamma kappa in Theorem 4.5 of Chowdhury, Zhou, Natarajan 2024.
    """
    if study.problem.kind == "choice":
        curvature = choice_curvature(study.problem, theta, study.seed)
    else:
        x = fresh(study.problem, study.seed, ORACLE_ROWS, repetition=1)
        curvature = gram(reduce(study.problem, x), LINKS[study.problem.model].information(dot(x, theta)))
    smallest = float(np.linalg.eigvalsh(curvature)[0])
    if not smallest > 1e-9:
        raise StudyError('step = "oracle": expected features that span the space, got a singular matrix H')
    return Decimal(f"{smallest:.6g}")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(canonical(i) if isinstance(i, Decimal) else repr(i) for i in value) + "]"
    return "nothing" if value is None else repr(value)
