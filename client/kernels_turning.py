"""Rows turned into columns by vectors of eight numbers, and rows fetched before they are needed."""

from collections.abc import Callable
from typing import Any, cast

import numba
from llvmlite import ir
from numba import types
from numpy import float64
from numpy.typing import NDArray

SIDE = 8  # rows and columns of a block
_VECTOR = ir.VectorType(ir.DoubleType(), SIDE)
_INTEGER = ir.IntType(32)
_extending: Any = numba.extending  # numba says few of its types


def _halves(step: int) -> tuple[ir.Constant, ir.Constant]:
    """Of a pair of rows `step` apart, the numbers that each of them has after this step of a turn."""
    near = [lane if not lane & step else SIDE + lane - step for lane in range(SIDE)]
    far = [lane + step if not lane & step else SIDE + lane for lane in range(SIDE)]
    mask = ir.VectorType(_INTEGER, SIDE)
    return ir.Constant(mask, near), ir.Constant(mask, far)


def _address(context: Any, builder: Any, kind: Any, array: Any, line: Any, column: Any) -> Any:
    held = context.make_array(kind)(context, builder, array)
    return builder.gep(held.data, [builder.add(builder.mul(line, builder.extract_value(held.shape, 1)), column)])


def _turn(_typing: Any, rows: Any, _row: Any, _column: Any, columns: Any, _at: Any) -> Any:
    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        source, row, column, target, at = arguments
        further = [context.get_constant(types.intp, k) for k in range(SIDE)]
        lines = [_address(context, builder, given.args[0], source, builder.add(row, k), column) for k in further]
        held = [builder.load(builder.bitcast(line, _VECTOR.as_pointer()), align=8) for line in lines]
        for step in (1, 2, 4):
            near, far = _halves(step)
            for k in (k for k in range(SIDE) if not k & step):
                pair = held[k], held[k + step]
                held[k], held[k + step] = builder.shuffle_vector(*pair, near), builder.shuffle_vector(*pair, far)
        for k, values in zip(further, held, strict=True):
            place = _address(context, builder, given.args[3], target, builder.add(column, k), at)
            builder.store(values, builder.bitcast(place, _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    plain = all(array.ndim == 2 and array.layout == "C" and array.dtype == types.float64 for array in (rows, columns))
    return (types.void(rows, types.intp, types.intp, columns, types.intp), generate) if plain else None


def _fetch(_typing: Any, rows: Any, _row: Any, _number: Any) -> Any:
    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        place = builder.bitcast(_address(context, builder, given.args[0], *arguments), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, _INTEGER, _INTEGER, _INTEGER])
        reading, near, data = (ir.Constant(_INTEGER, value) for value in (0, 3, 1))
        builder.call(
            builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind), [place, reading, near, data]
        )
        return context.get_dummy_value()

    return (types.void(rows, types.intp, types.intp), generate) if rows.layout == "C" else None


turn = cast(Callable[[NDArray[float64], int, int, NDArray[float64], int], None], _extending.intrinsic(_turn))
"""columns[column + k, at + i] = rows[row + i, column + k], i, k < SIDE; nothing checks that these are there."""
fetch = cast(Callable[[NDArray[float64], int, int], None], _extending.intrinsic(_fetch))
"""Have the memory of rows' number `number` after the start of `row` brought to the first-level cache, if it is any."""
