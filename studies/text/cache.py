"""Vectors of texts on disk, so that a text is embedded once; losing them loses time only.

Each entry is named by model, dimensions and text, and ends with a checksum: what is damaged is made again.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from protocol.strict import StudyError
from studies.text.model import Vectors

CHECK = 8  # bytes of checksum behind a vector
MOST_ASKED = 500  # keys in one query
WAIT = 30.0  # seconds for another process that writes


class Cache:
    """Vectors of one model and dimension in a SQLite file, for its owner alone; any process may share it.

    `damaged` counts entries, and whole files, that were not what had been written. Raises StudyError, OSError.
    """

    def __init__(self, path: Path, model: str, dimensions: int) -> None:
        self.path, self.model, self.dimensions = path, model, dimensions
        self.damaged = 0
        self._file = self._opened()

    def close(self) -> None:
        """End the use of the file."""
        self._file.close()

    def key(self, text: str) -> bytes:
        """32 bytes that name a text's vector of this model and dimension."""
        head = f"halftruth text v1\n{self.model}\n{self.dimensions}\n"
        return hashlib.sha256(head.encode() + text.encode()).digest()

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Those vectors that are there and whole."""
        found: dict[bytes, Vectors] = {}
        with self._mended():
            for start in range(0, len(keys), MOST_ASKED):
                some = keys[start : start + MOST_ASKED]
                marks = ",".join("?" * len(some))
                for key, raw in self._file.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some):
                    if isinstance(raw, bytes) and len(raw) == 4 * self.dimensions + CHECK and _sealed(key, raw) == raw:
                        found[key] = np.frombuffer(raw[:-CHECK], dtype="<f4")
                    else:
                        self.damaged += 1
        return found

    def keep(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Add vectors, all of them or none."""
        entries = [
            (key, _sealed(key, vector.astype("<f4").tobytes() + bytes(CHECK))) for key, vector in vectors.items()
        ]
        with self._mended(), self._file:
            self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", entries)

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.touch(mode=0o600)
        try:
            return _connected(self.path)
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from None
        except sqlite3.DatabaseError:
            self._forget()
            return _connected(self.path)

    @contextmanager
    def _mended(self) -> Iterator[None]:
        """A file that turns out to be damaged is made anew, empty; what was asked of it has found nothing more."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise self._unusable(error) from None
        except sqlite3.DatabaseError:
            self._file.close()
            self._forget()
            self._file = _connected(self.path)

    def _unusable(self, error: Exception) -> StudyError:
        return StudyError(
            f"{self.path}: expected a cache that can be read and written, got: {error}: --cache DIR, or none"
        )

    def _forget(self) -> None:
        self.damaged += 1
        self.path.unlink(missing_ok=True)
        self.path.with_name(self.path.name + "-journal").unlink(missing_ok=True)
        self.path.touch(mode=0o600)


def _connected(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=WAIT)
    try:
        file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        file.commit()
    except sqlite3.Error:
        file.close()
        raise
    return file


def _sealed(key: bytes, raw: bytes) -> bytes:
    """A vector with the checksum that belongs behind it."""
    return raw[:-CHECK] + hashlib.sha256(key + raw[:-CHECK]).digest()[:CHECK]
