"""Submits one run and follows it: on a SuperLink of our own with its nodes, or on a connection of the user's."""

import os
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.flwr_command import SuperLink, private_connection
from deploy.nodes import Nodes
from deploy.processes import QUIET, FlowerFailed, Processes
from deploy.superlink import start_superlink
from deploy.watch import Records, follow_folder, follow_log

MARGIN = 60.0  # seconds beyond twice the deadline, after which a server that says nothing is given up


@dataclass(frozen=True)
class Submission:
    """An app in its folder, a run's configuration as a file, and the seconds that a cell may take."""

    app: Path
    config: Path
    deadline: float

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

    `variables` are the server's. Raises FlowerFailed.
    """
    outcomes = processes.home / "outcomes"
    outcomes.mkdir()
    link, address = start_superlink(processes, outcomes, simulation=federation is not None, **variables)
    started = nodes(address)
    run_id = link.run(run.app, run.config, federation)
    if started is not None:
        started.wait()  # they start while the run is submitted
    yield from follow_folder(outcomes, link, run_id, processes, run.patience)


def on_a_connection(processes: Processes, run: Submission, name: str) -> Generator[Records]:
    """Submit the run to the SuperLink that the user's own Flower configuration names, and follow its log.

    The run is stopped where nobody follows it any more. Raises FlowerFailed.
    """
    mark = {"HALFTRUTH_HOME": str(processes.home)}  # by which our children are found and ended
    yield from _followed(SuperLink(name, {**os.environ, **QUIET, **mark}), run)


def on_a_federation(processes: Processes, run: Submission, address: str, authority: Path | None) -> Generator[Records]:
    """Submit the run to a SuperLink of this machine by its address, and follow its log; see `on_a_connection`.

    Raises FlowerFailed.
    """
    yield from _followed(private_connection(processes.home, processes.environment, address, authority), run)


def _followed(link: SuperLink, run: Submission) -> Generator[Records]:
    run_id = link.run(run.app, run.config, None)
    try:
        yield from follow_log(link, run_id, run.patience)
    except BaseException:  # interrupted, given up, or failed: then there is nothing to stop
        with suppress(FlowerFailed):
            link.stop(run_id)
        raise
