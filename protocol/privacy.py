"""The claim that comes with a release: level, unit and neighbouring relation."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum

from protocol.decimals import add, canonical


class Unit(IntEnum):
    """What one budget protects. The numbers are those of the wire schema."""

    LABEL = 1
    LABELER = 2
    RECORD = 3
    HOLDER = 4
    ADDED_RECORD = 5
    ADDED_HOLDER = 6

    @property
    def label(self) -> str:
        """The name in lower case, as results write it; what neighbours differ in is said beside it."""
        return self.replaced.name.lower()

    @property
    def replaced(self) -> "Unit":
        """The same under the relation that replaces: itself, but for units that are added or removed."""
        return {Unit.ADDED_RECORD: Unit.RECORD, Unit.ADDED_HOLDER: Unit.HOLDER}.get(self, self)


NEIGHBOURS: dict[Unit, str] = {
    Unit.LABEL: "replace one label",
    Unit.LABELER: "replace all labels of one labeler",
    Unit.RECORD: "replace one record",
    Unit.HOLDER: "replace all records of one holder",
    Unit.ADDED_RECORD: "add or remove one record, the divisor stays",
    Unit.ADDED_HOLDER: "add or remove one holder, the divisor stays",
}


@dataclass(frozen=True)
class Guarantee:
    """An (epsilon, delta) claim for a unit of privacy under a neighbouring relation.

    Guarantee: P(report in S | data) <= e^epsilon P(report in S | neighbour) + delta for every set S.
    """

    epsilon: Decimal
    delta: Decimal
    unit: Unit

    def __post_init__(self) -> None:
        if not self.epsilon.is_finite() or self.epsilon <= 0:
            raise ValueError(f"expected epsilon > 0, got {self.epsilon}")
        if not self.delta.is_finite() or not 0 <= self.delta < 1:
            raise ValueError(f"expected 0 <= delta < 1, got {self.delta}")

    @property
    def neighbours(self) -> str:
        """The neighbouring relation in words."""
        return NEIGHBOURS[self.unit]

    def __str__(self) -> str:
        level = f"epsilon = {canonical(self.epsilon)}"
        if self.delta:
            level = f"({level}, delta = {canonical(self.delta)})"
        return f"{level} per {self.unit.label}; neighbours: {self.neighbours}"


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Basic composition: levels and failure probabilities add, exactly.

    Guarantee: the sum, for the common unit. Raises ValueError for no guarantee, mixed units, or a delta of 1 or more.
    Source: Dwork, Roth 2014, Theorem 3.16.

    >>> one = Guarantee(Decimal("0.1"), Decimal(0), Unit.LABEL)
    >>> compose([one] * 10).epsilon
    Decimal('1.0')
    """
    items = list(guarantees)
    if not items:
        raise ValueError("expected at least one guarantee to compose, got none")
    if len({item.unit for item in items}) > 1:
        raise ValueError(f"expected one unit of privacy, got {sorted({i.unit.label for i in items})}")
    epsilon, delta = Decimal(0), Decimal(0)
    for item in items:
        epsilon, delta = add(epsilon, item.epsilon), add(delta, item.delta)
    return Guarantee(epsilon, delta, items[0].unit)
