"""The answered rounds of a cell on the server's disk: a server that starts again goes on where another one stopped."""

import os
import struct
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Self

from protocol.codec import decode_bundle, encode_bundle
from protocol.errors import WireError
from protocol.strict import told

MAGIC = b"halftruth journal 1\n"
HEAD = struct.Struct("<QII")  # bytes of the body, CRC-32 of the body, CRC-32 of these two
FRONT = struct.Struct("<QI")
KEY = 32  # bytes that name a round
PATIENCE = 30.0  # seconds to wait for a server that is being ended
LOOK = 0.1


class JournalError(RuntimeError):
    """A journal that cannot be read, written or trusted: the round does not count."""


@dataclass
class Journal:
    """Rounds of one cell in one file, by name: appended whole and on disk before they count, never changed.

    `torn`: bytes at the end of the file that were dropped, since a crash cut the last round short; it never counted.
    Belongs to one process at a time, as long as it is open. A context manager.
    """

    path: Path
    torn: int = 0
    _file: int = -1
    _end: int = 0
    _places: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, patience: float = PATIENCE) -> Self:
        """Open a journal; a missing one is made for its owner only.

        Raises JournalError for a file that is damaged anywhere but at a torn end, that is no journal, that cannot be
        used, or that another process still has open after `patience` seconds.
        """
        journal = cls(path)
        try:
            journal._file = _locked(path, patience)
            journal._read()
        except OSError as error:
            journal.close()
            raise JournalError(f"{path}: expected a journal that can be read and written, {told(error)}") from None
        except BaseException:
            journal.close()
            raise
        return journal

    def find(self, name: bytes) -> list[bytes] | None:
        """The replies of a round, or None where the journal has none. Raises JournalError."""
        if name not in self._places:
            return None
        start, length = self._places[name]
        try:
            return decode_bundle(self._at(start, length)[KEY:])
        except (OSError, WireError) as error:
            raise JournalError(f"{self.path}: expected the round that was there, {told(error)}") from None

    def append(self, name: bytes, replies: list[bytes]) -> None:
        """Write a round, and return when it is on disk. Raises JournalError; then it is not there."""
        body = name + encode_bundle(replies)
        front = FRONT.pack(len(body), zlib.crc32(body))
        try:
            _write(self._file, self._end, front + struct.pack("<I", zlib.crc32(front)) + body)
            os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise JournalError(f"{self.path}: expected to write a round, {told(error)}: nothing was counted") from None
        self._places[name] = self._end + HEAD.size, len(body)
        self._end += HEAD.size + len(body)

    def remove(self) -> None:
        """Delete the file: the cell's outcomes are where they belong."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let others have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def _read(self) -> None:
        """Find all rounds, checking every byte; drop a torn end."""
        size = os.fstat(self._file).st_size
        start, self._end = self._at(0, len(MAGIC)), len(MAGIC)
        if start == MAGIC:
            while self._next(size):
                pass
            self.torn = size - self._end
        elif MAGIC.startswith(start) or not any(self._at(0, size)):  # made when a crash came
            _write(self._file, 0, MAGIC)
        else:
            raise JournalError(f"{self.path}: expected a journal, got another file: move it away")
        if size != self._end:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
            _sync_folder(self.path.parent)

    def _next(self, size: int) -> bool:
        """Step over one round; False at the end, and where nothing follows but what a crash cut short."""
        head = os.pread(self._file, HEAD.size, self._end)
        if len(head) < HEAD.size or not (any(head) or any(self._at(self._end, size - self._end))):
            return False  # the end; or zeros, which a power cut leaves between a file's new length and its data
        length, check, own = HEAD.unpack(head)
        if zlib.crc32(head[: FRONT.size]) != own or length < KEY:
            raise self._damaged()
        if self._end + HEAD.size + length > size:
            return False
        body = self._at(self._end + HEAD.size, length)
        if zlib.crc32(body) != check or body[:KEY] in self._places:
            raise self._damaged()
        self._places[body[:KEY]] = self._end + HEAD.size, length
        self._end += HEAD.size + length
        return True

    def _at(self, start: int, length: int) -> bytes:
        """Bytes of the file, in as many pieces as the system needs."""
        parts: list[bytes] = []
        while length and (part := os.pread(self._file, length, start)):
            parts.append(part)
            start, length = start + len(part), length - len(part)
        return b"".join(parts)

    def _damaged(self) -> JournalError:
        return JournalError(
            f"{self.path}: expected an undamaged journal, got a round at byte {self._end} that does not match its "
            "checksum: delete the file, and its cell is asked again from its first round"
        )


def _locked(path: Path, patience: float) -> int:
    """A handle of the file that no other process has locked, and that is still the one of this name."""
    end = time.monotonic() + patience
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        if _lock(handle):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        os.close(handle)
        if time.monotonic() >= end:
            raise JournalError(f"{path}: expected a journal that nobody else has open, got one that another run writes")
        time.sleep(LOOK)


def _lock(handle: int) -> bool:
    try:
        locks = import_module("fcntl")
    except ImportError:  # Windows, where no federation runs
        return True
    try:
        locks.flock(handle, locks.LOCK_EX | locks.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(handle: int, place: int, content: bytes) -> None:
    while content:
        written = os.pwrite(handle, content, place)
        content, place = content[written:], place + written


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
