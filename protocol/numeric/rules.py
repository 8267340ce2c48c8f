"""Which randomiser of numbers to use when nothing else is known."""

from dataclasses import dataclass
from decimal import Decimal

from protocol.numeric.coordinates import usual_coordinates

PIECEWISE_FROM, SPHERE_FROM = Decimal("0.5"), Decimal("1.5")


@dataclass(frozen=True)
class Usual:
    """A mechanism by name, and how many coordinates it reports; None where it reports rows as a whole."""

    name: str
    coordinates: int | None


def usual_mechanism(dimension: int, epsilon: Decimal, *, live: bool = False, mean_square: float | None = None) -> Usual:
    """The rule for a row whose threshold is known: one coordinate at low levels, PrivUnit at high ones.

    Below 0.5 Duchi's, whose worst case is best; from there on piecewise: with heavy tails a threshold is far above most
    numbers, and at 0 piecewise varies least. From 1.5 on PrivUnit for whole rows, whose MSE grows like d, not d^2, and
    follows the Euclidean norm. With `live`, for secret coins: those of coordinates at every level.
    `mean_square`: see `usual_coordinates`.

    Source: derived, see docs/HEAVY_TAILS.md.

    >>> usual_mechanism(10, Decimal(1)), usual_mechanism(10, Decimal(4)).name
    (Usual(name='piecewise', coordinates=1), 'priv-unit')
    """
    if epsilon >= SPHERE_FROM and dimension > 1 and not live:
        return Usual("priv-unit", None)
    name = "duchi" if epsilon < PIECEWISE_FROM else "piecewise"
    return Usual(name, usual_coordinates(name, epsilon, dimension, mean_square))
