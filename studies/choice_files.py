"""Files of sets of choices: features by value, and how many choices each row has."""

from pathlib import Path

import numpy as np

from protocol.coins import Floats
from protocol.strict import StudyError, unopened
from studies.files import NOT_NUMPY, unloaded


def read_choices(path: Path, dimension: int) -> Floats:
    """phi of shape (n, K, dimension) from .npy, or from .npz (array `phi`, and `sizes` (n,) where rows differ).

    Absent choices are NaN, as they may be in the file: see `protocol.choice_features.packed`.
    Raises StudyError naming the file.
    """
    place = f"[problem] features: {path}"
    try:
        stored = np.load(path, allow_pickle=False) if path.suffix != ".csv" else None
        sizes = None
        if path.suffix == ".npz" and stored is not None:
            with stored:
                if "phi" not in stored or set(stored) - {"phi", "sizes"}:
                    raise StudyError(f"{place}: expected arrays 'phi' and, if any, 'sizes', found {sorted(stored)}")
                stored, sizes = stored["phi"], stored.get("sizes")
    except OSError as error:
        raise StudyError(f"{place}: expected a file of numbers, {unopened(error)}") from None
    except StudyError:
        raise
    except NOT_NUMPY as error:
        raise StudyError(f"{place}: expected numbers, {unloaded(error)}") from None
    if stored is None or stored.dtype.kind not in "fiu" or stored.ndim != 3 or stored.shape[2] != dimension:
        shape = None if stored is None else stored.shape
        raise StudyError(f"{place}: expected numbers of shape (n, choices, {dimension}) as .npy or .npz, got {shape}")
    values = np.ascontiguousarray(stored, dtype=np.float64)
    if sizes is not None:
        if sizes.dtype.kind not in "iu" or sizes.shape != values.shape[:1] or not 2 <= sizes.min() <= sizes.max():
            raise StudyError(f"{place}: expected sizes of at least 2, one a row, got {sizes.dtype} {sizes.shape}")
        if sizes.max() > values.shape[1]:
            raise StudyError(f"{place}: expected sizes up to {values.shape[1]}, got {sizes.max()}")
        values[np.arange(values.shape[1]) >= sizes[:, None]] = np.nan
    return values
