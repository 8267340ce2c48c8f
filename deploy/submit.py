"""Submits one run and follows it: on a SuperLink of our own with its nodes, or on a connection of the user's."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deploy.federation import Record, State
from deploy.flwr_command import SuperLink, private_connection
from deploy.look import running
from deploy.mending import Mending
from deploy.nodes import Nodes
from deploy.processes import QUIET, FlowerFailed, Processes
from deploy.restarts import Lost, Restarts, SuperLinkLost
from deploy.superlink import SUPERLINK, Serving, start_superlink
from deploy.watch import VERDICTS, Records, follow_folder, follow_log
from server.delivery import ToFolder

OUTCOMES = "outcomes"  # folder in a private home, where the server leaves what comes of a run
MARGIN = 60.0  # seconds beyond twice the deadline, after which a server that says nothing is given up
COMING_BACK, LOOK = 180.0, 2.0  # seconds that a SuperLink of somebody else may be away, and between two looks for it


@dataclass(frozen=True)
class Submission:
    """An app in its folder, a run's configuration as a file, and the seconds that a cell may take.

    `renew` writes that file anew before each submission but the first: what is finished is not asked again.
    """

    app: Path
    config: Path
    deadline: float
    renew: Callable[[], None] = lambda: None

    @property
    def patience(self) -> float:
        """Seconds without a word from the server after which the run is given up."""
        return 2 * self.deadline + MARGIN


def on_our_superlink(
    processes: Processes,
    run: Submission,
    nodes: Callable[[str], Nodes | None],
    federation: str | None = None,
    **variables: str,
) -> Generator[Records]:
    """Start a SuperLink, and the nodes for its address (None: a simulation), submit the run, and follow its folder.

    What ends before its time is started again: a node by itself, the server's app with a new run, and all of them where
    the SuperLink ends, which keeps its runs in memory. `variables` are the server's. Raises FlowerFailed.
    """
    outcomes = _outcomes(processes)
    restarts, done = Restarts(), False
    while not done:
        begin = time.monotonic()
        try:
            serving = Serving(simulation=federation is not None)
            link, address = start_superlink(processes, serving, HALFTRUTH_OUTCOMES=str(outcomes), **variables)
            mending = Mending(processes, link, nodes(address), restarts)
            while not done:
                done = yield from _one_run(processes, run, mending, federation, outcomes)
        except SuperLinkLost as lost:
            restarts.wait(SUPERLINK, str(lost), begin)
            processes.end_children()


def _one_run(
    processes: Processes, run: Submission, mending: Mending, federation: str | None, outcomes: Path
) -> Generator[Records, None, bool]:
    """Submit a run and follow it; whether it came to its end. Raises SuperLinkLost where the SuperLink did instead."""
    for name in VERDICTS:
        (outcomes / name).unlink(missing_ok=True)
    link, begin, run_id = mending.link, time.monotonic(), None
    try:
        run_id = link.run(run.app, run.config, federation)
        if mending.nodes is not None:
            mending.nodes.wait()  # they start while the run is submitted
        yield from follow_folder(outcomes, link, run_id, processes.home, run.patience, mending.check)
        return True
    except SuperLinkLost:
        raise
    except FlowerFailed as error:
        mending.check()  # what failed for want of a SuperLink that ended, did not fail
        if not isinstance(error, Lost):
            raise
        mending.restarts.wait("server", str(error), begin)
        with suppress(FlowerFailed):
            link.stop(str(run_id))
        return False


def on_a_connection(processes: Processes, run: Submission, name: str) -> Generator[Records]:
    """Submit the run to the SuperLink that the user's own Flower configuration names, and follow its log.

    The run is stopped where nobody follows it any more. Raises FlowerFailed.
    """
    mark = {"HALFTRUTH_HOME": str(processes.home)}  # by which our children are found and ended
    yield from _followed(SuperLink(name, {**os.environ, **QUIET, **mark}), run, _teller(processes))


def on_a_federation(processes: Processes, run: Submission, record: Record) -> Generator[Records]:
    """Submit the run to a federation that runs on this machine, and follow its log; see `on_a_connection`.

    Its keeper starts the SuperLink again where that ends, and the run is submitted again; a server of its own has the
    rounds in a journal. Raises FlowerFailed, also where the federation itself has ended.
    """
    link = private_connection(processes.home, processes.environment, record.address, record.authority)
    yield from _followed(link, run, _teller(processes), partial(_starts, record))


def _starts(record: Record) -> int:
    """How often the SuperLink of a federation was started. Raises FlowerFailed where the federation has ended."""
    now = running(State(Path(record.plan.state)))
    if now.home != record.home:
        raise FlowerFailed(f"the federation in {record.plan.state} was ended, and another one started")
    return now.children[SUPERLINK].starts


def _outcomes(processes: Processes) -> Path:
    """The folder of what comes of a run, made."""
    folder = processes.home / OUTCOMES
    folder.mkdir()
    return folder


def _teller(processes: Processes) -> Callable[[str], None]:
    """Keeps what a log says of rounds as a server of our own would: whoever watches sees no difference."""
    return ToFolder(_outcomes(processes)).heard


def _followed(
    link: SuperLink, run: Submission, tell: Callable[[str], None], starts: Callable[[], int] = lambda: 0
) -> Generator[Records]:
    """The same on a SuperLink that somebody else keeps: where it lost the run, another one is submitted.

    `tell` gets what the server says of each round; `starts`: how often the SuperLink was started, where that is known.
    """
    restarts, seen = Restarts(), starts()
    run_id = link.run(run.app, run.config, None)
    while True:
        begin = time.monotonic()
        try:
            yield from follow_log(link, run_id, run.patience, partial(_check_same, starts, seen), tell)
            return
        except Lost as lost:
            restarts.wait("run", str(lost), begin)
            run.renew()
            seen, run_id = _again(link, run, run_id, starts)
        except BaseException:  # interrupted, given up, or failed: then there is nothing to stop
            with suppress(FlowerFailed):
                link.stop(run_id)
            raise


def _check_same(starts: Callable[[], int], seen: int) -> None:
    """Raise SuperLinkLost where the SuperLink is another one: what ran there is dead, whatever Flower calls it."""
    if starts() != seen:
        raise SuperLinkLost("the SuperLink ended, and runs again")


def _again(link: SuperLink, run: Submission, lost: str, starts: Callable[[], int]) -> tuple[int, str]:
    """Submit a run in place of one that was lost, as soon as the SuperLink answers; how often that was started, and
    the run's id. Raises FlowerFailed.
    """
    deadline = time.monotonic() + COMING_BACK
    while True:
        seen = starts()
        try:
            link.nodes()  # it is there
            with suppress(FlowerFailed):  # it may have forgotten the run, or ended it
                link.stop(lost)
            return seen, link.run(run.app, run.config, None)
        except FlowerFailed:
            if time.monotonic() > deadline:
                raise
        time.sleep(LOOK)
