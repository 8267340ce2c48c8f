"""Arrays on the wire: a dtype, a shape, and little-endian bytes of exactly the length that these two say."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol import halftruth_pb2 as wire

MOST_AXES = 4
MOST_BYTES = 1 << 31
MOST_BITS = 63  # of a residue
PIECE = 1 << 14  # residues that are packed at once, a multiple of 8
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


def encode_residues(values: NDArray[np.uint64], bits: int) -> wire.Array:
    """An array of integers below 2^bits, packed. Raises ValueError for others."""
    if values.dtype != np.uint64 or not 1 <= bits <= MOST_BITS or (values >> np.uint64(bits)).any():
        raise ValueError(f"expected uint64 values below 2^{bits}, with 1 <= bits <= {MOST_BITS}, got others")
    parts = [_packed(values.reshape(-1)[at : at + PIECE], bits) for at in range(0, values.size, PIECE)]
    return wire.Array(dtype=wire.DTYPE_RESIDUE, shape=values.shape, data=b"".join(parts), bits=bits)


def _packed(values: NDArray[np.uint64], bits: int) -> bytes:
    every = np.unpackbits(values.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return np.packbits(every[:, :bits].reshape(-1), bitorder="little").tobytes()


def _decode_residues(data: bytes, shape: tuple[int, ...], bits: int) -> NDArray[np.uint64]:
    count = math.prod(shape)
    if not 1 <= bits <= MOST_BITS or len(data) != -(-count * bits // 8):
        raise ValueError(f"expected {count} values of 1 to {MOST_BITS} bits, got {bits} bits and {len(data)} bytes")
    if count * bits % 8 and data[-1] >> count * bits % 8:
        raise ValueError("expected zero padding bits")
    step = PIECE * bits // 8
    parts = [
        _unpacked(data[at * step : (at + 1) * step], min(PIECE, count - at * PIECE), bits)
        for at in range(-(-count // PIECE))
    ]
    return np.concatenate([np.zeros(0, dtype=np.uint64), *parts]).reshape(shape)


def _unpacked(data: bytes, count: int, bits: int) -> NDArray[np.uint64]:
    flags = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=count * bits, bitorder="little")
    whole = np.zeros((count, 64), dtype=np.uint8)
    whole[:, :bits] = flags.reshape(count, bits)
    return np.packbits(whole, axis=1, bitorder="little").view("<u8")[:, 0].astype(np.uint64)


def decode_array(message: wire.Array) -> AnyArray:
    """Read an array; raises ValueError for a length, padding bit, NaN or inf that does not belong."""
    shape = tuple(message.shape)
    if len(shape) > MOST_AXES or math.prod(max(1, axis) for axis in shape) > MOST_BYTES:  # also beside an axis of 0
        raise ValueError(f"expected at most {MOST_AXES} axes and {MOST_BYTES} values, got shape {shape}")
    if message.dtype == wire.DTYPE_RESIDUE:
        return _decode_residues(message.data, shape, message.bits)
    if message.bits:
        raise ValueError(f"expected bits of residues only, got {message.bits} of another dtype")
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
