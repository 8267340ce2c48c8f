"""The registry of randomisers of numbers: name -> (parameters -> channel). One file a mechanism, one line here."""

from collections.abc import Callable

from protocol.numeric.channel import NumericChannel
from protocol.numeric.coordinates import SCALARS, builder
from protocol.numeric.duchi_ball import duchi_ball
from protocol.numeric.duchi_cube import duchi_cube
from protocol.numeric.gaussian_noise import gaussian_noise
from protocol.numeric.priv_unit import priv_unit
from protocol.numeric.priv_unit_gaussian import priv_unit_gaussian
from protocol.numeric.terms import Parameters
from protocol.numeric.unary import unary

NUMERIC: dict[str, Callable[[Parameters], NumericChannel]] = {
    **{name: builder(name) for name in SCALARS},  # laplace, duchi, piecewise, hybrid, discrete-laplace
    "gaussian": gaussian_noise,
    "duchi-cube": duchi_cube,
    "duchi-ball": duchi_ball,
    "priv-unit": priv_unit,
    "priv-unit-gaussian": priv_unit_gaussian,
}
# Randomisers of what a row of numbers says, not unbiased for the numbers: a vote for the largest one.
VOTES: dict[str, Callable[[Parameters], NumericChannel]] = {"unary": unary}


def numeric_channel(name: str, parameters: Parameters) -> NumericChannel:
    """The channel that a mechanism of numbers executes; client and server derive it from the same decimals.

    Parameters: epsilon, threshold, dimension; delta for gaussian; coordinates, if wanted, for those of one number.
    Raises ValueError for an unknown mechanism, and for missing, unknown or wrong parameters.

    >>> from decimal import Decimal
    >>> here = {"epsilon": Decimal(1), "threshold": Decimal(3), "dimension": Decimal(10)}
    >>> numeric_channel("piecewise", here).level <= 1
    True
    """
    known = {**NUMERIC, **VOTES}
    if name not in known:
        raise ValueError(f"expected a mechanism of numbers out of {sorted(known)}, got {name!r}")
    return known[name](parameters)
