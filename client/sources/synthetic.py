"""Labels drawn from a known truth. The only file outside `studies/` that sees theta*."""

import json
import math
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from client.labels import Labels
from client.sources import Facts, ProblemUnknown
from client.sources.drawing import top_choices
from protocol.choice_features import row_sizes
from protocol.coins import Address, Stream, words
from protocol.features import coordinates
from protocol.messages import Runs, Task
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Study

Part = tuple[int, int]  # client, clients
MOST_HELD = 1 << 23  # labels kept for the next task about the same rows, one byte each


class Synthetic:
    """Labels y ~ Bernoulli(sigma(theta* . x)) of client `client` out of `clients`: its part of 0, ..., n - 1.

    Parts are those of `numpy.array_split`. A label's coin is word `row` of stream LABELS at (seed, n, repetition):
    y = 1 iff word // 2 < floor(sigma 2^63), so it depends on the row alone; of more choices see
    `client.sources.drawing.top_choices`. Every row is a labeler of its own.

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
    ) -> None:
        if theta.shape != (problem.dimension,) or not np.isfinite(theta).all():
            raise ValueError(f"expected {problem.dimension} finite coordinates of theta, got shape {theta.shape}")
        if problem.sum_zero and abs(math.fsum(theta)) > 1e-12 * max(1.0, math.fsum(np.abs(theta))):
            raise ValueError(f"expected theta to sum to 0 where sum_zero holds, got {math.fsum(theta)}")
        if not 0 <= client < clients:
            raise ValueError(f"expected 0 <= client < clients, got {client} of {clients}")
        self._problem, self._features, self._seed = problem, features, seed
        self._u = coordinates(problem, theta)
        self._client, self._clients = client, clients
        self._held: OrderedDict[tuple[int, int], NDArray[np.uint8]] = OrderedDict()

    def check(self, task: Task) -> None:
        """The problem must be the one that this truth belongs to, and must have n rows."""
        design = task.problem.design
        if task.problem.digest != self._problem.digest or (design is not None and task.n > len(design)):
            raise ProblemUnknown("expected the problem that the truth belongs to")

    def rows(self, task: Task) -> Runs:
        """This client's contiguous part."""
        start, stop = self._part(task.n)
        return Runs.of(range(start, stop))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Nobody's labels."""
        return None

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        """Labels of rows of this client's part, the same at every call."""
        start, stop = self._part(task.n)
        held = self._draw(task.n, repetition, start, stop)
        return Labels(held if len(rows) == stop - start else held[rows - start])

    def _part(self, n: int) -> tuple[int, int]:
        size, longer = divmod(n, self._clients)
        start = self._client * size + min(self._client, longer)
        return start, start + size + (self._client < longer)

    def _draw(self, n: int, repetition: int, start: int, stop: int) -> NDArray[np.uint8]:
        key = (n, repetition)
        if key not in self._held:
            x = self._features.reduced(self._problem, n, repetition, start, stop)
            z = np.zeros(x.shape[:-1])
            for j, coordinate in enumerate(self._u):  # a plain loop: a row's bits do not depend on its neighbours
                z += coordinate * x[..., j]
            coins = words(Address(self._seed, Stream.LABELS, n, repetition), start, stop - start)
            if self._problem.kind == "choice":
                self._held[key] = top_choices(z, row_sizes(self._problem, start, stop), coins)
            else:
                threshold = np.floor(expit(z) * 2.0**63).astype(np.uint64)
                self._held[key] = (coins >> np.uint64(1) < threshold).astype(np.uint8)
            while len(self._held) > 1 and sum(map(len, self._held.values())) > MOST_HELD:
                self._held.popitem(last=False)
        return self._held[key]


def read_truth(text: str) -> NDArray[np.float64]:
    """theta* as a run's configuration carries it: a JSON list of finite numbers.

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
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise StudyError("[run config] truth: expected numbers only")
    try:
        theta = np.array([float(value) for value in values])
    except OverflowError:
        raise StudyError("[run config] truth: expected finite numbers") from None
    if not np.isfinite(theta).all():
        raise StudyError("[run config] truth: expected finite numbers")
    return theta


def write_truth(theta: NDArray[np.float64]) -> str:
    """The inverse of `read_truth`, bit for bit.

    >>> write_truth(np.array([0.1, -2.0]))
    '[0.1, -2.0]'
    """
    return json.dumps([float(value) for value in theta])


def synthetic(
    config: Mapping[str, str | int | float | bool], study: Study, seed: int, features: FeatureStore, part: Part
) -> Synthetic:
    """The labels of one client of a run, whose truth stands in the run's configuration. Raises StudyError."""
    try:
        return Synthetic(study.problem, read_truth(str(config.get("truth", ""))), seed, features, *part)
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"[run config] truth: {error}") from None
