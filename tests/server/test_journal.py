"""The journal of a cell's rounds: whole rounds or none, whatever a crash or a disk does to the file."""

import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

import server.journal as journal_module
from server.journal import HEAD, KEY, MAGIC, Journal, JournalError

ROUNDS = {sha256(bytes([t])).digest(): [bytes([t]) * t, b""] for t in range(3)}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A journal of three rounds."""
    path = tmp_path / "cell.journal"
    with Journal.open(path) as journal:
        for name, replies in ROUNDS.items():
            journal.append(name, replies)
    return path


def held(path: Path) -> tuple[dict[bytes, list[bytes]], int]:
    """The rounds that a journal has, and how much it dropped."""
    with Journal.open(path, patience=0) as journal:
        found = {name: journal.find(name) for name in ROUNDS}
        assert len(journal) == sum(replies is not None for replies in found.values())
        return {name: replies for name, replies in found.items() if replies is not None}, journal.torn


def ends(path: Path) -> list[int]:
    """Where rounds end, counted by hand."""
    content, place, found = path.read_bytes(), len(MAGIC), [len(MAGIC)]
    while place < len(content):
        place += HEAD.size + HEAD.unpack_from(content, place)[0]
        found.append(place)
    return found


def test_rounds_come_back_and_the_file_is_its_owners(written: Path) -> None:
    assert held(written) == (ROUNDS, 0)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    with Journal.open(written) as journal:
        assert journal.find(bytes(KEY)) is None
        journal.append(bytes(KEY), [b"more"])
        assert journal.find(bytes(KEY)) == [b"more"]
    with Journal.open(written) as journal:
        assert len(journal) == 4 and journal.find(bytes(KEY)) == [b"more"]
        journal.remove()
    assert not written.exists()


def test_a_file_that_ends_anywhere_has_the_rounds_that_are_whole(written: Path, tmp_path: Path) -> None:
    """Every length that a crash can leave: also of a file that was just made."""
    content, marks, names = written.read_bytes(), ends(written), list(ROUNDS)
    for size in range(len(content) + 1):
        cut = tmp_path / "cut.journal"
        cut.write_bytes(content[:size])
        whole = max(0, sum(end <= size for end in marks) - 1)
        found, torn = held(cut)
        assert list(found) == names[:whole] and all(found[name] == ROUNDS[name] for name in found)
        assert torn == (size - marks[whole] if size >= len(MAGIC) else 0)
        if not any(abs(size - end) < 2 for end in marks):
            continue
        with Journal.open(cut) as journal:
            journal.append(bytes(KEY), [b"after"])
        with Journal.open(cut) as journal:
            assert len(journal) == whole + 1 and journal.find(bytes(KEY)) == [b"after"] and not journal.torn


def test_zeros_at_the_end_are_a_torn_round(written: Path) -> None:
    """Some file systems grow a file before its data are on disk."""
    size = written.stat().st_size
    os.truncate(written, size + 100)
    assert held(written) == (ROUNDS, 100)
    assert written.stat().st_size == size


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_any_other_damage_is_named_and_nothing_is_changed(written: Path, tmp_path: Path, mask: int) -> None:
    content = written.read_bytes()
    for place in range(len(content)):
        bad = tmp_path / "bad.journal"
        bad.write_bytes(content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :])
        before = bad.read_bytes()
        with pytest.raises(JournalError, match=r"bad\.journal: expected (an undamaged|a) journal, got") as caught:
            held(bad)
        assert bad.read_bytes() == before
        assert ("move it away" if place < len(MAGIC) else "delete the file") in str(caught.value)


def test_a_round_twice_is_damage(written: Path) -> None:
    content, (start, end, *_) = written.read_bytes(), ends(written)
    written.write_bytes(content + content[start:end])
    with pytest.raises(JournalError, match="does not match"):
        held(written)


@pytest.mark.parametrize("content", [b"PK\x03\x04 something else entirely", b"notes"])
def test_another_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(JournalError, match="got another file"):
        Journal.open(path)
    assert path.read_bytes() == content


def test_one_process_has_it(written: Path) -> None:
    code = "import sys; from server.journal import Journal; Journal.open(__import__('pathlib').Path(sys.argv[1]), 0)"
    words = [sys.executable, "-c", code, str(written)]
    root = Path(journal_module.__file__).parents[1]
    with Journal.open(written):
        done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode and "another run writes" in done.stderr
        with pytest.raises(JournalError, match="another run writes"):
            Journal.open(written, patience=0.05)
    assert subprocess.run(words, cwd=root, capture_output=True, check=False).returncode == 0


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="Is a directory"):
        Journal.open(tmp_path)


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """The system refuses to make files larger than this, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


def test_a_round_that_does_not_fit_is_not_there(written: Path) -> None:
    size = written.stat().st_size
    with Journal.open(written) as journal:
        with at_most(size + 40), pytest.raises(JournalError, match="nothing was counted"):
            journal.append(bytes(KEY), [b"x" * 100])
        assert journal.find(bytes(KEY)) is None
    assert held(written) == (ROUNDS, 0) and written.stat().st_size == size


def test_a_round_that_changes_under_the_server_is_noticed(written: Path) -> None:
    last = list(ROUNDS)[-1]
    with Journal.open(written) as journal:
        os.truncate(written, ends(written)[-2] + HEAD.size + KEY + 2)
        with pytest.raises(JournalError, match="expected the round that was there"):
            journal.find(last)
