"""Follows a run to its end: cells as they are finished, and the reason where it fails. Always in bounded time."""

import queue
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from deploy.ending import PROC, carriers
from deploy.flwr_command import COMPLETED, SuperLink
from deploy.processes import FlowerFailed
from deploy.restarts import Lost
from protocol.study import Cell
from server.delivery import DONE_FILE, FAILED_FILE, ROUNDS_FILE
from server.outcome_record import Lines, parse_cell
from server.telling import told_in

Records = tuple[Cell, list[str]]
VERDICTS = (DONE_FILE, FAILED_FILE)  # of the server, the last that it says
STOPPED = "finished:stopped"

POLL = 0.1
GLANCE = 1.0  # seconds between looks for the server's process
QUESTION = 30.0  # seconds between questions for the status, each of which starts a program
LEAVING = 10.0  # seconds that the server's process may take to end
SETTLING = 60.0  # seconds a run may take to end after its last word


def follow_folder(
    outcomes: Path, link: SuperLink, run: str, home: Path, patience: float, mend: Callable[[], None]
) -> Generator[Records]:
    """Cells that the server writes to a folder, until it says that it is done; `mend` looks after processes meanwhile.

    Raises FlowerFailed with the server's reason where it says otherwise, or nothing for `patience` seconds; Lost where
    its process ended without a word, or Flower calls the run finished too early; and what `mend` raises.
    """
    seen: set[str] = set()
    clock, rounds, said = _Clock(patience), outcomes / ROUNDS_FILE, 0
    over = False
    while not over:
        over = _said_last(outcomes) or clock.finished(link, run, home)
        for path in sorted(outcomes.glob("cell-*.jsonl")):
            if path.name not in seen:
                seen.add(path.name)
                yield parse_cell(path.stem), path.read_text("utf-8").splitlines()
                clock.heard()
        if rounds.exists() and (size := rounds.stat().st_size) > said:
            said = size
            clock.heard()
        mend()
        if not over:
            if clock.gone and not _said_last(outcomes):  # what a process says it says before it is gone
                raise Lost("the server's app ended without a word")
            clock.check()
            time.sleep(POLL)
    failed = outcomes / FAILED_FILE
    if failed.exists():
        raise FlowerFailed(failed.read_text("utf-8").strip())
    deadline = time.monotonic() + LEAVING
    while _server_runs(home) and time.monotonic() < deadline:
        time.sleep(POLL)
    _verdict(link, run, (outcomes / DONE_FILE).exists())


def _said_last(outcomes: Path) -> bool:
    return any((outcomes / name).exists() for name in VERDICTS)


def follow_log(
    link: SuperLink, run: str, patience: float, check: Callable[[], None], tell: Callable[[str], None]
) -> Generator[Records]:
    """Cells that the server prints to its log, of a SuperLink that is not ours, until it says that it is done.

    `tell` gets what it says of each round, once, though the log is read again from its beginning where it broke off.
    Raises FlowerFailed and Lost like `follow_folder`, Lost where the SuperLink is gone, and what `check` raises.
    """
    lines, clock, told = Lines(), _Clock(patience), set[str]()
    while True:
        for line in _printed(link, run, clock, check):
            words = told_in(line)
            if words is not None and words not in told:
                told.add(words)
                tell(words)
            found = lines.feed(line)
            clock.heard()
            if found is not None:
                yield found
        if lines.done or lines.failed or _status(link, run)[0].startswith("finished:"):
            if lines.failed:
                raise FlowerFailed(lines.failed)
            _verdict(link, run, lines.done)
            return
        clock.check()
        check()


def _status(link: SuperLink, run: str) -> tuple[str, str]:
    """What Flower calls the run, and its details, asked when its log broke off. Raises Lost where nobody answers."""
    try:
        return link.status(run)
    except FlowerFailed as error:
        raise Lost(str(error)) from None


def _printed(link: SuperLink, run: str, clock: "_Clock", check: Callable[[], None]) -> Iterator[str]:
    """Lines of the log, until Flower ends the stream."""
    child = link.follow(run)
    arrived: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(child, arrived), daemon=True).start()
    try:
        while True:
            try:
                line = arrived.get(timeout=GLANCE)
            except queue.Empty:
                clock.check()
                check()
                continue
            if line is None:
                return
            yield line
    finally:
        child.kill()
        child.wait()


def _read(child: "subprocess.Popen[str]", arrived: "queue.Queue[str | None]") -> None:
    assert child.stdout is not None
    with child.stdout:
        for line in child.stdout:
            arrived.put(line)
    arrived.put(None)


def _verdict(link: SuperLink, run: str, done: bool) -> None:
    """A run is well only if the server said so and Flower calls it completed. Raises FlowerFailed, or Lost."""
    deadline = time.monotonic() + SETTLING
    status, details = _status(link, run)
    while not status.startswith("finished:") and time.monotonic() < deadline:
        time.sleep(POLL)
        status, details = _status(link, run)
    if status != COMPLETED or not done:
        kind = FlowerFailed if status == STOPPED else Lost  # whoever stops a run wants it to end
        raise kind(f"expected Flower to call the run {COMPLETED}, got {status}: {details or 'no details'}")


class _Clock:
    """When to ask for the status, and when to give up."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._last = self._glanced = self._asked = time.monotonic()
        self._server_seen = self.gone = False

    def heard(self) -> None:
        """Something came: patience begins anew."""
        self._last = time.monotonic()

    def check(self) -> None:
        """Raise FlowerFailed where nothing came for too long."""
        if time.monotonic() - self._last > self._patience:
            raise FlowerFailed(
                f"nothing was heard from the server for {self._patience:g} seconds, twice the --deadline and a minute"
            )

    def finished(self, link: SuperLink, run: str, home: Path) -> bool:
        """Whether Flower calls the run finished: asked when the server's process has gone, and now and then.

        `gone` is then whether it has gone.
        """
        now = time.monotonic()
        if now - self._glanced < GLANCE:
            return False
        self._glanced = now
        there = _server_runs(home)
        self.gone = self._server_seen and not there
        self._server_seen = there
        if not self.gone and now - self._asked < QUESTION:
            return False
        self._asked = now
        return link.status(run)[0].startswith("finished:")


def _server_runs(home: Path) -> bool:
    """Whether a process that runs the server's app is there."""
    for process in carriers(home):
        try:
            words = (PROC / str(process) / "cmdline").read_bytes()
        except OSError:
            continue
        if b"flwr-serverapp" in words or b"flwr-simulation" in words:
            return True
    return False
