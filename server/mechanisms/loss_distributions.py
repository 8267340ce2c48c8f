"""Numerical accounting by privacy loss distributions: an extra, `pip install halftruth[accounting]`."""

import importlib
from decimal import Decimal
from fractions import Fraction
from typing import Any

from server.mechanisms.discrete_gaussian import up
from server.mechanisms.gaussian import delta_float

_PACKAGE = "dp_accounting.pld"
_UP = 1 + 2.0**-40


def gaussian_epsilon(delta: Decimal, rounds: int, multiplier: float) -> float:
    """The level of T Gaussian rounds of one multiplier by numerical composition, rounded up: a check on the exact one.

    Guarantee: (result, delta) with the package's pessimistic rounding. Raises ImportError without the extra,
    ValueError for what is not positive. Source: Koskela, Jälkö, Honkela 2020.
    """
    if not (rounds >= 1 and multiplier > 0):
        raise ValueError(f"expected rounds >= 1 and multiplier > 0, got {rounds} and {multiplier}")
    library: Any = importlib.import_module(f"{_PACKAGE}.privacy_loss_distribution")
    one = library.from_gaussian_mechanism(multiplier)
    return float(one.self_compose(rounds).get_epsilon_for_delta(delta_float(delta))) * _UP


def pure_epsilon(delta: Decimal, level: float, rounds: int) -> float:
    """The level of T releases of one pure level by numerical composition, rounded up: a check on the exact one.

    Guarantee: (result, delta) with the package's pessimistic rounding. Raises ImportError without the extra,
    ValueError for what is not positive. Source: Koskela, Jälkö, Honkela 2020; Kairouz, Oh, Viswanath 2015.
    """
    if not (rounds >= 1 and level > 0):
        raise ValueError(f"expected rounds >= 1 and level > 0, got {rounds} and {level}")
    library: Any = importlib.import_module(f"{_PACKAGE}.privacy_loss_distribution")
    common: Any = importlib.import_module(f"{_PACKAGE}.common")
    one = library.from_privacy_parameters(common.DifferentialPrivacyParameters(level, 0.0))
    return float(one.self_compose(rounds).get_epsilon_for_delta(delta_float(delta))) * _UP


def peeling_epsilon(delta: Decimal, sparsity: int, scale: float) -> float:
    """The level of Laplace peeling by numerical composition, rounded up: s selections, s values, at sensitivity 1.

    A selection is dominated by randomised response of level 2 / scale, a value by the Laplace mechanism.

    Guarantee: (result, delta) with the package's pessimistic rounding; unit and neighbours are those of the
    sensitivity. Raises ImportError without the extra, ValueError for what is not positive.
    Source: Koskela, Jälkö, Honkela 2020; Kairouz, Oh, Viswanath 2015 for a selection.
    """
    if not (sparsity >= 1 and scale > 0):
        raise ValueError(f"expected sparsity >= 1 and scale > 0, got {sparsity} and {scale}")
    library: Any = importlib.import_module(f"{_PACKAGE}.privacy_loss_distribution")
    common: Any = importlib.import_module(f"{_PACKAGE}.common")
    selection = library.from_privacy_parameters(common.DifferentialPrivacyParameters(up(2 / Fraction(scale)), 0.0))
    value = library.from_laplace_mechanism(scale)
    together = selection.self_compose(sparsity).compose(value.self_compose(sparsity))
    return float(together.get_epsilon_for_delta(delta_float(delta))) * _UP


def peeling_scale(epsilon: Decimal, delta: Decimal, sparsity: int, high: float) -> float:
    """The least scale, to a relative 1e-6 and rounded up, at which `peeling_epsilon` is at most epsilon.

    Guarantee: `peeling_epsilon` at the result is at most epsilon. Raises ImportError without the extra, ValueError
    where `high` is too small. Source: as `peeling_epsilon`.
    """
    low = 0.0
    if Fraction(peeling_epsilon(delta, sparsity, high)) > Fraction(epsilon):
        raise ValueError(f"expected a scale that is large enough for epsilon = {epsilon}, got {high}")
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if Fraction(peeling_epsilon(delta, sparsity, middle)) <= Fraction(epsilon):
            high = middle
        else:
            low = middle
    return high
