"""Commands whose reader goes: `halftruth … | head` says nothing on the error stream, and does its work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from studies import cli

ROOT = Path(__file__).resolve().parents[2]


def unread(*words: str, both: bool = False) -> tuple[int, str]:
    """Exit code and error stream of a command that prints into a pipe that nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "studies", *words],
            stdout=write,
            stderr=write if both else subprocess.PIPE,
            cwd=ROOT,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    return done.returncode, done.stderr or ""


def test_printing_what_nobody_reads_stops_no_work() -> None:
    """rich alone would end the process with exit code 1 at its first table: before files of a report are written."""
    assert unread("plan", "--error", "0.1", "--epsilon", "1", "--trust", "local") == (0, "")
    assert unread("--help") == (0, "")


def test_messages_that_nobody_reads() -> None:
    assert unread("report", "no-such-folder", both=True)[0] == 141


def test_another_broken_pipe_is_a_failure(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def broken(_: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("studies.doctor.main", broken)
    assert cli.main(["doctor"]) == 1
    assert "Broken pipe" in capfd.readouterr().err
