"""Ends everything that carries a private Flower home in its environment, then removes the home.

Also a program, the guardian: it waits until its parent is gone, by whatever signal, and then does the same. It needs
the standard library only, so that it is there before the first Flower process.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

PROC = Path("/proc")
KINDLY, FIRMLY = 3.0, 10.0  # seconds between asking a process to end and killing it, and until giving up


def carriers(home: Path) -> list[int]:
    """Ids of living processes that have `home` as the value of an environment variable, and of all that these started;
    Linux only, else none.

    A child that opened a session of its own is found like any other, since it inherits the environment; one that hides
    its environment, as Flower's executor does from all but root, is found by its parent.
    """
    if not PROC.is_dir():
        return []
    parents = {process: _parent(process) for process in map(int, filter(str.isdecimal, os.listdir(PROC)))}
    found = {process for process in parents if process != os.getpid() and _carries(process, home)}
    while young := {one for one, parent in parents.items() if parent in found} - found:
        found |= young
    return sorted(found)


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
            _tell(set(left) - told, home, sign)  # ending processes may still start others
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


def stat(process: int) -> list[str]:
    """Fields of /proc/PID/stat after the name: state, parent, ...; raises OSError where it has ended."""
    return (PROC / str(process) / "stat").read_text("ascii", "replace").rpartition(")")[2].split()


def _parent(process: int) -> int:
    try:
        return int(stat(process)[1])
    except OSError:  # gone
        return 0


def _tell(processes: Iterable[int], home: Path, sign: int) -> None:
    """Signal processes, and never others that got their numbers in the meantime."""
    with ExitStack() as held:
        handles: dict[int, int] = {}
        for process in processes:
            with suppress(OSError):  # gone
                handles[process] = os.pidfd_open(process)
                held.callback(os.close, handles[process])
        for process in handles.keys() & set(carriers(home)):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[process], sign)


def _tell_groups(groups: Sequence[int], sign: int) -> None:
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, sign)


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
