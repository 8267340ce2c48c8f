"""exp and log1p on the ranges that likelihoods need: plain arithmetic, so that loops over rows vectorise.

IEEE additions, multiplications and divisions alone: the same bits on every processor and with every maths library.
"""

import math
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.extending import intrinsic

from server.kernels import compiled

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # trailing zero bits: its product with a whole number up to 2^20 is exact
_LN2_LOW = 1.90821492927058770002e-10
_TO_WHOLE = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to a whole number, which is then in the lowest bits
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))
_D = tuple(2.0 / (2 * k + 1) for k in range(16))


def _alike(kind: Any, of: Any) -> Any:
    """The LLVM type with elements `kind` for every element of the type `of`: one number or several side by side."""
    return ir.VectorType(kind, of.count) if isinstance(of, ir.VectorType) else kind


def _every(kind: Any, value: float) -> Any:
    """A constant of an LLVM type, the value in all its elements."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def _write_exponent(_typing: Any, shifted: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        whole = _alike(ir.IntType(64), kind)
        biased = builder.add(builder.bitcast(arguments[0], whole), _every(whole, 1023))
        return builder.bitcast(builder.shl(biased, _every(whole, 52)), kind)

    return shifted(shifted), generate


def _select_one(_typing: Any, z: Any, t: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        rising = builder.fcmp_ordered(">=", arguments[0], _every(kind, 0.0))
        return builder.select(rising, _every(kind, 1.0), arguments[1])

    return z(z, z), generate


_power_of_two = cast(Callable[[float], float], intrinsic(_write_exponent))
"""2^k from k + 1.5 * 2^52, by writing k into the exponent bits; |k| <= 1022."""
_one_where_rising = cast(Callable[[float, float], float], intrinsic(_select_one))
"""1 where z >= 0, else t."""


@compiled
def exp_nonpositive(x: float) -> float:
    """exp(x) for x <= 0 to 2 ulp; below -708 its value at -708, about 3e-308.

    Source: reduction to |r| <= ln(2) / 2, Taylor polynomial of degree 13 (remainder below 5e-18), Estrin's order.
    """
    x = max(x, -708.0)
    shifted = x * _LOG2_E + _TO_WHOLE
    multiple = shifted - _TO_WHOLE
    r = (x - multiple * _LN2_HIGH) - multiple * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = ((1.0 + r) + r2 * (_C2 + _C3 * r)) + r4 * ((_C4 + _C5 * r) + r2 * (_C6 + _C7 * r))
    high = ((_C8 + _C9 * r) + r2 * (_C10 + _C11 * r)) + r4 * (_C12 + _C13 * r)
    return (low + (r4 * r4) * high) * _power_of_two(shifted)


@compiled
def logistic(z: float) -> float:
    """1 / (1 + exp(-z)) to 4 ulp, of one number or of lanes (`server.kernels_vector`)."""
    t = exp_nonpositive(-abs(z))
    return _one_where_rising(z, t) / (1.0 + t)


@compiled
def log_one_plus(t: float) -> float:
    """log(1 + t) for 0 <= t <= 1 to 5 ulp.

    Source: 2 artanh(s), s = t / (2 + t) <= 1/3, to the power s^31 (remainder below 2e-17), Estrin's order.
    """
    s = t / (2.0 + t)
    q = s * s
    q2 = q * q
    q4 = q2 * q2
    a = (_D[0] + _D[1] * q) + (_D[2] + _D[3] * q) * q2
    b = (_D[4] + _D[5] * q) + (_D[6] + _D[7] * q) * q2
    c = (_D[8] + _D[9] * q) + (_D[10] + _D[11] * q) * q2
    d = (_D[12] + _D[13] * q) + (_D[14] + _D[15] * q) * q2
    return s * ((a + b * q4) + (c + d * q4) * (q4 * q4))
