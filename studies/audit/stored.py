"""A transcript read back: what a server asked and received, and what of its files is cut off or was changed."""

import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from protocol.codec import decode_bundle
from protocol.errors import WireError
from protocol.strict import StudyError
from server.transcript import ASKED, CAME, FRAME, HEAD, PATTERN


@dataclass
class Stored:
    """`asked`: tasks, in their order; `came`: messages as they arrived; `faults`: of the files, in words."""

    asked: list[bytes] = field(default_factory=list)
    came: list[bytes] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)


def stored(path: Path) -> Stored:
    """The transcript of a folder, or a file of it. Raises StudyError for what is none."""
    files = sorted(path.glob(PATTERN)) if path.is_dir() else [path]
    if not files:
        raise StudyError(f"{path}: expected a transcript, {PATTERN}, got a folder without any")
    found = Stored()
    for file in files:
        try:
            raw = file.read_bytes()
        except OSError as error:
            raise StudyError(f"{file}: expected a transcript, got none: {error.strerror}") from None
        if not raw.startswith(HEAD):
            raise StudyError(f"{file}: expected a transcript, which begins with {HEAD.decode().strip()!r}")
        _read(raw, file.name, found)
    return found


def _read(raw: bytes, name: str, found: Stored) -> None:
    place = len(HEAD)
    while place < len(raw):
        start = place + FRAME.size
        what, size, check = FRAME.unpack(raw[place:start]) if start <= len(raw) else (CAME, len(raw), 0)
        place, body = start + size, raw[start : start + size]
        if place > len(raw):
            found.faults[
                f"{name}: its last message is cut off: the server ended while it wrote, or somebody cut it"
            ] += 1
        elif what not in (ASKED, CAME) or zlib.crc32(body) != check:
            found.faults[f"{name}: a message that was changed after it was written"] += 1
        elif what == CAME:
            found.came.append(body)
        else:
            try:
                found.asked += decode_bundle(body)
            except WireError:
                found.faults[f"{name}: tasks that do not read"] += 1
