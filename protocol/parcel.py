"""Where a runtime's message carries the bytes of a bundle; the classes of its records are the runtime's."""

from typing import Any

import numpy as np

RECORD, VALUE = "halftruth", "bundle"
FEW = 1 << 16  # up to so many bytes are one value, which Flower moves in three pieces; more an array, in five or more


def parcel_of(content: Any) -> bytes:
    """The bytes in a message's content: one record with one value, or one array of bytes.

    `content` maps names to records, a record keys to values. Raises ValueError for anything else.
    """
    try:
        ((name, record),) = content.items()
        ((key, value),) = record.items()
        if type(value) is not bytes:
            array = value.numpy()
            value = array.tobytes() if array.dtype == np.uint8 and array.ndim == 1 else None
    except Exception:  # whatever a sender makes a reader of arrays do
        value = None
    if value is None or (name, key) != (RECORD, VALUE):
        raise ValueError(f"expected one value, or one array of bytes, at {RECORD}/{VALUE}, got something else")
    return bytes(value)
