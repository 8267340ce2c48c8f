"""The bytes of a holder's file, unpacked as they are read: plain, gzip or Zstandard, as their first bytes tell."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PACKED = {GZIP: "gzip", ZSTD: "zst"}
PIECE, ZSTD_PIECE = 1 << 16, 1 << 11  # bytes read at once; 2 kB of Zstandard can become 64 MB, not more
LONGEST_LINE = 1 << 26  # bytes: a prompt may be long
UTF8, UTF16, ZIP = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff"), b"PK\x03\x04"
Stamp = tuple[int, int, int]


class SourceError(ValueError):
    """A holder's file that cannot be used: names file, line and field, what was expected and what was got."""


def packing(path: Path) -> str | None:
    """How a file is compressed: "gzip", "zst" or None. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(len(ZSTD))
    return next((name for magic, name in PACKED.items() if head.startswith(magic)), None)


def opened(path: Path) -> tuple[io.BufferedReader, Stamp]:
    """The unpacked bytes of a file, and a stamp that differs once it has changed.

    Reading raises SourceError where a compressed file is damaged or ends too early. Raises OSError, SourceError.
    """
    file = path.open("rb")
    status = os.fstat(file.fileno())
    stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
    head = file.peek(len(ZSTD))
    if head.startswith(GZIP):
        return io.BufferedReader(_Unpacked(file, _of_gzip(file, path)), PIECE), stamp
    if head.startswith(ZSTD):
        return io.BufferedReader(_Unpacked(file, _of_zstd(file, path)), PIECE), stamp
    return file, stamp


def lines(stream: BinaryIO, path: Path, returns: bool) -> Iterator[str]:
    """The physical lines of UTF-8 text with their ends, without a byte order mark.

    A line ends with a line feed, with `returns` also with a lone carriage return; no other line break is one.
    Raises SourceError, naming the line, for bytes that are not UTF-8 and for a line of more than 64 MB.
    """
    number = 0
    while raw := stream.readline(LONGEST_LINE + 1):
        if len(raw) > LONGEST_LINE:
            raise SourceError(
                f"{path}, line {number + 1}: expected lines of at most {LONGEST_LINE} bytes, got a longer"
            )
        if not number:
            if raw.startswith(ZIP):
                raise SourceError(
                    f"{path}: expected CSV, TSV, JSONL or Parquet, got a zip archive, as spreadsheets are: save the "
                    "sheet as CSV UTF-8, or unpack it"
                )
            if raw.startswith(UTF16):
                raise SourceError(f"{path}: expected UTF-8, got UTF-16: save it as UTF-8")
            raw = raw.removeprefix(UTF8)
        for part in raw.splitlines(keepends=True) if returns and b"\r" in raw else (raw,):
            number += 1
            try:
                yield part.decode()
            except UnicodeDecodeError as error:
                where = f"{path}, line {number}"
                raise SourceError(
                    f"{where}: expected UTF-8, got other bytes ({error.reason}): save it as UTF-8, or, from Western "
                    "Windows, iconv -f WINDOWS-1252 -t UTF-8"
                ) from None


class _Unpacked(io.RawIOBase):
    """Pieces of bytes as a stream."""

    def __init__(self, file: BinaryIO, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._file, self._pieces, self._rest = file, pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _of_gzip(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """All members."""
    try:
        with gzip.GzipFile(fileobj=file) as unpacked:
            while piece := unpacked.read(PIECE):
                yield piece
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: expected a whole gzip file, got a damaged one ({error})") from None


def _of_zstd(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """All frames, by the standard library where it can (Python 3.14), else by an optional package.

    One frame after the other: the package's own reader takes the end of the bytes for the end of a frame.
    """
    try:
        module, new = _zstd()
    except ModuleNotFoundError:
        raise SourceError(
            f"{path}: expected the package zstandard, which reads this zst file: pip install 'halftruth[zst]'"
        ) from None
    try:
        frame, rest, begun = new(), b"", False
        while rest or (rest := file.read(ZSTD_PIECE)):
            yield frame.decompress(rest)
            rest, begun = b"", True
            if frame.eof:
                rest, frame, begun = frame.unused_data, new(), False
        if begun:
            raise EOFError("it ends too early")
    except (module.ZstdError, EOFError, MemoryError) as error:
        raise SourceError(f"{path}: expected a whole zst file, got a damaged one ({error})") from None


def _zstd() -> tuple[Any, Any]:
    """The module that unpacks Zstandard, and what makes something that unpacks a frame. Raises ModuleNotFoundError."""
    try:
        module = import_module("compression.zstd")
        return module, module.ZstdDecompressor
    except ModuleNotFoundError:
        module = import_module("zstandard")
        return module, lambda: module.ZstdDecompressor().decompressobj()
