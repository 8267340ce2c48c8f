"""The terms of a task about records, derived alike by client and server: how a record's gradient is bounded and summed.

A record's contribution is the gradient of its loss at the task's theta (0 where there is none), the mean over its
records where a row is a holder, less the task's centre. It is bounded first, whatever happens to it afterwards.
"""

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.codec import encode_task, identity
from protocol.decimals import down
from protocol.grid import exponent
from protocol.messages import Mechanism, Task
from protocol.numeric import numeric_channel
from protocol.numeric.channel import NumericChannel
from protocol.privacy import Unit
from protocol.threshold_grid import NAMES, ThresholdGrid
from protocol.trust import Trust

Floats = NDArray[np.float64]

ADDED = {Unit.RECORD: Unit.ADDED_RECORD, Unit.HOLDER: Unit.ADDED_HOLDER}
UNITS = (*ADDED, *ADDED.values())
LINF, L2 = "linf", "l2"
CLIP, TRUNCATE = "clip", "truncate"
SUMS, ROWS = "sums", "rows"
MOST_ROUNDS = 1 << 16
LARGEST = 2.0**480  # of a number said in clear: sums of squares of such stay finite
FLAGS = ("l2", "rows", "truncate")  # parameters that are 1 or absent
SCALES = ("counted", "threshold")  # parameters in units of a gradient


@dataclass(frozen=True)
class Bounded:
    """How contributions are bounded: to `threshold` in each coordinate (`norm` "linf") or in length ("l2").

    `shape` "clip" moves a value that is beyond to the threshold, "truncate" sets it to 0. `kind` says what leaves:
    exact "sums", or "rows" of values. `rounds`: releases that share the task's claim. Where `counted` is not 0, a sum
    has one coordinate more, to which a contribution that is beyond adds `counted`, at most the threshold. `rotate`: it
    is turned before it is rounded, as `protocol.noise.rotation` says; only a bound of lengths turns with it.
    """

    threshold: float
    norm: str = LINF
    shape: str = CLIP
    kind: str = SUMS
    rounds: int = 1
    counted: float = 0.0
    rotate: bool = False

    @classmethod
    def of(cls, mechanism: Mechanism, norm: str | None = None) -> "Bounded":
        """Read a mechanism's parameters; a local mechanism has a `norm` of its own.

        Raises ValueError for a parameter that is missing or out of range.
        """
        given = dict(mechanism.parameters)
        threshold, rounds = given.get("threshold"), given.get("rounds")
        if threshold is None or not threshold > 0:
            raise ValueError(f"expected a threshold > 0 of {mechanism.name}, got {threshold}")
        if rounds is not None and (rounds != int(rounds) or not 2 <= rounds <= MOST_ROUNDS):  # one is spelled as none
            raise ValueError(f"expected a whole number of rounds in 2..{MOST_ROUNDS}, or none, got {rounds}")
        for flag in (*FLAGS, "rotate"):
            if given.get(flag, Decimal(1)) != 1:
                raise ValueError(f"expected {flag} = 1 or none, got {given[flag]}")
        counted = given.get("counted", Decimal(0))
        if counted and not ("rows" not in given and 0 < counted <= threshold):
            raise ValueError(f"expected 0 < counted <= threshold, of sums, got {counted}")
        if "rotate" in given and "l2" not in given:
            raise ValueError("expected rotate beside l2: bounds of coordinates do not turn")
        return cls(
            threshold=down(threshold),
            norm=norm or (L2 if "l2" in given else LINF),
            shape=TRUNCATE if "truncate" in given else CLIP,
            kind=ROWS if "rows" in given else SUMS,
            rounds=1 if rounds is None else int(rounds),
            counted=down(counted),
            rotate="rotate" in given,
        )


def bounded(values: Floats, how: Bounded) -> Floats:
    """Contributions within their bound, shape (rows, d); NaN counts as 0, infinity as beyond the bound.

    Clip: max(-B, min(B, g)) in each coordinate, or g min(1, B / |g|). Truncate: g where it is within B, else 0; a value
    on the bound stays. No result is beyond the bound, whatever a machine rounds.

    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 1 (truncate); clip: derived, see docs/HEAVY_TAILS.md.

    >>> bounded(np.array([[3.0, -1.0], [np.nan, np.inf]]), Bounded(2.0)).tolist()
    [[2.0, -1.0], [0.0, 2.0]]
    >>> bounded(np.array([[3.0, -1.0]]), Bounded(2.0, shape=TRUNCATE)).tolist()
    [[0.0, -1.0]]
    """
    bound = how.threshold
    known = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    if how.norm == LINF:
        if how.shape == CLIP:
            return np.clip(known, -bound, bound)
        return np.where(np.abs(known) <= bound, known, 0.0)
    return _shortened(known, bound, how.shape)


