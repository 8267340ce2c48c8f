"""The three things that cross the border: Task, Report, Refusal."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust

Array = NDArray[np.uint8] | NDArray[np.int32] | NDArray[np.uint64] | NDArray[np.float64]


class Kind(IntEnum):
    """What a payload holds. The numbers are those of the wire schema, here and below."""

    SYMBOLS = 1
    EXACT_SUMS = 2
    ROWS = 3
    RESIDUES = 4


class Coins(IntEnum):
    """Where a report's coins came from."""

    OS = 1
    ADDRESSED = 2

    @property
    def label(self) -> str:
        """The name in lower case, as results write it."""
        return self.name.lower()


class Ties(IntEnum):
    """What a labeler does with a tie; NONE where the task's labels have no ties.

    COIN: a fair coin names the winner; HALF: half a win each; DROP: left out, where ties are public; RANDOMIZED: a
    third symbol beside the two winners, all three through randomised response.
    """

    NONE = 0
    COIN = 1
    HALF = 2
    DROP = 3
    RANDOMIZED = 4


class Code(IntEnum):
    """Why a client refuses. A code depends on task, policy and ledger only, never on a label."""

    TRUST_NOT_ALLOWED = 1
    MECHANISM_NOT_ALLOWED = 2
    EPSILON_ABOVE_CAP = 3
    BUDGET_EXHAUSTED = 4
    LEDGER_UNAVAILABLE = 5
    TASK_INVALID = 6
    PROBLEM_UNKNOWN = 7
    UNIT_NOT_ALLOWED = 8
    ATTEMPT_NOT_ALLOWED = 9
    INTERNAL = 10
    NOT_SIGNED = 11
    GROUP_TOO_SMALL = 12
    SESSION_REFUSED = 13
    TOO_FEW_MEMBERS = 14
    SHUFFLER_UNAVAILABLE = 15


@dataclass(frozen=True)
class Mechanism:
    """A mechanism by name, with its parameters as exact decimals, sorted by name."""

    name: str
    parameters: tuple[tuple[str, Decimal], ...] = ()

    @classmethod
    def of(cls, name: str, **parameters: Decimal) -> "Mechanism":
        """Build with parameters in their canonical order."""
        return cls(name, tuple(sorted(parameters.items())))

    def get(self, name: str) -> Decimal | None:
        """The value of a parameter, or None."""
        return dict(self.parameters).get(name)


KEPT = range(1 << 12, 1 << 20)  # numbers that are worth keeping, and take no more than 8 MB


def _progression(start: int, step: int, count: int) -> NDArray[np.int64]:
    return np.arange(start, start + step * count, step, dtype=np.int64)


