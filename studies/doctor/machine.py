"""What can be found out about this machine: cores and memory that may be used, disks, the clock, loopback."""

import ctypes
import os
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from client import ledger_store
from deploy.ports import HOST
from protocol import threads

RELEASED = datetime(2026, 1, 1, tzinfo=UTC)  # no clock that is right says less
LOCK_TIMEOUT = 5.0  # seconds
UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
CONTROL = Path("/sys/fs/cgroup")


def cores() -> int:
    """Cores that this process may use: of its affinity, and of its group's quota."""
    here = threads.cores()
    with suppress(OSError, ValueError):
        quota, period = (CONTROL / "cpu.max").read_text("ascii").split()
        return here if quota == "max" else max(1, min(here, -(-int(quota) // int(period))))
    return here


def memory() -> int:
    """Bytes that may be used; 0 where that cannot be told."""
    sizes = []
    with suppress(OSError, ValueError, AttributeError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # "max" is no number
        sizes.append(int((CONTROL / "memory.max").read_text("ascii")))
    return min(sizes, default=0)


def writable(folder: Path) -> bool:
    """Whether a file can be made in the folder, or in the nearest one above it that exists."""
    try:
        tempfile.TemporaryFile(dir=_there(folder)).close()
    except OSError:
        return False
    return True


def keeps(folder: Path) -> str:
    """Why ledgers cannot be kept in a folder, "" where they can: one is made there, written to, and removed."""
    try:
        with tempfile.TemporaryDirectory(dir=_there(folder), prefix=".halftruth-doctor-") as room:
            ledger = Path(room) / "ledger.sqlite"
            ledger_store.create(ledger, LOCK_TIMEOUT)
            with ledger_store.writing(ledger, LOCK_TIMEOUT):
                pass
    except (OSError, ledger_store.LedgerUnavailable) as error:
        return f"no ledger can be kept there ({error.strerror if isinstance(error, OSError) else error})"
    return ""


def free_space(folder: Path) -> int:
    """Bytes that are free where the folder is, or will be."""
    return shutil.disk_usage(_there(folder)).free


def _there(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())


def loopback() -> bool:
    """Whether one program can reach another on this machine."""
    try:
        with socket.create_server((HOST, 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError:
        return False
    return True


def clock() -> tuple[bool | None, str]:
    """Whether the clock is right (None: nobody knows), and in words."""
    now = datetime.now(UTC)
    if now < RELEASED:
        return False, f"it says {now:%Y-%m-%d}, which is past"
    kept = _synchronised()
    if kept is False:
        return False, f"{now:%Y-%m-%d %H:%M:%S} UTC, and nothing keeps it right"
    return kept, f"{now:%Y-%m-%d %H:%M:%S} UTC{', kept right' if kept else ''}"


def _synchronised() -> bool | None:
    """What the kernel knows of its clock; None where it says nothing, as in most containers."""
    if sys.platform != "linux":
        return None
    with suppress(OSError, AttributeError):
        room = (ctypes.c_long * 64)()  # struct timex, whose first field asks for no change: read only
        state = ctypes.CDLL(None, use_errno=True).adjtimex(room)
        if state >= 0:
            status = ctypes.cast(room, ctypes.POINTER(ctypes.c_int))[10 if ctypes.sizeof(ctypes.c_long) == 8 else 5]
            return not status & UNSYNCHRONISED
    return None
