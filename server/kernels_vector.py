"""Sixteen numbers as one value of compiled code, so that sixteen lanes of a kernel stay in registers side by side.

An operation is the IEEE operation of every lane, and a number beside a value is that number in every lane: a kernel
written for one number has, in each lane, the bits that it has for that number alone.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, cast

import numba
from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.typing import templates

WIDTH = 16
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_INSTRUCTIONS: dict[Any, str] = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}
_CHOICES: dict[Any, str] = {max: ">", min: "<"}
_FUNCTIONS: dict[Any, tuple[str, int]] = {
    abs: ("llvm.fabs", 1),
    math.sqrt: ("llvm.sqrt", 1),
    math.copysign: ("llvm.copysign", 2),
}
_extending: Any = numba.extending  # numba says few of its types
_models: Any = models
_templates: Any = templates


class Lanes(types.Type):
    """The type of WIDTH numbers side by side."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({WIDTH})")


LANES = Lanes()


class _Operation(templates.AbstractTemplate):
    """All operations take and give lanes; a number among the arguments is cast."""

    def generic(self, args: tuple[Any, ...], _keywords: Any) -> Any:
        """The signature, where an argument is lanes."""
        numbers = all(isinstance(argument, Lanes | types.Float) for argument in args)
        return _templates.signature(LANES, *(LANES for _ in args)) if numbers and LANES in args else None


def _spread(context: Any, builder: Any, given: Any, _wanted: Any, value: Any) -> Any:
    """A number in every lane."""
    number = context.cast(builder, value, given, types.float64)
    empty, first = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    every = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(builder.insert_element(empty, number, first), empty, every)


def _arithmetic(instruction: str) -> Any:
    return lambda _context, builder, _signature, arguments: getattr(builder, instruction)(*arguments)


def _choice(comparison: str) -> Any:
    def lower(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(comparison, *arguments), *arguments)

    return lower


def _function(name: str) -> Any:
    def lower(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(arguments))
        return builder.call(builder.module.declare_intrinsic(f"{name}.v{WIDTH}f64", (), kind), arguments)

    return lower


def _teach(operation: Any, lower: Any, *arguments: Any) -> None:
    """Have numba type an operation on lanes, and lower it."""
    _templates.infer_global(operation)(_Operation)
    _extending.lower_builtin(operation, *arguments)(lower)


_extending.register_model(Lanes)(lambda manager, kind: _models.PrimitiveModel(manager, kind, _VECTOR))
_extending.lower_cast(types.Float, Lanes)(_spread)
for _operation, _name in _INSTRUCTIONS.items():
    _teach(_operation, _arithmetic(_name), Lanes, Lanes)
for _operation, _name in _CHOICES.items():
    _teach(_operation, _choice(_name), Lanes, Lanes)
for _operation, (_name, _many) in _FUNCTIONS.items():
    _teach(_operation, _function(_name), *[Lanes] * _many)
_teach(operator.neg, lambda _context, builder, _signature, arguments: builder.fneg(arguments[0]), Lanes)


def _line(context: Any, builder: Any, table: Any, array: Any, line: Any) -> Any:
    """The address of a line of an array, as one of lanes."""
    data = context.make_array(table)(context, builder, array).data
    start = builder.gep(data, [builder.mul(line, context.get_constant(types.intp, WIDTH))])
    return builder.bitcast(start, ir.VectorType(context.get_value_type(table.dtype), WIDTH).as_pointer())


def _fits(array: Any, *elements: Any) -> bool:
    return isinstance(array, types.Array) and array.layout == "C" and array.dtype in elements


def _read(_typing: Any, array: Any, _number: Any) -> Any:
    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        place = _line(context, builder, given.args[0], *arguments)
        if given.args[0].dtype == types.uint8:
            return builder.uitofp(builder.load(place, align=1), _VECTOR)
        return builder.load(place, align=8)

    return (LANES(array, types.intp), generate) if _fits(array, types.float64, types.uint8) else None


def _write(_typing: Any, array: Any, _number: Any, _values: Any) -> Any:
    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _line(context, builder, given.args[0], *arguments[:2]), align=8)
        return context.get_dummy_value()

    return (types.void(array, types.intp, LANES), generate) if _fits(array, types.float64) else None


