"""Arrays on the wire: a dtype, a shape, and little-endian bytes of exactly the length that these two say."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol import halftruth_pb2 as wire

MOST_AXES = 4
MOST_BYTES = 1 << 31
_CODES: dict[int, np.dtype[Any]] = {
    wire.DTYPE_U8: np.dtype("u1"),
    wire.DTYPE_I32: np.dtype("<i4"),
    wire.DTYPE_U64: np.dtype("<u8"),
    wire.DTYPE_F64: np.dtype("<f8"),
}
_DTYPES: dict[np.dtype[Any], int] = {dtype: code for code, dtype in _CODES.items()}
AnyArray = NDArray[np.uint8] | NDArray[np.int32] | NDArray[np.uint64] | NDArray[np.float64]


def encode_array(values: AnyArray, bits: bool = False) -> wire.Array:
    """An array of a dtype of the schema; with `bits`, uint8 zeros and ones packed eight to a byte."""
    if bits:
        if values.dtype != np.uint8 or values.max(initial=0) > 1:
            raise ValueError(f"expected uint8 zeros and ones, got {values.dtype}")
        packed = np.packbits(values.view(np.uint8), axis=-1, bitorder="little")
        return wire.Array(dtype=wire.DTYPE_BIT, shape=values.shape, data=packed.tobytes())
    code = _DTYPES.get(values.dtype.newbyteorder("<"))
    if code is None:
        raise ValueError(f"expected a dtype out of uint8, int32, uint64, float64, got {values.dtype}")
    data = values.astype(_CODES[code], order="C").tobytes()
    return wire.Array(dtype=code, shape=values.shape, data=data)  # type: ignore[arg-type]


def decode_array(message: wire.Array) -> AnyArray:
    """Read an array; raises ValueError for a length, padding bit, NaN or inf that does not belong."""
    shape = tuple(message.shape)
    if len(shape) > MOST_AXES or math.prod(max(1, axis) for axis in shape) > MOST_BYTES:  # also beside an axis of 0
        raise ValueError(f"expected at most {MOST_AXES} axes and {MOST_BYTES} values, got shape {shape}")
    if message.dtype == wire.DTYPE_BIT:
        return _decode_bits(message.data, shape)
    if message.dtype not in _CODES:
        raise ValueError(f"expected a dtype of the schema, got {message.dtype}")
    dtype = _CODES[message.dtype]
    if len(message.data) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"expected {math.prod(shape)} {dtype.name} values, got {len(message.data)} bytes")
    values: AnyArray = np.frombuffer(message.data, dtype=dtype).reshape(shape)
    if dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("expected finite values, got NaN or inf")
    return values


def _decode_bits(data: bytes, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    if not shape:
        raise ValueError("expected bits with at least one axis")
    width = -(-shape[-1] // 8)
    lead = math.prod(shape[:-1])
    if len(data) != lead * width:
        raise ValueError(f"expected {lead} rows of {width} bytes, got {len(data)} bytes")
    packed = np.frombuffer(data, dtype=np.uint8).reshape(lead, width)
    if shape[-1] % 8 and (packed[:, -1] >> np.uint8(shape[-1] % 8)).any():
        raise ValueError("expected zero padding bits")
    return np.unpackbits(packed, axis=1, count=shape[-1], bitorder="little").reshape(shape)
