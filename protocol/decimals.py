"""Privacy parameters as exact decimals: what a person writes, a ledger charges and a message carries is one value."""

import math
from decimal import Decimal, Inexact, InvalidOperation, localcontext

SMALLEST_EPSILON = Decimal("1e-9")
LONGEST = 64  # digits and exponent of a parameter on the wire


def decimal(text: str | int | float | Decimal, name: str) -> Decimal:
    """Read a finite decimal; a float is read as the shortest decimal that names it (0.1 is 0.1).

    Raises ValueError naming `name` for anything that is not a finite number.

    >>> decimal(0.1, "epsilon")
    Decimal('0.1')
    """
    if isinstance(text, bool):
        raise ValueError(f"expected {name} to be a number, got {text!r}")
    try:
        value = Decimal(repr(text) if isinstance(text, float) else text)
    except (InvalidOperation, TypeError, ValueError):
        raise ValueError(f"expected {name} to be a decimal number, got {text!r}") from None
    if not value.is_finite():
        raise ValueError(f"expected {name} to be finite, got {text!r}")
    if (value and abs(value.adjusted()) > LONGEST) or len(canonical(value)) > LONGEST:
        raise ValueError(f"expected {name} to have at most {LONGEST} characters, got {text!r}")
    return value


def canonical(value: Decimal) -> str:
    """The one spelling of a decimal on the wire: no trailing zeros, no exponent where digits serve.

    >>> canonical(Decimal("1.50")), canonical(Decimal("1e-5")), canonical(Decimal("100"))
    ('1.5', '0.00001', '100')
    """
    if not value:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def epsilon(text: str | int | float | Decimal, name: str = "epsilon") -> Decimal:
    """Read a privacy level: finite and at least 1e-9. Zero never means "no privacy": it is refused."""
    value = decimal(text, name)
    if value <= 0:
        raise ValueError(f"expected {name} > 0, got {text}")
    if value < SMALLEST_EPSILON:
        raise ValueError(f"expected {name} >= {SMALLEST_EPSILON}, got {text}")
    return value


def delta(text: str | int | float | Decimal, name: str = "delta") -> Decimal:
    """Read a failure probability of the guarantee, strictly between 0 and 1."""
    value = decimal(text, name)
    if not 0 < value < 1:
        raise ValueError(f"expected 0 < {name} < 1, got {text}")
    return value


def down(value: Decimal) -> float:
    """The largest double not above a decimal.

    >>> Decimal(down(Decimal("0.1"))) <= Decimal("0.1")
    True
    """
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if Decimal(nearest) > value else nearest


def add(left: Decimal, right: Decimal) -> Decimal:
    """Exact sum: raises decimal.Inexact rather than round a budget.

    >>> sum_ = Decimal(0)
    >>> for _ in range(10): sum_ = add(sum_, Decimal("0.1"))
    >>> sum_ == 1
    True
    """
    with localcontext() as context:
        context.prec = 4 * LONGEST
        context.traps[Inexact] = True
        return left + right
