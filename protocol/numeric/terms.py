"""What a randomiser of numbers is built from: exact decimals, the same on both sides of the border."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal

from protocol import decimals

Parameters = Mapping[str, Decimal]
LARGEST_EPSILON = Decimal(1000)  # far beyond what protects anybody
SMALLEST_THRESHOLD, LARGEST_THRESHOLD = Decimal("1e-100"), Decimal("1e100")
MOST_DIMENSIONS = 1 << 20
NEEDED = frozenset({"epsilon", "threshold", "dimension"})
DELTA = frozenset({"delta"})
COORDINATES = frozenset({"coordinates"})
ROUNDS = frozenset({"rounds"})
_DOWN = Context(prec=40, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class NumericTerms:
    """The parameters of one mechanism: level, size of a holder's numbers, how many there are and how many are sent.

    `rounds`: reports of a holder that share the level.

    Raises ValueError for numbers out of range.
    """

    name: str
    epsilon: Decimal
    threshold: Decimal
    dimension: int
    delta: Decimal = Decimal(0)
    coordinates: int = 0
    rounds: int = 1

    def __post_init__(self) -> None:
        if decimals.epsilon(self.epsilon) > LARGEST_EPSILON:
            raise ValueError(f"expected epsilon <= {LARGEST_EPSILON}, got {self.epsilon}")
        if not (self.threshold.is_finite() and SMALLEST_THRESHOLD <= self.threshold <= LARGEST_THRESHOLD):
            raise ValueError(f"expected 1e-100 <= threshold <= 1e100, got {self.threshold}")
        if not 1 <= self.dimension <= MOST_DIMENSIONS:
            raise ValueError(f"expected 1 <= dimension <= 2^20, got {self.dimension}")
        if not 0 <= self.coordinates <= self.dimension:
            raise ValueError(f"expected 1 <= coordinates <= dimension {self.dimension}, got {self.coordinates}")

    @property
    def bound(self) -> float:
        """The threshold as a double, rounded down."""
        return decimals.down(self.threshold)

    @property
    def share(self) -> Decimal:
        """The level of one coordinate of those sent: epsilon / coordinates, rounded down; ValueError below 1e-9."""
        return decimals.epsilon(_DOWN.divide(self.epsilon, Decimal(self.coordinates)), "epsilon / coordinates")

    @property
    def spelled(self) -> str:
        """The one spelling of the name and the parameters, for hashes."""
        written = [self.name, *map(decimals.canonical, (self.epsilon, self.delta, self.threshold))]
        shared = [f"rounds {self.rounds}"] if self.rounds > 1 else []
        return " ".join([*written, str(self.dimension), str(self.coordinates), *shared])


def read(
    name: str, parameters: Parameters, optional: frozenset[str] = frozenset(), *, delta: bool = False
) -> NumericTerms:
    """Terms out of named decimals; raises ValueError for missing, unknown, fractional or other wrong ones."""
    needed = NEEDED | DELTA if delta else NEEDED
    if not needed <= set(parameters) <= needed | optional:
        raise ValueError(f"expected parameters {sorted(needed)} of {name}, got {sorted(parameters)}")
    whole = {key: parameters[key] for key in ("dimension", "coordinates", "rounds") if key in parameters}
    for key, value in whole.items():
        if not value.is_finite() or value != int(value) or value < 1:
            raise ValueError(f"expected {key} to be a whole number >= 1, got {value}")
    return NumericTerms(
        name,
        parameters["epsilon"],
        parameters["threshold"],
        delta=decimals.delta(parameters["delta"]) if delta else Decimal(0),
        **{key: int(value) for key, value in whole.items()},
    )
