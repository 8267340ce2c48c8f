"""Rows turned into columns by vectors of eight numbers, and memory fetched before it is needed, for compiled loops.

Whoever has a compiler passes it in, as in `protocol.compiling`: numba, and the module `ir` of its llvmlite.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SIDE = 8  # rows and columns of a block: eight numbers are a line of a cache


def turner(numba: Any, ir: Any) -> Callable[[Floats, int, int, Floats, int, int], None]:
    """turn(rows, row, column, columns, line, at): columns[line + k, at + i] = rows[row + i, column + k], i, k < SIDE.

    Of arrays of two axes in one piece; nothing checks that these numbers are there.
    """
    types = numba.types
    kind = ir.VectorType(ir.DoubleType(), SIDE)
    mask = ir.VectorType(ir.IntType(32), SIDE)

    def halves(step: int) -> tuple[Any, Any]:
        """Of lines `step` apart, the numbers that each of both has after this step of a turn."""
        near = [lane if not lane & step else SIDE + lane - step for lane in range(SIDE)]
        far = [lane + step if not lane & step else SIDE + lane for lane in range(SIDE)]
        return ir.Constant(mask, near), ir.Constant(mask, far)

    def turn(_typing: Any, rows: Any, _row: Any, _column: Any, columns: Any, _line: Any, _at: Any) -> Any:
        def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
            source, row, column, target, line, at = arguments

            def place(which: int, array: Any, first: Any, further: int, number: Any) -> Any:
                start = builder.add(first, context.get_constant(types.intp, further))
                address = _address(context, builder, given.args[which], array, start, number)
                return builder.bitcast(address, kind.as_pointer())

            held = [builder.load(place(0, source, row, k, column), align=8) for k in range(SIDE)]
            for step in (1, 2, 4):
                near, far = halves(step)
                for k in (k for k in range(SIDE) if not k & step):
                    pair = held[k], held[k + step]
                    held[k], held[k + step] = builder.shuffle_vector(*pair, near), builder.shuffle_vector(*pair, far)
            for k, values in enumerate(held):
                builder.store(values, place(3, target, line, k, at), align=8)
            return context.get_dummy_value()

        plain = all(
            array.ndim == 2 and array.layout == "C" and array.dtype == types.float64 for array in (rows, columns)
        )
        whole = types.intp
        return (types.void(rows, whole, whole, columns, whole, whole), generate) if plain else None

    return cast(Callable[[Floats, int, int, Floats, int, int], None], numba.extending.intrinsic(turn))


def fetcher(numba: Any, ir: Any) -> Callable[[Floats, int, int], None]:
    """fetch(rows, row, number): have the memory `number` numbers after a row's first brought near, if it is any."""
    types, integer = numba.types, ir.IntType(32)

    def fetch(_typing: Any, rows: Any, _row: Any, _number: Any) -> Any:
        def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
            place = builder.bitcast(_address(context, builder, given.args[0], *arguments), ir.IntType(8).as_pointer())
            kind = ir.FunctionType(ir.VoidType(), [place.type, integer, integer, integer])
            how = [ir.Constant(integer, value) for value in (0, 3, 1)]  # to read, into the nearest cache, data
            builder.call(builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind), [place, *how])
            return context.get_dummy_value()

        return (types.void(rows, types.intp, types.intp), generate) if rows.ndim == 2 and rows.layout == "C" else None

    return cast(Callable[[Floats, int, int], None], numba.extending.intrinsic(fetch))


def _address(context: Any, builder: Any, kind: Any, array: Any, line: Any, number: Any) -> Any:
    held = context.make_array(kind)(context, builder, array)
    return builder.gep(held.data, [builder.add(builder.mul(line, builder.extract_value(held.shape, 1)), number)])
