"""The law of a report given a value, as integers: what the sampler executes and what the guarantee is read off."""

import hashlib
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

TOTAL_BITS = 63
TOTAL = 1 << TOTAL_BITS
_UP = Context(prec=40, rounding=ROUND_CEILING)


def log_up(ratio: Fraction) -> Decimal:
    """log(ratio) for a ratio >= 1, rounded up.

    >>> log_up(Fraction(1))
    Decimal('0')
    """
    quotient = _UP.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    # Decimal.ln is correctly rounded to nearest; one unit in the last place more is an upper bound.
    return _UP.next_plus(_UP.ln(quotient)) if ratio > 1 else Decimal(0)


@dataclass(frozen=True)
class DiscreteChannel:
    """A randomiser with finitely many outcomes: P(symbol | value) = table[value][symbol] / 2^63.

    Every row sums to 2^63 and every count is at least 1 (ValueError otherwise), so the level is finite.

    Guarantee: `level`-local differential privacy of one value; neighbours: replace the value.
    Source: derived, see docs/PRIVACY.md.
    """

    table: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.table) < 2 or len({len(row) for row in self.table}) != 1:
            raise ValueError("expected a table of at least two rows of one length")
        for value, row in enumerate(self.table):
            if sum(row) != TOTAL or min(row) < 1:
                raise ValueError(f"expected counts >= 1 that sum to 2^63 in row {value}, got {row}")

    @property
    def symbol_type(self) -> type[np.uint8]:
        """What holds one report."""
        return np.uint8

    @property
    def outcomes(self) -> int:
        """How many symbols a report can be."""
        return len(self.table[0])

    @cached_property
    def level(self) -> Decimal:
        """The privacy level of the table, rounded up: max over symbols of log(largest count / smallest count)."""
        columns = list(zip(*self.table, strict=True))
        return log_up(max(Fraction(max(column), min(column)) for column in columns))

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the table: the channel's name in reports and ledgers."""
        head = f"halftruth table v1 {len(self.table)} {self.outcomes}\n".encode()
        counts = np.array(self.table, dtype="<u8").tobytes()
        return hashlib.sha256(head + counts).digest()

    @cached_property
    def thresholds(self) -> NDArray[np.uint64]:
        """Cumulative counts, shape (values, outcomes - 1): symbol = how many thresholds are <= a 63-bit coin."""
        return np.cumsum(np.array(self.table, dtype=np.uint64), axis=1)[:, :-1]

    @cached_property
    def cuts(self) -> tuple[tuple[int, ...], ...]:
        """The thresholds as whole numbers, by value."""
        return tuple(map(tuple, self.thresholds.tolist()))

    def probability(self, value: int, symbol: int) -> Fraction:
        """P(symbol | value), exactly."""
        return Fraction(self.table[value][symbol], TOTAL)
