"""A run on a SuperLink that somebody else keeps: lost and submitted again, given up, or ended with its federation."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from deploy import federation, restarts, submit
from deploy.federation import RUNNING, Child, Plan, Record, State, held
from deploy.flwr_command import COMPLETED, Seen, SuperLink
from deploy.processes import FlowerFailed
from deploy.restarts import EARLY
from deploy.superlink import SUPERLINK
from protocol.study import Cell
from server.outcome_record import DONE, FAILED, log_lines

CELLS = [Cell(10, repetition, 1) for repetition in range(2)]
FIRST, SECOND = ("\n".join(log_lines(cell, [f"cell {at}"])) for at, cell in enumerate(CELLS))
AWAY = FlowerFailed("nobody answers")


@dataclass(frozen=True)
class Scripted(SuperLink):
    """A SuperLink whose runs print what a script says, and then are what it says that they are."""

    name: str = "scripted"
    environment: dict[str, str] = field(default_factory=dict)
    runs: list[tuple[str, str | FlowerFailed]] = field(default_factory=list)
    absent: list[FlowerFailed] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def run(self, app: Path, config: Path, federation: str | None) -> str:
        """Take a run, and call it by its number."""
        number = sum(word.startswith("run") for word in self.told)
        self.told.append(f"run {number}")
        return str(number)

    def follow(self, run: str) -> "subprocess.Popen[str]":
        """Print what the run prints."""
        command = [sys.executable, "-I", "-S", "-c", "import sys; print(sys.argv[1])", self.runs[int(run)][0]]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def status(self, run: str) -> tuple[str, str]:
        """What the run is."""
        said = self.runs[int(run)][1]
        if isinstance(said, FlowerFailed):
            raise said
        return said, ""

    def nodes(self) -> list[Seen]:
        """None, as soon as it is there."""
        if self.absent:
            raise self.absent.pop()
        return []

    def stop(self, run: str) -> None:
        """Note it, and say that there is no such run."""
        self.told.append(f"stop {run}")
        raise FlowerFailed("no such run")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit, "LOOK", 0.0)
    monkeypatch.setattr(submit, "Restarts", partial(restarts.Restarts, sleep=lambda seconds: None))


def followed(
    link: Scripted, starts: Callable[[], int] = lambda: 0, tell: Callable[[str], None] = lambda words: None
) -> list[Cell]:
    """The cells that came."""
    run = submit.Submission(Path("app"), Path("run.toml"), 60.0, lambda: link.told.append("renew"))
    return [cell for cell, _ in submit._followed(link, run, tell, starts)]


def test_what_a_log_says_of_rounds_is_told_once_a_run() -> None:
    """A server that was lost said it too, and the second begins to count anew: both are told, and no client's words."""
    round = "cell-10-{}-1: exchange 1 with 2 nodes: 1 task, 9 bytes to each; messages so far: answered: 2"
    first, second = round.format(0), round.format(1)
    lie = f"WARNING : rejected: {round.format(7)}"
    coloured = f"\x1b[92mINFO \x1b[0m:      {first}"
    lost = f"{coloured}\n{coloured}\n{FIRST}\n{lie}"
    told: list[str] = []
    link = Scripted(runs=[(lost, AWAY), (f"{first}\n{FIRST}\n{second}\n{SECOND}\n{DONE}", COMPLETED)])
    assert followed(link, tell=told.append) == [CELLS[0], *CELLS]
    assert told == [first, first, second]


def test_a_lost_run_is_stopped_and_submitted_again_when_the_superlink_is_back() -> None:
    link = Scripted(runs=[(FIRST, AWAY), (f"{FIRST}\n{SECOND}\n{DONE}", COMPLETED)], absent=[AWAY, AWAY])
    assert followed(link) == [CELLS[0], *CELLS]
    assert link.told == ["run 0", "renew", "stop 0", "run 1"]


def test_a_superlink_that_goes_at_the_very_end_is_asked_again() -> None:
    link = Scripted(runs=[(f"{FIRST}\n{DONE}", AWAY), (DONE, COMPLETED)])
    assert followed(link) == [CELLS[0]]


def test_a_superlink_that_was_started_again_is_not_waited_for() -> None:
    """Its database calls the dead run running."""
    counts = iter([1, 2, 2])
    link = Scripted(runs=[("", "running"), (f"{FIRST}\n{DONE}", COMPLETED)])
    assert followed(link, lambda: next(counts, 2)) == [CELLS[0]]
    assert link.told == ["run 0", "renew", "stop 0", "run 1"]


def test_a_run_that_keeps_being_lost_is_given_up() -> None:
    link = Scripted(runs=[(FIRST, AWAY)] * EARLY)
    with pytest.raises(FlowerFailed, match=f"nobody answers, {EARLY} times"):
        followed(link)


def test_what_failed_is_not_tried_again() -> None:
    link = Scripted(runs=[(f"{FAILED} the server's reason", "finished:failed")])
    with pytest.raises(FlowerFailed, match="the server's reason"):
        followed(link)
    assert link.told == ["run 0", "stop 0"]


def test_a_federation_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    state = State(tmp_path / "state").make()
    record = Record(
        Plan(str(state.folder)), 1, "", "1", "/home-of-one", "127.0.0.1:1", RUNNING, "", {SUPERLINK: Child(7, 3)}
    )
    federation.write(record)
    with held(state):
        assert submit._starts(record) == 3
        with pytest.raises(FlowerFailed, match="was ended, and another one started"):
            submit._starts(replace(record, home="/home-of-another"))
    with pytest.raises(FlowerFailed, match="expected a federation that runs"):
        submit._starts(record)
    with pytest.raises(FlowerFailed, match="expected a federation that runs"):
        followed(Scripted(), partial(submit._starts, record))
