"""Compiled kernels that outlive the folder they were compiled in: Flower unpacks a server anew for every run.

numba asks `Kept` where the environment says NUMBA_CACHE_LOCATOR_CLASSES=server.kernel_cache.Kept.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocol.compiling import SHARED

FOLDER = "HALFTRUTH_KERNELS"


class Kept:
    """numba's cache locator: a folder named by the content of all kernels, in the one that HALFTRUTH_KERNELS names.

    Where that cannot be written to, the place beside the source. Nothing kept is ever stale: another source, another
    folder.
    """

    def __init__(self, folder: Path, stamp: bytes, line: int) -> None:
        self._folder, self._stamp, self._line = folder, stamp, line

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> "Kept":
        """The place for a function of a source file."""
        sources = sorted(Path(file).parent.glob("kernels*.py"))
        stamp = hashlib.sha256(b"".join(source.read_bytes() for source in (*SHARED, *sources))).digest()
        chosen = os.environ.get(FOLDER)
        wanted = Path(chosen) / f"kernels-{stamp.hex()[:16]}" if chosen else None
        folder = wanted if wanted is not None and _writable(wanted) else Path(file).parent / "__pycache__"
        return cls(folder, stamp, function.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def get_source_stamp(self) -> bytes:
        """Hash of all kernels: they call each other."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self._line)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
