"""What a curator releases, as values and as the text that its ledger keeps."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Coins
from protocol.privacy import Unit
from server.mechanisms import CENTRAL
from server.mechanisms.rounds import ROUNDS


def sorted_reports(task: bytes, accepted: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Ids of a task's accepted reports, sorted. Raises ValueError for a task without a name, or a report twice."""
    if not task:
        raise ValueError("expected a task id, got no bytes")
    if len(set(accepted)) != len(accepted):
        raise ValueError("expected every report once, got one twice: its labels would count double")
    return tuple(sorted(accepted))


@dataclass(frozen=True)
class ReleaseRequest:
    """What is public about one release before it exists.

    `task` (its id) and `repetition` name the release; `accepted` are the public ids of the reports in the sum, kept
    sorted (a hash of an exact sum would tell it to whoever guesses well); `count` is the number of labels in it, or
    what a mean is divided by: the rows that a trimmed one keeps, or the smallest group's of a median of groups. Sums
    are in units of 2^exponent, and so is the root of `sensitivity_squared`: how far a label can move the sum, or, where
    `unit` is a labeler, all of a labeler's labels, of which `cap` count (0 for other units: a label, a record, all
    records of a holder). `rounds` releases share the claim. All but `accepted` and `count` follows from the task.
    Raises ValueError for an empty task id, an unknown mechanism, a report accepted twice, a unit without its cap, or
    numbers out of range.
    """

    task: bytes
    repetition: int
    accepted: tuple[bytes, ...]
    count: int
    exponent: int
    sensitivity_squared: int
    mechanism: str
    epsilon: Decimal
    delta: Decimal
    unit: Unit
    cap: int
    rounds: int = 1

    def __post_init__(self) -> None:
        for name, lowest in (("repetition", 0), ("count", 0), ("sensitivity_squared", 1), ("rounds", 1)):
            if not getattr(self, name) >= lowest:
                raise ValueError(f"expected {name} >= {lowest}, got {getattr(self, name)}")
        records = self.unit.replaced in (Unit.RECORD, Unit.HOLDER)
        known = ROUNDS if records else CENTRAL
        if self.mechanism not in known or (self.rounds > 1 and not records):
            raise ValueError(f"expected a mechanism out of {sorted(known)}, got {self.mechanism!r}")
        if (self.cap >= 1) != (self.unit is Unit.LABELER):
            raise ValueError(f"expected a cap >= 1 exactly of a labeler, got {self.unit.label} with {self.cap}")
        object.__setattr__(self, "accepted", sorted_reports(self.task, self.accepted))

    @property
    def noise_multiplier(self) -> float:
        """stddev / sensitivity of the request's mechanism at its claim, in each of its rounds."""
        if self.mechanism in ROUNDS:
            return ROUNDS[self.mechanism](self.epsilon, self.delta, self.rounds)
        return CENTRAL[self.mechanism].noise_multiplier(self.epsilon, self.delta)


@dataclass(frozen=True)
class Release:
    """A noisy sum in units of 2^exponent, with discrete Gaussian noise of parameter `stddev` from the system's coins.

    Guarantee: (request.epsilon, request.delta) for the unit whose sensitivity was given: one label, or all labels of
    one labeler; the level holds for the discrete law that was sampled (docs/PRIVACY.md).
    """

    request: ReleaseRequest
    values: tuple[int, ...]
    stddev: int
    coins: ClassVar[Coins] = Coins.OS


@dataclass(frozen=True)
class SimulatedRelease:
    """A noisy sum in units of 2^exponent with floating-point noise from addressed coins.

    Guarantee: none, it is for simulation: who knows the seed knows the noise.
    """

    request: ReleaseRequest
    values: tuple[float, ...]
    stddev: float
    coins: ClassVar[Coins] = Coins.ADDRESSED


class Noisy(Protocol):
    """What a curator made: noisy values in units of 2^exponent of its request."""

    @property
    def request(self) -> "InUnits":
        """What was asked of the curator."""

    @property
    def values(self) -> Sequence[int] | Sequence[float]:
        """The noisy values."""


class InUnits(Protocol):
    """A request that says in which units its values are."""

    @property
    def exponent(self) -> int:
        """Of two."""


def in_real_units(made: Noisy) -> NDArray[np.float64]:
    """The values as doubles, shape (values,): values * 2^exponent, rounded to nearest (post-processing)."""
    values = np.array([float(value) for value in made.values])
    scaled: NDArray[np.float64] = np.ldexp(values, made.request.exponent)
    return scaled


def encode(release: Release) -> str:
    """A release as canonical JSON: bytes in hexadecimal, decimals as strings, integers exact."""
    return text_of(release.request, values=release.values, stddev=release.stddev)


def decode(text: str) -> Release:
    """The release that `encode` wrote; raises ValueError or LookupError for other text."""
    fields = fields_of(text, ("epsilon", "delta"))
    values, stddev = tuple(fields.pop("values")), fields.pop("stddev")
    return Release(ReleaseRequest(**fields), values, stddev)


def text_of(request: object, **made: object) -> str:
    """A request and what was made of it as canonical JSON."""
    return json.dumps({name: _plain(value) for name, value in vars(request).items()} | made, sort_keys=True)


def fields_of(text: str, decimals: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """What `text_of` wrote, those named in `decimals` as decimals, and in `optional` as decimals or None.

    Raises ValueError or LookupError for other text.
    """
    fields: dict[str, Any] = json.loads(text)
    fields["task"] = bytes.fromhex(fields["task"])
    fields["accepted"] = tuple(map(bytes.fromhex, fields["accepted"]))
    fields["unit"] = Unit[fields["unit"]]
    fields |= {name: None if fields[name] is None else Decimal(fields[name]) for name in optional}
    return fields | {name: Decimal(fields[name]) for name in decimals}


def _plain(value: object) -> object:
    match value:
        case bytes():
            return value.hex()
        case tuple():
            return [_plain(one) for one in value]
        case Decimal():
            return str(value)
        case Unit():
            return value.name
    return value
