"""Where a federated task is asked: nodes called in this process, started here, or running somewhere else."""

import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from client.labeler import answer
from client.node_file import build, read_node
from deploy.nodes import start_node_files
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.stage import stage, toml
from deploy.submit import Submission, on_a_connection, on_our_superlink
from deploy.watch import Records
from protocol import strict
from protocol.counting import counted
from protocol.messages import Task
from protocol.runconfig import write
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Study
from protocol.trust import Trust
from server.curator import Curator, LiveCurator
from server.evidence import Server
from server.one_task import play_task
from server.outcome import Outcome
from server.outcome_record import decode
from server.release import ReleaseLedger
from studies.federate.caps import check_caps
from studies.fit.state import CURATOR
from studies.holder_file import new_ledger
from studies.terminal import printable

NODE_FILE, LOGS = "node.toml", "logs"


@dataclass(frozen=True)
class Where:
    """`nodes`: a folder of node folders, whose nodes are called in this process or started as processes.
    `superlink`: a connection to nodes that are running. One of the two is None. `deadline`: seconds that nodes have.
    """

    nodes: Path | None
    superlink: str | None
    in_process: bool
    deadline: float


def ask(study: Study, task: Task, count: int, where: Where, state: Path) -> Outcome:
    """The outcome of a study's one task, answered by `count` nodes; what was started has ended when this returns.

    A curator that works here keeps its ledger in the folder `state`. Guarantee: that of the outcome's claim.
    Raises StudyError for other nodes than these, FlowerFailed, and in-process what nodes, server and ledgers raise.
    """
    files = [] if where.nodes is None else node_files(where.nodes, count)
    check_caps(task, files)
    _tell_new_ledgers(files)
    if where.nodes is not None and task.trust is Trust.CENTRAL:
        strict.make_folder(state, "--state", 0o700)
    if where.in_process:
        return _in_process(study, task, files, state)
    logs = (where.nodes or state) / LOGS
    shutil.rmtree(logs, ignore_errors=True)
    curator = "ledger" if task.trust is Trust.CENTRAL else "simulated"
    told = write(study, task=task, clients=count, deadline=where.deadline, curator=curator)
    with private_home(logs) as processes:
        config = processes.home / "run.toml"
        config.write_text(toml(told), encoding="utf-8")
        run = Submission(stage(processes.home / "app"), config, where.deadline)
        with closing(_records(processes, run, where, files, state)) as found:
            lines = [line for _, lines in found for line in lines]
    if len(lines) != 1:
        raise FlowerFailed(f"expected one outcome of the server, got {len(lines)}")
    shutil.rmtree(logs, ignore_errors=True)
    return decode(lines[0], study)


def node_files(folder: Path, count: int) -> list[Path]:
    """The node files of a split: folder/node-0/node.toml and so on. Raises StudyError unless there are `count`."""
    files = [folder / f"node-{index}" / NODE_FILE for index in range(count)]
    there = list(folder.glob(f"node-*/{NODE_FILE}"))
    if set(files) != set(there):
        raise StudyError(f"--nodes: expected the {counted(count, 'node')} of the split in {folder}, found {len(there)}")
    return [file.resolve() for file in files]


def _tell_new_ledgers(files: Sequence[Path]) -> None:
    """Here nodes start at every run: a ledger that got lost since the last one would be made anew in silence."""
    for ledger in (read_node(file).ledger for file in files):
        if ledger is not None and (note := new_ledger(ledger)):
            print(printable(note), file=sys.stderr)


def _records(
    processes: Processes, run: Submission, where: Where, files: Sequence[Path], state: Path
) -> Generator[Records]:
    if where.superlink is not None:
        return on_a_connection(processes, run, where.superlink)
    nodes = partial(start_node_files, processes, files)
    return on_our_superlink(processes, run, nodes, HALFTRUTH_STATE=str(state.resolve()))


def _in_process(study: Study, task: Task, files: Sequence[Path], state: Path) -> Outcome:
    nodes = [build(read_node(file), {}) for file in files]
    with _curator(task, state) as curator:
        server = Server(FeatureStore(None), study.seed, curator)
        (outcome,) = play_task(study, task, lambda raws: [answer(raw, node) for node in nodes for raw in raws], server)
    return outcome


@contextmanager
def _curator(task: Task, state: Path) -> Iterator[Curator | None]:
    if task.trust is not Trust.CENTRAL:
        yield None
        return
    with ReleaseLedger(state / CURATOR) as releases:
        yield LiveCurator(releases)
