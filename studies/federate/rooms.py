"""Where a federated task is asked: nodes called in this process, started here, or running somewhere else."""

import os
import shutil
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path

from client.node_file import build, read_node
from deploy.nodes import start_node_files
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.stage import stage, toml
from deploy.submit import Submission, on_a_connection, on_a_federation, on_our_superlink
from deploy.watch import Records
from protocol import strict
from protocol.counting import counted
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.runconfig import write
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Study, cells
from protocol.trust import Trust
from server.curator import Curator, LiveCurator, SimulatedCurator
from server.evidence import Server
from server.one_task import play_task
from server.outcome import Outcome
from server.outcome_record import decode
from server.release import ReleaseLedger
from server.resume import JOURNAL
from server.rounds import play
from server.shuffler_at import through_shuffler
from server.transcript import TRANSCRIPT, Transcript
from studies.federate.caps import check_caps
from studies.fit.state import CURATOR
from studies.flower.federation import join
from studies.flower.patience import Patience
from studies.flower.run import kept_rounds
from studies.folder import Folder
from studies.holder_file import new_ledger
from studies.in_process import carried
from studies.terminal import printable

NODE_FILE, LOGS = "node.toml", "logs"


@dataclass(frozen=True)
class Where:
    """`nodes`: a folder of node folders, whose nodes are called in this process or started as processes.
    `superlink`: a connection to nodes that are running; `federation`: the state folder of one that runs here, "" the
    user's own. Two of the three are None. `patience`: how long nodes have, and whether all of them have to answer.
    `attempt`: which release of a curator is asked for; nodes charge each, and allow more than the first if they say so.
    `transcript`: a folder in which a server that is started here keeps what it asks and receives. `out`: one in which
    it is seen how far it is: see `studies.federate.progress`.
    """

    nodes: Path | None
    superlink: str | None
    in_process: bool
    patience: Patience
    federation: str | None = None
    attempt: int = 0
    transcript: Path | None = None
    out: Path | None = None


@dataclass(frozen=True)
class Question:
    """What nodes are asked: a study of one arm and one cell, its claim for a `unit`, and of labels its one `task`.

    `simulated`: a curator's coins are those of the study's seed, and protect nobody.
    """

    study: Study
    unit: Unit
    task: Task | None = None
    simulated: bool = False

    @property
    def epsilon(self) -> Decimal | None:
        """The level of the claim; None makes none."""
        return next(iter(self.study.grid.epsilon), None)

    @property
    def central(self) -> bool:
        """Whether a curator adds noise."""
        return self.study.arms[0].trust is Trust.CENTRAL

    @property
    def released(self) -> bool:
        """Whether its noise is committed in a ledger."""
        return self.central and not self.simulated


def ask(question: Question, count: int, where: Where, state: Path) -> Outcome:
    """The outcome of a question, answered by `count` nodes; what was started has ended when this returns.

    A curator that works here keeps its ledger in the folder `state`. Guarantee: that of the outcome's claim.
    Raises StudyError for other nodes than these, FlowerFailed, and in-process what nodes, server and ledgers raise.
    """
    files = [] if where.nodes is None else node_files(where.nodes, count)
    check_caps(question.unit, question.epsilon, files)
    _tell_new_ledgers(files)
    if where.nodes is not None and question.released:
        strict.make_folder(state, "--state", 0o700)
    if where.in_process:
        return _in_process(question, files, state, where)
    return _over_flower(question, count, where, files, state)


def _over_flower(question: Question, count: int, where: Where, files: Sequence[Path], state: Path) -> Outcome:
    logs, curator = (where.nodes or state) / LOGS, "ledger" if question.released else "simulated"
    shutil.rmtree(logs, ignore_errors=True)
    how = {**where.patience.told(), "curator": curator, "attempt": where.attempt}
    told = write(question.study, task=question.task, clients=count, **how)
    with private_home(logs) as processes:
        config = processes.home / "run.toml"
        config.write_text(toml(told), encoding="utf-8")
        run = Submission(stage(processes.home / "app"), config, where.patience.deadline)
        seen = nullcontext() if where.out is None else kept_rounds(processes, Folder(where.out))
        with seen, closing(_records(processes, run, where, files, state, count)) as found:
            lines = [line for _, lines in found for line in lines]
    if len(lines) != 1:
        raise FlowerFailed(f"expected one outcome of the server, got {len(lines)}")
    shutil.rmtree(logs, ignore_errors=True)
    return decode(lines[0], question.study)


def node_files(folder: Path, count: int) -> list[Path]:
    """The node files of a split: folder/node-0/node.toml and so on. Raises StudyError unless there are `count`."""
    files = [folder / f"node-{index}" / NODE_FILE for index in range(count)]
    there = list(folder.glob(f"node-*/{NODE_FILE}"))
    odd = {"without": set(files) - set(there), "with": set(there) - set(files)}
    if any(odd.values()):
        named = [f"{words} {', '.join(sorted(p.parent.name for p in paths))}" for words, paths in odd.items() if paths]
        raise StudyError(
            f"--nodes: expected the {counted(count, 'node')} of the split in {folder}, found {len(there)}: "
            f"{', '.join(named)}"
        )
    return [file.resolve() for file in files]


def _tell_new_ledgers(files: Sequence[Path]) -> None:
    """Here nodes start at every run: a ledger that got lost since the last one would be made anew in silence."""
    for ledger in (read_node(file).ledger for file in files):
        if ledger is not None and (note := new_ledger(ledger)):
            print(printable(note), file=sys.stderr)


def _records(
    processes: Processes, run: Submission, where: Where, files: Sequence[Path], state: Path, count: int
) -> Generator[Records]:
    if where.superlink is not None:
        return on_a_connection(processes, run, where.superlink)
    if where.federation is not None:
        record, _ = join(where.federation, count)
        return on_a_federation(processes, run, record)
    nodes = partial(start_node_files, processes, files)
    kept = {"HALFTRUTH_STATE": str(state.resolve()), JOURNAL: str(processes.home / "journal")}
    kept |= {TRANSCRIPT: str(where.transcript)} if where.transcript else {}
    return on_our_superlink(processes, run, nodes, **kept)


def _in_process(question: Question, files: Sequence[Path], state: Path, where: Where) -> Outcome:
    study, nodes = question.study, [build(read_node(file), {}) for file in files]

    def asked(raws: list[bytes]) -> list[bytes]:
        return list(carried(raws, nodes))

    kept = Transcript(where.transcript) if where.transcript else nullcontext()
    with _curator(question, state) as curator, kept as transcript:
        told = transcript.kept(asked) if transcript else asked
        ask = through_shuffler(lambda raws: list(told(raws)), os.environ)
        server = Server(FeatureStore(None), study.seed, curator, where.attempt)
        if question.task is None:
            (outcome,) = play(study, cells(study)[0], ask, server)
        else:
            (outcome,) = play_task(study, question.task, ask, server)
    return outcome


@contextmanager
def _curator(question: Question, state: Path) -> Iterator[Curator | None]:
    if not question.central:
        yield None
    elif question.simulated:
        yield SimulatedCurator(question.study.seed)
    else:
        with ReleaseLedger(state / CURATOR) as releases:
            yield LiveCurator(releases)
