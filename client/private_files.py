"""Who can read a node's files: they should be its user's alone."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def open_to_others(path: Path) -> bool:
    """Whether the file's mode lets anybody but its owner in; never where systems have no such modes. Raises OSError."""
    return os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO))


def readable_by_others(path: Path) -> bool:
    """Whether others may read the file itself; who may look into its folder is not asked. Raises OSError."""
    return os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & (stat.S_IRGRP | stat.S_IROTH))


def replace_private(path: Path, raw: bytes) -> None:
    """Write a file that only its owner can read in place of another one, which stays until the new one is on disk.

    Raises OSError naming the file.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with suppress(FileNotFoundError):
            beside.unlink()
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # else the old name could come back after a crash
        finally:
            os.close(folder)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
