"""The tail of symmetric stable laws, which has no closed form: one integral over an angle."""

import math
from functools import lru_cache

from protocol.law_moments import integral

_LOG_LARGEST = 700.0
_TINY = 1e-9  # below it, the tangent at 0 is exact to 1e-17
_LEFT_OUT = 40.0  # e^-40 of the tail is left out


@lru_cache(maxsize=1 << 16)
def stable_tail(alpha: float, x: float) -> float:
    """P(Y > x) for x >= 0 and E e^(itY) = exp(-|t|^alpha), 0 < alpha <= 2, to 1e-9 relative.

    (1/pi) int_0^(pi/2) g((x / A(V))^(alpha/(alpha - 1))) dV with A(V) = sin(alpha V) cos(V)^(-1/alpha)
    cos((1 - alpha) V)^((1 - alpha)/alpha); g(t) = e^-t for alpha > 1, 1 - e^-t below. The integral is taken over
    log(pi/2 - V), split where A(V) = x.

    Source: Nolan 1997, Theorem 1; or the sampler of Chambers, Mallows, Stuck 1976, with its exponential integrated out.
    """
    if alpha == 1:
        return math.atan2(1.0, x) / math.pi
    if alpha == 2:
        return math.erfc(x / 2) / 2
    if x < _TINY ** max(1.0, 1 / alpha):
        return 0.5 - x * math.gamma(1 + 1 / alpha) / math.pi
    k, log_x, top = alpha / (alpha - 1), math.log(x), math.log(math.pi / 2)
    turn = _turn(alpha, log_x)

    def integrand(s: float) -> float:
        t = math.exp(min(max(k * (log_x - _log_size(alpha, s)), -_LOG_LARGEST), _LOG_LARGEST))
        return math.exp(s) * (math.exp(-t) if alpha > 1 else -math.expm1(-t))

    width = min(1.0, 4 / abs(k))
    points = (turn - _LEFT_OUT, turn - 4, turn - width, turn, turn + width, turn + 4, top)
    return integral(integrand, *(min(point, top) for point in points)) / math.pi


def _log_size(alpha: float, s: float) -> float:
    """log A(V) at V = pi/2 - e^s: falls from infinity to minus infinity as s rises to log(pi/2)."""
    from_top = math.exp(s)
    angle = math.pi / 2 - from_top
    if angle <= 0:
        return -_LOG_LARGEST
    bend = (1 - alpha) / alpha * math.log(math.cos((1 - alpha) * angle))
    return math.log(math.sin(alpha * angle)) - math.log(math.sin(from_top)) / alpha + bend


def _turn(alpha: float, log_x: float) -> float:
    """The s with log A = log x, by bisection."""
    low, high = -_LOG_LARGEST, math.log(math.pi / 2)
    for _ in range(100):
        middle = (low + high) / 2
        if _log_size(alpha, middle) > log_x:
            low = middle
        else:
            high = middle
    return (low + high) / 2
