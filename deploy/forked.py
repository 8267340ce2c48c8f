"""One piece of work in a forked child: its bytes come back through a pipe, and nothing else of it stays."""

import ctypes
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable

PIECE = 1 << 16
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


class Died(Exception):
    """The child ended without its bytes: killed, or its work raised."""


class TooSlow(Exception):
    """The child did not end in time, and was killed."""


class Abandoned(Exception):
    """Whoever asked is gone, and the child was killed."""


def in_child(work: Callable[[], bytes], seconds: float, asker: int) -> bytes:
    """What `work` returns in a forked child, which is gone when this returns or raises.

    `asker`: a socket of whoever wants the bytes; where its other end closes, nobody does. Only for processes with one
    thread. Raises Died, TooSlow after `seconds`, Abandoned.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the only ones are those of idle libraries
        child = os.fork()
    if child == 0:
        os.close(reader)
        os.close(asker)  # or its other end would not hear that the parent was killed
        _be_the_child(work, writer, parent)
    os.close(writer)
    try:
        came = _read(reader, asker, time.monotonic() + seconds)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(reader)
    _, status = os.waitpid(child, 0)  # it closed the pipe, so it is about to end
    if status:
        raise Died
    return came


def _be_the_child(work: Callable[[], bytes], writer: int, parent: int) -> None:
    """Work, write and end; no handler or buffer of the parent runs again."""
    code = 1
    try:
        die_with(parent)
        view = memoryview(work())
        while view:
            view = view[os.write(writer, view) :]
        code = 0
    except BaseException as error:  # its text could hold a label
        print(f"no answer: {type(error).__name__}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def die_with(parent: int) -> None:
    """On Linux, have this process killed when its parent is; elsewhere it ends with its work."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # gone already
            os._exit(1)


def _read(reader: int, asker: int, deadline: float) -> bytes:
    """All bytes until the child closes its end."""
    looks = select.poll()
    looks.register(reader, select.POLLIN)
    looks.register(asker, 0)  # only its end
    pieces: list[bytes] = []
    while True:
        ready = looks.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise TooSlow
        if any(number == asker for number, _ in ready):
            raise Abandoned
        piece = os.read(reader, PIECE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
