"""Parquet files as records, group by group. Names are text, whole numbers or truths; other numbers where asked for."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.sources.containers import SourceError, opened, packing

MAGIC = b"PAR1"
BATCH = 1 << 13  # records at once


class Parquet:
    """A Parquet file. Inside gzip or Zstandard it is unpacked in memory, since its index stands at its end."""

    unit, empty_is_text, kind = "row", True, "Parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        with _reading(path) as file:
            self.names: tuple[str, ...] = tuple(file.schema_arrow.names)

    def cells(self, names: Sequence[str], numeric: frozenset[str]) -> Iterator[tuple[int, Sequence[Any]]]:
        """The number of each row, and its values in these columns. Raises SourceError.

        Floating-point numbers are read only where they are `numeric`: an id that became a float has lost digits.
        """
        with _reading(self.path) as file:
            for name in names:
                self._check(name, file.schema_arrow.field(name).type, name in numeric)
            row = 0
            for batch in file.iter_batches(BATCH, columns=list(names)):
                columns = [_values(batch.column(name)) for name in names]
                for values in zip(*columns, strict=True) if columns else [()] * batch.num_rows:
                    row += 1
                    yield row, values

    def lists(self) -> list[str]:
        """The columns that hold lists of numbers."""
        import pyarrow as pa

        with _reading(self.path) as file:
            return [field.name for field in file.schema_arrow if _holds_numbers(pa, field.type)]

    def vectors(self, name: str) -> NDArray[np.float64]:
        """A column of lists of numbers, all of one length, (rows, length). Raises SourceError that names the row."""
        import pyarrow.compute as pc

        parts: list[NDArray[np.float64]] = []
        with _reading(self.path) as file:
            row, length = 1, -1
            for batch in file.iter_batches(BATCH, columns=[name]):
                column = batch.column(0)
                sizes = np.array(pc.list_value_length(column).fill_null(-1).to_numpy(zero_copy_only=False))
                length = int(sizes[0]) if len(sizes) and length < 0 else length
                if len(other := np.flatnonzero((sizes != length) | (sizes < 1))):
                    said = f"expected a list of {max(length, 1)} numbers, got {max(int(sizes[other[0]]), 0)}"
                    raise SourceError(f"{self.path}, row {row + int(other[0])}, field {name}: {said}")
                flat = pc.cast(column.flatten(), "float64").to_numpy(zero_copy_only=False)  # what is null becomes NaN
                parts.append(np.array(flat, dtype=np.float64).reshape(len(sizes), length))
                row += len(sizes)
        return np.concatenate(parts) if parts else np.empty((0, 0))

    def _check(self, name: str, kind: Any, numeric: bool) -> None:
        import pyarrow as pa

        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        known = (*(getattr(pa.types, f"is_{what}") for what in ("integer", "boolean", "null", "decimal", "temporal")),)
        text = any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
        nested = pa.types.is_list(kind) or pa.types.is_large_list(kind)  # of messages
        if not (text or nested or any(test(kind) for test in known) or (numeric and pa.types.is_floating(kind))):
            raise SourceError(f"{self.path}, field {name}: expected text, whole numbers or true/false, got {kind}")


def _holds_numbers(pa: Any, kind: Any) -> bool:
    lists = ("is_list", "is_large_list", "is_fixed_size_list")
    nested = any(getattr(pa.types, test)(kind) for test in lists)
    return nested and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _values(column: Any) -> list[Any]:
    """Values as JSON has them here: text, truths, None, and lists; numbers with all their digits."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    fine = pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns"  # which Python's types cannot hold
    values: list[Any] = (column.cast(pa.string()) if fine else column).to_pylist()  # spelled as ledgers know them
    as_they_are = pa.types.is_boolean(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return values if as_they_are else [None if value is None else str(value) for value in values]


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """An open Parquet file; what is damaged raises SourceError."""
    import pyarrow as pa  # here and nowhere else on a client: it takes a while
    import pyarrow.parquet as pq

    stream, _ = opened(path)
    try:
        with stream, pq.ParquetFile(io.BytesIO(stream.read()) if packing(path) else stream) as file:
            yield file
    except SourceError:
        raise
    except (pa.ArrowException, OSError, UnicodeError, LookupError) as error:
        raise SourceError(f"{path}: expected a whole Parquet file, got a damaged one ({error})") from None
