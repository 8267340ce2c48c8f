"""Files of vectors that `halftruth data embed` writes, and `--features` reads: Parquet or .npz, by names of texts."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from protocol.strict import StudyError
from studies.text.embed import Embedded

PROMPT = "prompt"  # whatever the column was called: `--prompt` says that where it is read
PARQUET, NPZ = ".parquet", ".npz"


def check_name(path: Path) -> None:
    """Raise StudyError unless a file of vectors can be made there."""
    if path.suffix not in (PARQUET, NPZ):
        raise StudyError(f"--out: expected a name that ends in {PARQUET} or {NPZ}, got {path}")
    if path.exists():
        raise StudyError(f"--out: expected a file that is not there yet, got {path}")


def write_vectors(path: Path, found: Embedded) -> None:
    """Write all of it, or nothing. The same texts and model make the same bytes with one version of the libraries."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with beside.open("xb") as file:
            (_as_parquet if path.suffix == PARQUET else _as_npz)(file, found)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _as_parquet(file: object, found: Embedded) -> None:
    flat = pa.array(np.ascontiguousarray(found.values).ravel(), pa.float32())
    columns = {"item": pa.array([answer for answer, _ in found.keys], pa.string())}
    if found.prompt is not None:
        columns = {PROMPT: pa.array([prompt for _, prompt in found.keys], pa.string()), **columns}
    columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, found.values.shape[1])
    pq.write_table(pa.table(columns).replace_schema_metadata({"model": found.model}), file)


def _as_npz(file: object, found: Embedded) -> None:
    arrays = {"items": np.array([answer for answer, _ in found.keys]), "features": found.values}
    if found.prompt is not None:
        arrays["prompts"] = np.array([prompt for _, prompt in found.keys])
    np.savez(file, model=np.array(found.model), **arrays)  # type: ignore[arg-type]