def sum_exponent(task: Task, how: Bounded) -> int:
    """The least exponent of a grid on which every sum of the task's n bounded contributions is exact."""
    return exponent(task.n, how.threshold)


def squared_sensitivity(how: Bounded, power: int, dimension: int, unit: Unit = Unit.RECORD) -> int:
    """How far one row moves a sum of bounded contributions, squared, in units of 2^power, rounded up.

    Delta^2 = d (2B)^2 where each coordinate is bounded, (2B)^2 where the length is, and w^2 more where those beyond are
    `counted` by w; contributions are truncated towards zero to the grid, so their bound is too. B in place of 2B where
    neighbours add or remove a row.

    Guarantee: for the unit whose contribution a row is, a record or a holder; neighbours: the unit's.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 3; derived, see docs/HEAVY_TAILS.md.

    >>> squared_sensitivity(Bounded(2.0), -1, 3), squared_sensitivity(Bounded(2.0, norm=L2), -1, 3)
    (192, 64)
    >>> squared_sensitivity(Bounded(2.0), -1, 3, Unit.ADDED_RECORD)
    48
    """
    units, times = Fraction(how.threshold) / Fraction(2) ** power, moves(unit)
    count = math.floor(Fraction(how.counted) / Fraction(2) ** power) ** 2
    if how.norm == L2:
        return math.floor((times * units) ** 2) + count
    return dimension * (times * math.floor(units)) ** 2 + count


def check_added(task: Task, how: Bounded) -> None:
    """Raise ValueError for a claim whose neighbours add or remove a row, where a curator's sum is not all that leaves.

    The divisor is public: the claim is for the noisy sum.
    """
    plain = task.trust is Trust.CENTRAL and task.menu[0].name in ("gaussian", "gaussian-classical")
    if task.unit in ADDED.values() and not (plain and how.kind == SUMS and not how.counted):
        raise ValueError("expected rows that are replaced, but for plain sums with a curator's Gaussian noise")


def moves(unit: Unit) -> int:
    """By how many bounds one row moves a sum: from one end to the other where it is replaced, else by one of them."""
    return 1 if unit in ADDED.values() else 2


def width(task: Task) -> int:
    """How many numbers a contribution has: the problem's coordinates, or those that the task names.

    Of a task about a grid of thresholds: one for each in a sum, and one in all where each row answers for itself.
    """
    grid = ThresholdGrid.of(task.menu[0])
    if grid is not None:
        return grid.width if task.trust is Trust.CENTRAL else 1
    if task.coordinates is not None:
        return task.coordinates.count
    return task.problem.dimension + (task.trust is Trust.CENTRAL and task.menu[0].get("counted") is not None)


@lru_cache(maxsize=256)
def channel_of(mechanism: Mechanism) -> NumericChannel:
    """The channel of a local mechanism, built from all of its parameters but what values are, and how bounded.

    Raises ValueError.
    """
    given = {name: value for name, value in mechanism.parameters if name not in (*FLAGS, *NAMES)}
    return numeric_channel(mechanism.name, given)


def run_of(task: Task) -> bytes | None:
    """What names the run that a task is a round of, where all its rounds share one claim; None where it stands alone.

    The rounds of a run differ in `round`, `theta` and `centre` only, and where contributions beyond their bound are
    counted in that bound, which the noise follows: everything else, the rows included, is hashed.
    """
    mechanism = task.menu[0]
    if task.trust is Trust.CLEAR or task.problem.kind != "records" or mechanism.get("rounds") is None:
        return None
    if mechanism.get("counted") is not None:
        same = {name: value for name, value in mechanism.parameters if name not in SCALES}
        task = replace(task, menu=(Mechanism.of(mechanism.name, **same),), exponent=None)
    return identity(encode_task(replace(task, round=0, theta=None, centre=None)))


def _shortened(known: Floats, bound: float, shape: str) -> Floats:
    """Rows bounded in length; computed in units of the bound, so that squares neither vanish nor overflow."""
    power, slack = math.frexp(bound)[1], (known.shape[1] + 4) * 2.0**-52  # more than all roundings of a length
    with np.errstate(over="ignore", under="ignore"):
        finite = np.clip(np.ldexp(known, -power), -1e150, 1e150)
        length = np.zeros(len(finite))
        for column in finite.T:
            length += column * column
        length, unit = np.sqrt(length), math.ldexp(bound, -power)
        within = (length <= unit * (1 - max(2.0**-45, slack)))[:, None]
        if shape == TRUNCATE:
            return np.where(within, known, 0.0)
        factor = unit * (1 - max(2.0**-40, slack)) / np.maximum(length, 1e-300)
        return np.where(within, known, np.ldexp(finite * factor[:, None], power))
