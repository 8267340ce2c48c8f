"""What a server asked and received, byte for byte and in order: kept for audits, in files that only grow."""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from protocol.codec import encode_bundle
from server.listening import Ask

HEAD = b"halftruth transcript 1\n"
FRAME = struct.Struct("<cQI")  # what it is, how many bytes follow, and their CRC-32
TRANSCRIPT = "HALFTRUTH_TRANSCRIPT"  # names the folder in the environment of a server's process
ASKED, CAME = b"a", b"c"
PATTERN = "transcript-*.bin"


class Transcript:
    """Appends what is asked (a bundle of tasks) and what comes back (as it came) to a new file in a folder.

    Each server, or cell of a study in one process, has a file of its own, so that one which dies spoils no other: its
    last message may be cut off, and no more. Of central tasks it holds exact sums: it is its owner's alone (mode 0600).
    A context manager; nothing is made before there is something to keep. Raises OSError where it cannot be kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._handle = folder, -1

    def asked(self, tasks: Sequence[bytes]) -> None:
        """Keep the tasks of a round, before anybody is asked."""
        self._append(ASKED, encode_bundle(list(tasks)))
        self.sync()

    def came(self, raw: bytes) -> None:
        """Keep what arrived, whatever it is."""
        self._append(CAME, raw)

    def sync(self) -> None:
        """Return when all of it is on disk."""
        if self._handle >= 0:
            os.fsync(self._handle)

    def kept(self, ask: Ask) -> Ask:
        """The same way of asking, with tasks and replies kept: on disk before a reader is told that these are all."""

        def recorded(tasks: list[bytes]) -> Iterator[bytes]:
            self.asked(tasks)
            yield from self._came(ask(tasks))

        return recorded

    def _came(self, replies: Iterable[bytes]) -> Iterator[bytes]:
        for raw in replies:
            self.came(raw)
            yield raw
        self.sync()

    def _append(self, what: bytes, raw: bytes) -> None:
        if self._handle < 0:
            self._handle = _new(self._folder)
            _write(self._handle, HEAD)
        _write(self._handle, FRAME.pack(what, len(raw), zlib.crc32(raw)) + raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _new(folder: Path) -> int:
    """A file that nobody had before, open to its owner only."""
    number = len(list(folder.glob(PATTERN))) + 1
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
    while True:
        try:
            return os.open(folder / PATTERN.replace("*", f"{number:04d}"), flags, 0o600)
        except FileExistsError:  # another server's
            number += 1


def _write(handle: int, raw: bytes) -> None:
    left = memoryview(raw)
    while left:
        left = left[os.write(handle, left) :]
