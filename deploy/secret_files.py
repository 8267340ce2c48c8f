"""Files that hold secrets, and files that are replaced: whole or not at all, readable by their owner only if secret."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SECRET, PUBLIC = 0o600, 0o644
OWN_FOLDER = 0o700


def write_new(path: Path, raw: bytes, mode: int = SECRET) -> None:
    """Write a file that must not be there yet, on disk when this returns. Raises FileExistsError and OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask says
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, raw: bytes, mode: int = SECRET) -> None:
    """Write a file in place of another one, which stays as it is until the new one is whole. Raises OSError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        beside.unlink()
    try:
        write_new(beside, raw, mode)
        os.replace(beside, path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def keep_to_owner(database: Path) -> None:
    """Have an SQLite file, empty where there was none, that only its owner can read; what it grows takes its mode.

    Raises OSError.
    """
    os.close(os.open(database, os.O_RDWR | os.O_CREAT, SECRET))
    for path in (database, *(database.with_name(f"{database.name}-{part}") for part in ("wal", "shm", "journal"))):
        with suppress(FileNotFoundError):
            path.chmod(SECRET)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file for as long as the block runs; another process waits. Raises OSError."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
