"""What a curator chooses, as values and as the text that its ledger keeps: places, and noisy values of them."""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from protocol.messages import Coins
from protocol.privacy import Unit
from server.mechanisms.exact_choices import CHOICES, HISTOGRAM, LOOKS, Chooser, chooser
from server.release_record import fields_of, sorted_reports, text_of


@dataclass(frozen=True)
class ChoiceRequest:
    """What is public about one choice before it exists.

    `task`, `repetition`, `accepted` and `count` as in `server.release_record:ReleaseRequest`. There are `width` scores
    in units of 2^exponent, each of which a unit moves by at most `moved`. `sparsity`, `rounds`, `share` and `decay` are
    those of `server.mechanisms.exact_choices:chooser`. All but `accepted` and `count` follows from the task.
    Raises ValueError for a choice that the claim does not allow, and as `ReleaseRequest`.
    """

    task: bytes
    repetition: int
    accepted: tuple[bytes, ...]
    count: int
    exponent: int
    moved: int
    width: int
    mechanism: str
    epsilon: Decimal
    delta: Decimal | None
    unit: Unit
    sparsity: int = 1
    rounds: int = 1
    share: Decimal | None = None
    decay: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        for name, lowest in (("repetition", 0), ("count", 0), ("sparsity", 1), ("rounds", 1), ("width", self.sparsity)):
            if not getattr(self, name) >= lowest:
                raise ValueError(f"expected {name} >= {lowest}, got {getattr(self, name)}")
        if self.mechanism not in CHOICES:
            raise ValueError(f"expected a mechanism out of {list(CHOICES)}, got {self.mechanism!r}")
        if self.unit not in (Unit.RECORD, Unit.HOLDER):
            raise ValueError(f"expected records or holders that are replaced, got {self.unit.name}")
        object.__setattr__(self, "accepted", sorted_reports(self.task, self.accepted))
        _ = self.chooser

    @property
    def chooser(self) -> Chooser:
        """The integer noise of the request's mechanism at its claim, in each of its rounds."""
        return chooser(
            self.mechanism,
            self.epsilon,
            self.delta,
            self.moved,
            sparsity=self.sparsity,
            rounds=self.rounds,
            share=self.share,
            decay=self.decay,
        )


@dataclass(frozen=True)
class Choice:
    """`places` in the order in which they were chosen, and noisy `values` of them in units of 2^exponent, or none.

    Guarantee: (request.epsilon, request.delta), 0 for none, over the request's rounds; unit: the request's; neighbours:
    replace it. Drawn in integers from the system's coins. Raises ValueError for places or values that it cannot have.
    """

    request: ChoiceRequest
    places: tuple[int, ...]
    values: tuple[int, ...]
    coins: ClassVar[Coins] = Coins.OS

    def __post_init__(self) -> None:
        request = self.request
        wanted = request.width if request.mechanism == HISTOGRAM else request.sparsity
        if any(type(number) is not int for number in (*self.places, *self.values)):
            raise ValueError("expected places and values as integers, got others")
        known = len(self.places) == len(set(self.places)) == wanted
        if not known or not all(0 <= place < request.width for place in self.places):
            raise ValueError(f"expected {wanted} places out of {request.width}, got others")
        if len(self.values) != (wanted if request.chooser.value_scale else 0):
            raise ValueError(f"expected as many values as {request.mechanism} tells, got {len(self.values)}")


@dataclass(frozen=True)
class SimulatedChoice:
    """The same with floating-point noise from addressed coins.

    Guarantee: none, it is for simulation: who knows the seed knows the noise.
    """

    request: ChoiceRequest
    places: tuple[int, ...]
    values: tuple[float, ...]
    coins: ClassVar[Coins] = Coins.ADDRESSED


def is_look(request: ChoiceRequest) -> bool:
    """Whether a choice is about thresholds, beside the rounds of an algorithm."""
    return request.mechanism in LOOKS


def encode_choice(choice: Choice) -> str:
    """A choice as canonical JSON: bytes in hexadecimal, decimals as strings, integers exact."""
    return text_of(choice.request, places=choice.places, values=choice.values)


def decode_choice(text: str) -> Choice:
    """The choice that `encode_choice` wrote; raises ValueError or LookupError for other text."""
    fields = fields_of(text, ("epsilon", "decay"), ("delta", "share"))
    places, values = tuple(fields.pop("places")), tuple(fields.pop("values"))
    return Choice(ChoiceRequest(**fields), places, values)
