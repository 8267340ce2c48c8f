"""What a server keeps of a run: byte for byte, in a file of its own, its owner's alone, whatever ends it."""

import os
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.codec import encode_bundle
from server.transcript import FRAME, HEAD, Transcript

ROOT = Path(__file__).parents[2]
Transcribed = Callable[[Path], list[bytes]]


def test_what_came_is_kept_in_order_each_after_its_length(transcribed: Transcribed, tmp_path: Path) -> None:
    parts = [b"", b"one", bytes(range(256)) * 300, b"c"]
    with Transcript(tmp_path) as kept:
        kept.asked([b"task"])
        for part in parts:
            kept.came(part)
    assert transcribed(tmp_path) == parts
    (path,) = tmp_path.iterdir()
    asked = encode_bundle([b"task"])
    assert path.read_bytes().startswith(HEAD + FRAME.pack(b"a", len(asked), zlib.crc32(asked)) + asked)


def test_ways_of_asking_keep_what_passes(transcribed: Transcribed, tmp_path: Path) -> None:
    with Transcript(tmp_path) as kept:
        ask = kept.kept(lambda tasks: [task + b"!" for task in tasks])
        assert list(ask([b"a", b"b"])) == [b"a!", b"b!"] and list(ask([b"c"])) == [b"c!"]
    assert transcribed(tmp_path) == [b"a!", b"b!", b"c!"]


def test_every_server_has_a_file_of_its_own_and_nothing_is_overwritten(
    transcribed: Transcribed, tmp_path: Path
) -> None:
    with Transcript(tmp_path) as one, Transcript(tmp_path) as other, Transcript(tmp_path):
        for number in range(3):
            one.came(b"one %d" % number)
            other.came(b"other %d" % number)
    with Transcript(tmp_path) as later:
        later.came(b"later")
    assert len(list(tmp_path.iterdir())) == 3
    assert transcribed(tmp_path) == [*(b"one %d" % n for n in range(3)), *(b"other %d" % n for n in range(3)), b"later"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Transcript(tmp_path) as kept:
            kept.came(b"an exact sum")
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_killed_server_leaves_all_that_came_before(transcribed: Transcribed, tmp_path: Path) -> None:
    words = (
        "import os, sys, pathlib; from server.transcript import Transcript\n"
        "kept = Transcript(pathlib.Path(sys.argv[1])); kept.came(b'x' * 99); kept.came(b'y'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", words, str(tmp_path)], cwd=ROOT).returncode == 9
    assert transcribed(tmp_path) == [b"x" * 99, b"y"]
