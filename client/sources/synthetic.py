"""Labels drawn from a known truth. The only file outside `studies/` that sees theta*."""

import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.sources import Facts, ProblemUnknown
from client.sources.drawing import top_choices
from client.sources.synthetic_records import SyntheticRecords
from protocol.choice_features import row_sizes
from protocol.coins import Address, Stream, words
from protocol.features import coordinates
from protocol.links import LINKS
from protocol.messages import Runs, Task
from protocol.population import Population, levels_of
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Study

Part = tuple[int, int]  # client, clients
MOST_HELD = 1 << 23  # labels kept for the next task about the same rows, one byte each
WINDOW = 1 << 12  # rows that are drawn at once for clients with fewer
WINDOW_VALUES = 1 << 15  # features of a window


class Synthetic:
    """Labels y ~ Bernoulli(F(theta* . x)) of client `client` out of `clients`: its part of 0, ..., n - 1.

    F is that of the problem's model, sigma for "btl".
    Parts are those of `numpy.array_split`. A label's coin is word `row` of stream LABELS at (seed, n, repetition):
    y = 1 iff word // 2 < floor(F 2^63), so it depends on the row alone; of more choices see
    `client.sources.drawing.top_choices`. Every row is a labeler of its own. In a `population` it asks for the level of
    `protocol.population:levels_of`, and where theta has the shape (1 + levels, dimension) it has the opinion
    theta[1 + level]; theta[0], their mean, is nobody's.

    Raises ValueError where theta does not fit the problem. Source: Chowdhury, Zhou, Natarajan 2024, equation (1).
    """

    synthetic = True
    public = False

    def __init__(
        self,
        problem: Problem,
        theta: NDArray[np.float64],
        seed: int,
        features: FeatureStore,
        client: int = 0,
        clients: int = 1,
        population: Population | None = None,
    ) -> None:
        opinions = np.atleast_2d(theta)
        if opinions.shape[0] not in (1, 1 + len(population.levels) if population else 1):
            raise ValueError(f"expected one theta, or one more than there are levels, got shape {theta.shape}")
        for each in opinions:
            _check_theta(problem, each)
        self._problem, self._features, self._seed = problem, features, seed
        self._opinions = [coordinates(problem, each) for each in opinions]
        self._population = population
        self._client, self._clients, self._many = *_checked(client, clients), 1
        self._held = _Held()

    def part(self, client: int, clients: int, many: int = 1) -> "Synthetic":
        """Another client's part of the same labels, or the parts of `many` from that one on.

        What is drawn for one of them serves all. Raises ValueError.
        """
        _checked(client + many - 1, clients)
        other = object.__new__(Synthetic)
        other.__dict__.update(self.__dict__)
        other._client, other._clients, other._many = *_checked(client, clients), many
        return other

    def check(self, task: Task) -> None:
        """The problem must be the one that this truth belongs to, and must have n rows."""
        design = task.problem.design
        if task.problem.digest != self._problem.digest or (design is not None and task.n > len(design)):
            raise ProblemUnknown("expected the problem that the truth belongs to")

    def rows(self, task: Task) -> Runs:
        """This client's contiguous part."""
        start, stop = self._part(task.n)
        return Runs(((start, 1, stop - start),) if start < stop else ())

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Nobody's labels."""
        return None

    def levels(self, task: Task, rows: NDArray[np.int64]) -> tuple[Sequence[Decimal], NDArray[np.int64]] | None:
        """What the rows ask for in a population; None where there is none."""
        if self._population is None:
            return None
        start, stop = self._part(task.n)
        return self._population.levels, self._asked(task.n, start, stop)[rows - start].astype(np.int64)

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        """Labels of rows of this client's part, the same at every call."""
        start, stop = self._part(task.n)
        held = self._drawn(task.n, repetition, start, stop)
        return Labels(held if len(rows) == stop - start else held[rows - start])

    def _asked(self, n: int, start: int, stop: int) -> NDArray[np.uint8]:
        assert self._population is not None
        return levels_of(self._population, self._seed, n, start, stop)

    def _drawn(self, n: int, repetition: int, start: int, stop: int) -> NDArray[np.uint8]:
        """Labels of rows start, ..., stop - 1; few are cut out of a window, which other clients' are in as well."""
        size = max(1, min(WINDOW, WINDOW_VALUES // self._problem.dimension))
        first = start - start % size
        if stop > first + size:
            return self._draw(n, repetition, start, stop)
        return self._draw(n, repetition, first, min(n, first + size))[start - first : stop - first]

    def _part(self, n: int) -> tuple[int, int]:
        size, longer = divmod(n, self._clients)
        after = self._client + self._many
        return self._client * size + min(self._client, longer), after * size + min(after, longer)

    def _draw(self, n: int, repetition: int, start: int, stop: int) -> NDArray[np.uint8]:
        known = self._held.get((n, repetition, start, stop))
        if known is not None:
            return known
        x = self._features.reduced(self._problem, n, repetition, start, stop)
        z = _scores(x, self._opinions[0])
        for level, opinion in enumerate(self._opinions[1:]):
            own = self._asked(n, start, stop) == level
            z[own] = _scores(x[own], opinion)
        coins = words(Address(self._seed, Stream.LABELS, n, repetition), start, stop - start)
        if self._problem.kind == "choice":
            drawn = top_choices(z, row_sizes(self._problem, start, stop), coins)
        else:
            threshold = np.floor(LINKS[self._problem.model].cdf(z) * 2.0**63).astype(np.uint64)
            drawn = (coins >> np.uint64(1) < threshold).astype(np.uint8)
        self._held.keep((n, repetition, start, stop), drawn)
        return drawn


class _Held(OrderedDict[tuple[int, int, int, int], NDArray[np.uint8]]):
    """Labels drawn, by (n, repetition, start, stop), those of all parts; the first ones go where there are too many."""

    count = 0

    def keep(self, key: tuple[int, int, int, int], labels: NDArray[np.uint8]) -> None:
        self[key] = labels
        self.count += len(labels)
        while len(self) > 1 and self.count > MOST_HELD:
            self.count -= len(self.popitem(last=False)[1])


def _checked(client: int, clients: int) -> Part:
    if not 0 <= client < clients:
        raise ValueError(f"expected 0 <= client < clients, got {client} of {clients}")
    return client, clients


def _check_theta(problem: Problem, theta: NDArray[np.float64]) -> None:
    if theta.shape != (problem.dimension,) or not np.isfinite(theta).all():
        raise ValueError(f"expected {problem.dimension} finite coordinates of theta, got shape {theta.shape}")
    if problem.sum_zero and abs(math.fsum(theta)) > 1e-12 * max(1.0, math.fsum(np.abs(theta))):
        raise ValueError(f"expected theta to sum to 0 where sum_zero holds, got {math.fsum(theta)}")


def _scores(x: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float64]:
    """u . x over the last axis, in a plain loop: a row's bits do not depend on its neighbours."""
    z = np.zeros(x.shape[:-1])
    for j, coordinate in enumerate(u):
        z += coordinate * x[..., j]
    return z


def read_truth(text: str) -> NDArray[np.float64]:
    """theta* as a run's configuration carries it: a JSON list of finite numbers, or of such lists, of one length.

    Raises StudyError, which shows nothing of the text.

    >>> read_truth("[1.0, -1]").tolist()
    [1.0, -1.0]
    """
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list) or not values:
        raise StudyError("[run config] truth: expected a JSON list of numbers, got something else")
    rows = values if all(isinstance(value, list) for value in values) else [values]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for row in rows for value in row):
        raise StudyError("[run config] truth: expected numbers only")
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise StudyError("[run config] truth: expected lists of one length")
    try:
        theta = np.array([[float(value) for value in row] for row in rows])
    except OverflowError:
        raise StudyError("[run config] truth: expected finite numbers") from None
    if not np.isfinite(theta).all():
        raise StudyError("[run config] truth: expected finite numbers")
    return theta[0] if rows[0] is values else theta


def write_truth(theta: NDArray[np.float64]) -> str:
    """The inverse of `read_truth`, bit for bit.

    >>> write_truth(np.array([0.1, -2.0]))
    '[0.1, -2.0]'
    """
    return json.dumps(theta.tolist())


def synthetic(
    config: Mapping[str, str | int | float | bool], study: Study, seed: int, features: FeatureStore, part: Part
) -> Synthetic | SyntheticRecords:
    """What one client of a run holds, whose truth stands in the run's configuration. Raises StudyError."""
    try:
        return drawn(study, read_truth(str(config.get("truth", ""))), seed, features, part)
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"[run config] truth: {error}") from None


def drawn(
    study: Study, theta: NDArray[np.float64], seed: int, features: FeatureStore, part: Part
) -> Synthetic | SyntheticRecords:
    """The labels, or the records, of one client of a study with this truth. Raises ValueError where it does not fit."""
    if study.records is not None:
        return SyntheticRecords(study.problem, study.records, theta, seed, *part)
    return Synthetic(study.problem, theta, seed, features, *part, study.population)
