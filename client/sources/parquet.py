"""Parquet files as records, group by group. Names are text, whole numbers or truths; other numbers where asked for."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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

    def _check(self, name: str, kind: Any, numeric: bool) -> None:
        import pyarrow as pa

        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        known = (*(getattr(pa.types, f"is_{what}") for what in ("integer", "boolean", "null", "decimal", "temporal")),)
        text = any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
        nested = pa.types.is_list(kind) or pa.types.is_large_list(kind)  # of messages
        if not (text or nested or any(test(kind) for test in known) or (numeric and pa.types.is_floating(kind))):
            raise SourceError(f"{self.path}, field {name}: expected text, whole numbers or true/false, got {kind}")


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
