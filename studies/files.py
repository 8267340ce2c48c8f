"""Files of a study: features by value, and writes that leave either the old file or the whole new one."""

import csv
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Floats
from protocol.strict import StudyError, unopened

FEATURE_FILES = (".npy", ".npz", ".csv")
NOT_NUMPY = (ValueError, EOFError, zipfile.BadZipFile, zlib.error)  # what numpy raises for a file of something else


def unloaded(error: Exception) -> str:
    """Why a file is no array, as the end of an error's text: numpy would advise to run a file of objects as a program.

    >>> unloaded(EOFError("No data left in file")), unloaded(ValueError("x has 2 columns"))
    ('got an empty or broken file', 'x has 2 columns')
    """
    if isinstance(error, EOFError | zipfile.BadZipFile | zlib.error):
        return "got an empty or broken file"
    return str(error) if isinstance(error, ValueError) and "pickle" not in str(error) else "got a file of another kind"


def read_features(path: Path, dimension: int) -> Floats:
    """Differences x of shape (n, dimension) from .npy, .npz (array `x`) or .csv (numbers, an optional header line).

    Raises StudyError naming the file, and for a CSV the line.
    """
    place = f"[problem] features: {path}"
    try:
        if path.suffix == ".csv":
            return _read_csv(path, place, dimension)
        stored = np.load(path, allow_pickle=False)
        if path.suffix == ".npz":
            with stored:
                if "x" not in stored:
                    raise StudyError(f"{place}: expected an array named 'x', found {sorted(stored)}")
                stored = stored["x"]
    except OSError as error:
        raise StudyError(f"{place}: expected a file of numbers, {unopened(error)}") from None
    except StudyError:
        raise
    except NOT_NUMPY as error:
        raise StudyError(f"{place}: expected an array of numbers, {unloaded(error)}") from None
    return _checked(stored, place, dimension)


def _read_csv(path: Path, place: str, dimension: int) -> Floats:
    rows: list[list[float]] = []
    with path.open(newline="", encoding="utf-8-sig") as file:
        for line, fields in enumerate(csv.reader(file), start=1):
            try:
                values = [float(field) for field in fields]
            except ValueError:
                if line == 1:
                    continue
                raise StudyError(f"{place}, line {line}: expected numbers, got {','.join(fields)!r}") from None
            if len(values) != dimension:
                raise StudyError(f"{place}, line {line}: expected {dimension} numbers, got {len(values)}")
            rows.append(values)
    return _checked(np.array(rows), place, dimension)


def _checked(values: NDArray[np.generic], place: str, dimension: int) -> Floats:
    if values.dtype.kind not in "fiu":
        raise StudyError(f"{place}: expected real numbers, got {values.dtype}")
    if values.ndim != 2 or values.shape[1] != dimension or not len(values):
        raise StudyError(f"{place}: expected shape (n, {dimension}), got {values.shape}")
    if not np.isfinite(values.astype(np.float64)).all():
        raise StudyError(f"{place}: expected finite numbers, got NaN or inf")
    return np.ascontiguousarray(values, dtype=np.float64)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, bring it to the disk, and rename it into place."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(draft, path)
        _sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """A text in UTF-8, written atomically."""
    write_atomically(path, lambda draft: draft.write_text(text, encoding="utf-8"))


def write_sheet(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A CSV file, written atomically; numbers have all their digits, None is empty."""

    def fill(draft: Path) -> None:
        with draft.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head)
            writer.writerows(rows)

    write_atomically(path, fill)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