@lru_cache(maxsize=2)  # the rows of a round are mostly those of the round before
def _kept(start: int, step: int, count: int) -> NDArray[np.int64]:
    found = _progression(start, step, count)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class Runs:
    """A set of numbers in increasing order, as arithmetic progressions (start, step, count).

    >>> Runs.of([3, 4, 5, 9])
    Runs(runs=((3, 1, 3), (9, 1, 1)))
    >>> Runs.of(range(0, 10, 2)).runs
    ((0, 2, 5),)
    """

    runs: tuple[tuple[int, int, int], ...]

    def __post_init__(self) -> None:
        last = -1
        for start, step, count in self.runs:
            if start <= last or step < 1 or count < 1 or start + step * (count - 1) >= 1 << 53:
                raise ValueError(f"expected increasing runs (start, step >= 1, count >= 1), got {self.runs[:3]}")
            last = start + step * (count - 1)

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "Runs":
        """The shortest greedy split of increasing numbers into runs."""
        if isinstance(numbers, range):
            return cls(((numbers.start, numbers.step, len(numbers)),) if numbers else ())
        values = np.fromiter(numbers, dtype=np.int64)
        runs: list[tuple[int, int, int]] = []
        at = 0
        gaps = np.diff(values)
        ends = np.append(np.flatnonzero(np.diff(gaps)) + 1, len(values) - 1) if len(values) > 1 else [0]
        for end in ends:  # gaps are constant between two ends
            if at < end:
                runs.append((int(values[at]), int(gaps[at]), int(end) - at + 1))
                at = int(end) + 1
        runs.extend((int(value), 1, 1) for value in values[at:])
        return cls(tuple(runs))

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.runs[0][2] if len(self.runs) == 1 else sum(count for _, _, count in self.runs)

    def numbers(self) -> NDArray[np.int64]:
        """All numbers, in order; not to be written to."""
        parts = [(_kept if run[2] in KEPT else _progression)(*run) for run in self.runs]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def have(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these numbers are in the set, which is not written out: a few bytes may stand for billions.

        >>> Runs(((0, 2, 1 << 50),)).have(np.array([4, 5])).tolist()
        [True, False]
        """
        if not self.runs:
            return np.zeros(len(numbers), dtype=np.bool_)
        starts, steps, counts = np.array(self.runs, dtype=np.int64).T
        place = np.maximum(np.searchsorted(starts, numbers, side="right") - 1, 0)
        away, step = numbers - starts[place], steps[place]
        found: NDArray[np.bool_] = (away >= 0) & (away % step == 0) & (away // step < counts[place])
        return found

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return iter(self.runs)


@dataclass(frozen=True, eq=False)
class Task:
    """What the server asks: one cell of a study, for a block of repetitions. No seed, no path, no time.

    `rows` None asks for all that the client has. `menu` offers mechanisms; the node's policy picks one before it looks
    at any label. `epsilon` None makes no claim; `delta` None is a pure claim. `cap`, at the unit LABELER, is how many
    labels of one labeler count; `groups` (n,) numbers the labelers of all rows, where a sum is protected for them.
    `map` (p, p) is applied to reduced rows before they are weighted, where a sum's noise is shaped.
    Of records: `theta` (repetitions, d) is where gradients are taken, None at 0; `coordinates` of them, None for all;
    what is bounded is a gradient less the `centre` (repetitions, d), None for 0.
    """

    study: bytes
    trust: Trust
    unit: Unit
    problem: Problem
    menu: tuple[Mechanism, ...]
    n: int
    epsilon: Decimal | None
    delta: Decimal | None
    first_repetition: int
    repetitions: int
    round: int = 0
    attempt: int = 0
    rows: Runs | None = None
    theta: NDArray[np.float64] | None = field(default=None, repr=False)
    exponent: int | None = None
    ties: Ties = Ties.NONE
    cap: int = 0
    cohort: bytes = b""
    modulus: int = 0
    groups: NDArray[np.int32] | None = field(default=None, repr=False)
    map: NDArray[np.float64] | None = field(default=None, repr=False)
    coordinates: Runs | None = None
    centre: NDArray[np.float64] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Payload:
    """Values of a report: first axis repetitions, second axis rows or groups.

    SYMBOLS: uint8 (repetitions, rows), `outcomes` symbols; two travel as bits, a 2 is a tie. EXACT_SUMS: float64
    (repetitions, groups, p) on the task's grid, `counts` uint64 (groups,) rows in each. ROWS: float64 (repetitions,
    rows, p). RESIDUES: uint64 (repetitions, p), below 2^`bits`.
    """

    kind: Kind
    values: Array = field(repr=False)
    counts: NDArray[np.uint64] | None = field(default=None, repr=False)
    outcomes: int = 0
    bits: int = 0


@dataclass(frozen=True, eq=False)
class Report:
    """What a client answers: rows of one channel, already randomised where the task's trust model says so."""

    task: bytes
    rows: Runs | None
    payload: Payload
    mechanism: Mechanism
    table: bytes
    coins: Coins
    numerics: bytes
    groups: Runs | None = None


@dataclass(frozen=True)
class Refusal:
    """A client's no: one code, no text."""

    task: bytes
    code: Code
