"""What a server's process leaves: whole files, and bounded lines."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.runconfig import read
from protocol.study import Cell
from server.delivery import ToFolder, ToLog, one_line
from server.outcome import trivial
from server.outcome_record import LONGEST_LINE, Lines, cell_name, decode

STUDY = read({}).study
CELL = Cell(1000, 2, 2)
OUTCOMES = [trivial(STUDY.arms[0], 1000, repetition, STUDY.problem) for repetition in (2, 3)]


def test_a_cell_is_in_the_folder_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ToFolder(tmp_path)
    assert not folder.has(CELL)
    monkeypatch.setattr(os, "replace", lambda old, new: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        folder.deliver(STUDY, CELL, OUTCOMES)
    assert not folder.has(CELL)
    monkeypatch.undo()
    folder.deliver(STUDY, CELL, OUTCOMES)
    assert folder.has(CELL) and not folder.has(replace(CELL, repetitions=1))
    lines = (tmp_path / f"{cell_name(CELL)}.jsonl").read_text("utf-8").splitlines()
    assert [decode(line, STUDY).repetition for line in lines] == [2, 3]
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == [f"{cell_name(CELL)}.jsonl"]


def test_a_folder_and_a_log_tell_of_every_round(tmp_path: Path) -> None:
    folder, lines = ToFolder(tmp_path), list[str]()
    for words in ("first round", "second round"):
        folder.heard(words)
        ToLog(lines.append).heard(words)
    told = [line.split(" ", 1) for line in (tmp_path / "rounds.txt").read_text("utf-8").splitlines()]
    assert [words for _, words in told] == lines == ["first round", "second round"]
    assert float(told[0][0]) <= float(told[1][0])


def test_a_log_holds_exact_lines_and_readable_ones() -> None:
    lines: list[str] = []
    log = ToLog(lines.append)
    log.deliver(STUDY, CELL, OUTCOMES)
    log.done()
    reader = Lines()
    ((cell, records),) = [found for found in map(reader.feed, lines) if found]
    assert cell == CELL and len(records) == 2 and reader.done and not log.has(CELL)
    assert lines[-2] == "n = 1000, none/none/zero: theta =" + 5 * " +0.000" + "; no claim; coins: none"


@pytest.mark.parametrize("words", ["a\nhalftruth-done", "a\r\u2028halftruth-done", "\x0bhalftruth-done", "x" * 5000])
def test_a_reason_is_one_line(words: str) -> None:
    lines: list[str] = []
    ToLog(lines.append).failed(one_line(words))
    (line,) = lines
    assert len(line) <= LONGEST_LINE and len(line.splitlines()) == 1
    reader = Lines()
    reader.feed(line)
    assert reader.failed and not reader.done
