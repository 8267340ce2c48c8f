"""Files that hold secrets, and files that are replaced: whole or not at all, readable by their owner only if secret."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deploy.processes import FlowerFailed
from protocol.strict import reason

SECRET, PUBLIC = 0o600, 0o644
OWN_FOLDER = 0o700
ROOM = 1 << 18


def write_new(path: Path, raw: bytes, mode: int = SECRET) -> None:
    """Write a file that must not be there yet, whole and on disk when this returns, or not at all.

    Raises FileExistsError, and OSError naming the file.
    """
    with _beside(path, raw, mode) as beside:
        os.link(beside, path)


def replace(path: Path, raw: bytes, mode: int = SECRET) -> None:
    """Write a file in place of another one, which stays as it is until the new one is whole.

    Raises OSError naming the file.
    """
    with _beside(path, raw, mode) as beside:
        os.replace(beside, path)


def check_room(folder: Path) -> None:
    """Raise FlowerFailed where a folder does not take as many bytes as a start writes there at least."""
    try:
        with _beside(folder / "room", bytes(ROOM), SECRET):
            pass
    except OSError as error:
        raise FlowerFailed(f"{folder}: expected room for keys and logs, but the system says: {reason(error)}") from None


@contextmanager
def _beside(path: Path, raw: bytes, mode: int) -> Iterator[Path]:
    """A file that is whole, under another name, and gone when the block is left."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with suppress(FileNotFoundError):
            beside.unlink()
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask says
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        yield beside
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
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
