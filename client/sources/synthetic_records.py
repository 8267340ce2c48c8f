"""Records drawn from a known law, of one client's part of the rows."""

from collections import OrderedDict
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from client.records import Records
from client.sources import Facts, ProblemUnknown
from protocol.coins import Address, Stream, uniform, words
from protocol.messages import Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_law import RecordLaw

Floats = NDArray[np.float64]
Drawn = tuple[Floats, Floats | None]
MOST_HELD = 1 << 24  # numbers kept for the next round about the same rows


class SyntheticRecords:
    """Records (x, y) of client `client` out of `clients`: its part of 0, ..., n - 1, as `numpy.array_split` cuts.

    A row has `law.per_holder` records, each of `law.words` words: its coins are the words of stream RECORDS at (seed,
    n, repetition) from row * per_holder * words on, coordinates of x first. So they depend on the row alone. y is
    coefficients . x + noise ("linear"), or 1 where a uniform number is below sigma(coefficients . x) ("logistic").

    Raises ValueError where the coefficients do not fit the problem.
    """

    synthetic = True
    public = False

    def __init__(
        self, problem: Problem, law: RecordLaw, coefficients: Floats, seed: int, client: int = 0, clients: int = 1
    ) -> None:
        if coefficients.shape != (problem.dimension,) or not np.isfinite(coefficients).all():
            raise ValueError(f"expected {problem.dimension} finite coefficients, got shape {coefficients.shape}")
        if not 0 <= client < clients:
            raise ValueError(f"expected 0 <= client < clients, got {client} of {clients}")
        self._problem, self._law, self._coefficients, self._seed = problem, law, coefficients, seed
        self._client, self._clients = client, clients
        self._held: OrderedDict[tuple[int, int], Drawn] = OrderedDict()

    def part(self, client: int, clients: int) -> "SyntheticRecords":
        """Another client's part of the same records. Raises ValueError."""
        return SyntheticRecords(self._problem, self._law, self._coefficients, self._seed, client, clients)

    def check(self, task: Task) -> None:
        """The problem must be the one of this law, and a row what it has: a record, or a holder of several."""
        unit = Unit.RECORD if self._law.per_holder == 1 else Unit.HOLDER
        if task.problem.digest != self._problem.digest or task.unit.replaced is not unit:
            raise ProblemUnknown("expected the problem and the unit that the law belongs to")

    def rows(self, task: Task) -> Runs:
        """This client's contiguous part."""
        return Runs.of(range(*self._part(task.n)))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Nobody's records."""
        return None

    def levels(self, task: Task, rows: NDArray[np.int64]) -> tuple[Sequence[Decimal], NDArray[np.int64]] | None:
        """No row asks for a level of its own."""
        return None

    def records(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Records:
        """Records of rows of this client's part, the same at every call."""
        start, stop = self._part(task.n)
        x, y = self._draw(task.n, repetition, start, stop)
        if len(rows) == stop - start:
            return Records(x, y)
        first, last = int(rows[0]) - start, int(rows[-1]) - start + 1
        chosen = slice(first, last) if last - first == len(rows) else rows - start
        return Records(x[chosen], None if y is None else y[chosen])

    def _part(self, n: int) -> tuple[int, int]:
        size, longer = divmod(n, self._clients)
        start = self._client * size + min(self._client, longer)
        return start, start + size + (self._client < longer)

    def _draw(self, n: int, repetition: int, start: int, stop: int) -> Drawn:
        key = (n, repetition)
        if key not in self._held:
            each, most = self._law.words(self._problem), self._law.per_holder
            address = Address(self._seed, Stream.RECORDS, n, repetition)
            coins = words(address, start * most * each, (stop - start) * most * each).reshape(stop - start, most, each)
            self._held[key] = self._record(coins)
            while len(self._held) > 1 and sum(x.size for x, _ in self._held.values()) > MOST_HELD:
                self._held.popitem(last=False)
        return self._held[key]

    def _record(self, coins: NDArray[np.uint64]) -> Drawn:
        law, dimension = self._law, self._problem.dimension
        own = dimension * law.features.words
        x = law.features.sample(coins[..., :own].reshape(*coins.shape[:2], dimension, law.features.words))
        if self._problem.model == "mean":
            return x, None
        z = np.zeros(x.shape[:2])
        for j, coefficient in enumerate(self._coefficients):
            z += coefficient * x[..., j]
        if self._problem.model == "logistic":
            return x, (uniform(coins[..., own]) < expit(z)).astype(np.float64)
        assert law.noise is not None
        return x, z + law.noise.sample(coins[..., own:])