def _everywhere(_typing: Any, _number: Any) -> Any:
    return LANES(LANES), lambda _context, _builder, _signature, arguments: arguments[0]


def _multiply_add(_typing: Any, _a: Any, _b: Any, _c: Any) -> Any:
    return LANES(LANES, LANES, LANES), _function("llvm.fma")


def _where_rising(_typing: Any, _z: Any, _a: Any, _b: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        z, rising, falling = arguments
        return builder.select(builder.fcmp_ordered(">=", z, ir.Constant(_VECTOR, [0.0] * WIDTH)), rising, falling)

    return LANES(LANES, LANES, LANES), generate


def _turn(_typing: Any, rows: Any, _row: Any, _column: Any, columns: Any, _place: Any) -> Any:
    def generate(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        source, target = (context.make_array(given.args[at])(context, builder, arguments[at]) for at in (0, 3))
        four = ir.VectorType(ir.DoubleType(), 4)

        def place(array: Any, line: int, first: Any, column: Any) -> Any:
            width = builder.extract_value(array.shape, 1)
            start = builder.mul(builder.add(first, context.get_constant(types.intp, line)), width)
            return builder.bitcast(builder.gep(array.data, [builder.add(start, column)]), four.as_pointer())

        def mixed(a: Any, b: Any, order: list[int]) -> Any:
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), 4), order))

        read = [builder.load(place(source, line, arguments[1], arguments[2]), align=8) for line in range(4)]
        even, odd = [0, 4, 2, 6], [1, 5, 3, 7]
        upper = [mixed(read[0], read[1], order) for order in (even, odd)]
        lower = [mixed(read[2], read[3], order) for order in (even, odd)]
        for line in range(4):
            order = [0, 1, 4, 5] if line < 2 else [2, 3, 6, 7]
            found = mixed(upper[line % 2], lower[line % 2], order)
            builder.store(found, place(target, line, arguments[2], arguments[4]), align=8)
        return context.get_dummy_value()

    fits = all(_fits(array, types.float64) and array.ndim == 2 for array in (rows, columns))
    return (types.void(rows, types.intp, types.intp, columns, types.intp), generate) if fits else None


def _total(_typing: Any, _values: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (values,), width = arguments, WIDTH
        while width > 1:
            width //= 2
            halves = [
                ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(at, at + width))) for at in (0, width)
            ]
            empty = ir.Constant(values.type, ir.Undefined)
            values = builder.fadd(*(builder.shuffle_vector(values, empty, half) for half in halves))
        return builder.extract_element(values, ir.Constant(ir.IntType(32), 0))

    return types.float64(LANES), generate


def _any_above(_typing: Any, _values: Any, _limit: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        above = builder.bitcast(builder.fcmp_ordered(">", *arguments), ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", above, ir.Constant(ir.IntType(WIDTH), 0))

    return types.boolean(LANES, LANES), generate


line_of = cast(Callable[[Any, int], Any], _extending.intrinsic(_read))
"""WIDTH numbers of an array of float64 or uint8, from WIDTH times `line` on; nothing checks that they are there."""
write_line = cast(Callable[[Any, int, Any], None], _extending.intrinsic(_write))
"""Write lanes to such a line of an array of float64; nothing checks that it is there."""
everywhere = cast(Callable[[float], Any], _extending.intrinsic(_everywhere))
"""A number in every lane."""
any_above = cast(Callable[[Any, float], bool], _extending.intrinsic(_any_above))
"""Whether a lane is greater than a number."""
total = cast(Callable[[Any], float], _extending.intrinsic(_total))
"""The sum of all lanes: the first half plus the second, until there is one number."""
multiply_add = cast(Callable[[Any, Any, Any], Any], _extending.intrinsic(_multiply_add))
"""a b + c, rounded once, of lanes; numbers are cast. The IEEE operation: the same bits where a processor lacks it."""
turn_square = cast(Callable[[Any, int, int, Any, int], None], _extending.intrinsic(_turn))
"""Write four rows and columns of `rows`, from a row and a column on, as columns, from a place on; none is checked."""
where_rising = cast(Callable[[Any, Any, Any], Any], _extending.intrinsic(_where_rising))
"""Of three lanes z, a, b: a where z >= 0, else b."""
