"""Ends everything that carries a private Flower home in its environment, then removes the home.

Also a program, the guardian: it waits until its parent is gone, by whatever signal, and then does the same. It needs
the standard library only, so that it is there before the first Flower process.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
KINDLY, FIRMLY = 3.0, 10.0  # seconds between asking a process to end and killing it, and until giving up


def carriers(home: Path) -> list[int]:
    """Ids of living processes that have `home` as the value of an environment variable; Linux only, else none.

    A child that opened a session of its own is found like any other, since it inherits the environment.
    """
    if not PROC.is_dir():
        return []
    found = (int(entry.name) for entry in os.scandir(PROC) if entry.name.isdecimal())
    return [process for process in found if process != os.getpid() and _carries(process, home)]


def end_processes(home: Path, groups: Sequence[int] = ()) -> list[int]:
    """Ask all carriers of `home` to end, kill those that do not, and wait until none is left.

    `groups`: process groups to end where there is no /proc to find carriers in. Returns what outlived even that.
    """
    for sign, patience in ((signal.SIGTERM, KINDLY), (signal.SIGKILL, FIRMLY)):
        told: set[int] = set()
        deadline = time.monotonic() + patience
        if not PROC.is_dir():
            _tell_groups(groups, sign)
        while (left := carriers(home)) and time.monotonic() < deadline:
            for process in set(left) - told:  # ending processes may still start others
                _tell(process, home, sign)
            told |= set(left)
            time.sleep(0.02)
        if not left:
            break
    return left


def end_all(home: Path, groups: Sequence[int] = ()) -> list[int]:
    """End all carriers of `home`, like `end_processes`, and remove the folder."""
    left = end_processes(home, groups)
    shutil.rmtree(home, ignore_errors=True)
    return left


def guard(home: Path) -> None:
    """Read ids of process groups from standard input until the parent closes it or dies, then end all of them."""
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_IGN)
    end_all(home, [int(line) for line in sys.stdin])


def _carries(process: int, home: Path) -> bool:
    try:
        variables = (PROC / str(process) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or somebody else's
        return False
    value = b"=" + os.fsencode(home)
    return any(variable.endswith(value) and variable.count(b"=") == 1 for variable in variables)


def _tell(process: int, home: Path, sign: int) -> None:
    """Signal a process, and never another one that got its number in the meantime."""
    try:
        handle = os.pidfd_open(process)
    except OSError:
        return
    with suppress(ProcessLookupError), os.fdopen(handle, "rb", buffering=0):
        if _carries(process, home):
            signal.pidfd_send_signal(handle, sign)


def _tell_groups(groups: Sequence[int], sign: int) -> None:
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, sign)


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
