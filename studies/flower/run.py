"""A study over Flower: the same folder and the same numbers as in-process, from other processes."""

import json
import shutil
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module, metadata
from pathlib import Path

import pyarrow as pa

from deploy.federation import Record
from deploy.nodes import start_nodes
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.stage import stage, toml
from deploy.submit import OUTCOMES, Submission, on_a_connection, on_a_federation, on_our_superlink
from deploy.watch import Records
from protocol.runconfig import LET_THROUGH, write
from protocol.strict import StudyError
from protocol.study import Cell
from server.delivery import ROUNDS_FILE
from server.outcome_record import decode
from server.resume import JOURNAL
from server.transcript import TRANSCRIPT
from studies import results
from studies.choice_score import scorer as scorer_of
from studies.flower.patience import Patience
from studies.folder import Folder, merge, prepare
from studies.load import Loaded
from studies.parts import describe_cell, part_path
from studies.run import Progress, check_clients, play_missing
from studies.score import Scorer
from studies.unit import UnitError

RUNTIMES = ("simulation", "deployment")


@dataclass(frozen=True)
class Flower:
    """Where a study runs: `on` "simulation" or "deployment", with `clients` clients, on our own SuperLink, on a
    connection `superlink` of the user's Flower configuration, or on a `federation` that runs on this machine.
    `patience`: how long clients are waited for, and whether all of them have to answer. `transcript`: a folder in which
    our own server keeps what it asks and receives.
    """

    on: str
    clients: int = 1
    superlink: str | None = None
    patience: Patience = field(default_factory=Patience)
    federation: Record | None = None
    transcript: Path | None = None


def run(
    loaded: Loaded,
    out: Path,
    flower: Flower,
    *,
    resume: bool = False,
    overwrite: bool = False,
    block: int | None = None,
    progress: Progress = lambda done, total: None,
) -> pa.Table:
    """Run a study into the folder `out` and return the table of its results.parquet: that of the in-process runtime,
    apart from the column `runtime`. Everything that was started has ended when this returns or raises.

    Raises StudyError for a folder that cannot be used, FlowerFailed or UnitError for a run that failed, Interrupted
    on Ctrl-C, SIGTERM or SIGHUP; finished cells stay.
    """
    if flower.on not in RUNTIMES:
        raise StudyError(f"--on: expected one of {RUNTIMES}, got {flower.on!r}")
    check_clients(loaded, flower.clients)
    facts = {"runtime": flower.on, "clients": flower.clients, "flwr": installed("flwr"), **_of_mode(flower.patience)}
    if flower.on == "simulation" and flower.superlink is None:
        installed("ray")
    folder = Folder(out)
    units = prepare(folder, loaded, block, resume, overwrite)

    def play(folder: Folder, loaded: Loaded, missing: Sequence[Cell]) -> Generator[tuple[Cell, float]]:
        return _play(flower, folder, loaded, units, missing)

    play_missing(folder, loaded, units, play, facts, progress)
    return merge(folder, loaded, units)


def _of_mode(patience: Patience) -> dict[str, str]:
    """What a reader of study.json has to know of a session in which not everybody had to answer."""
    return {} if patience.mode == "strict" else {"mode": patience.mode, "quorum": patience.quorum or "1"}


def installed(package: str) -> str:
    """The version of a package that Flower runs need. Raises FlowerFailed where it cannot be imported."""
    try:
        import_module(package)
        return metadata.version(package)
    except (ImportError, metadata.PackageNotFoundError) as error:
        extra = "halftruth[simulation]" if package == "ray" else "halftruth"
        raise FlowerFailed(f"expected {package}, which is not here ({error}): pip install '{extra}'") from None


def _play(
    flower: Flower, folder: Folder, loaded: Loaded, units: Sequence[Cell], missing: Sequence[Cell]
) -> Generator[tuple[Cell, float]]:
    """Score and keep cells as the server finishes them; logs stay only where the run fails or is interrupted."""
    logs, scorer, left = folder.logs, scorer_of(loaded.study, loaded.theta), set(missing)
    shutil.rmtree(logs, ignore_errors=True)
    with private_home(logs) as processes:
        config = processes.home / "run.toml"

        def renew() -> None:
            finished = sum(1 << at for at, cell in enumerate(units) if cell not in left)
            _write_config(config, flower, folder, loaded, finished)

        renew()
        submission = Submission(stage(processes.home / "app"), config, flower.patience.deadline, renew)
        records = _records(flower, processes, folder, loaded, submission)
        before = time.perf_counter()
        with kept_rounds(processes, folder), closing(records):
            for cell, lines in records:
                if cell in left:
                    _keep(flower, folder, loaded, scorer, cell, lines)
                    left.remove(cell)
                    before, seconds = time.perf_counter(), time.perf_counter() - before
                    yield cell, seconds
    if left:
        raise FlowerFailed(f"the server said it was done without {describe_cell(min(left, key=units.index))}")
    shutil.rmtree(logs, ignore_errors=True)


@contextmanager
def kept_rounds(processes: Processes, folder: Folder) -> Iterator[None]:
    """What the server says of its rounds is seen from the folder meanwhile, and stays there, however the run ends."""
    folder.rounds_now.unlink(missing_ok=True)  # of a process that was killed
    folder.rounds_now.symlink_to(processes.home / OUTCOMES / ROUNDS_FILE)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):  # the server is not ours, or never came so far
            said = (processes.home / OUTCOMES / ROUNDS_FILE).read_text("utf-8")
            with folder.rounds.open("a", encoding="utf-8") as file:
                file.write(said)
        folder.rounds_now.unlink(missing_ok=True)


def _records(
    flower: Flower, processes: Processes, folder: Folder, loaded: Loaded, run: Submission
) -> Generator[Records]:
    if flower.superlink is not None:
        return on_a_connection(processes, run, flower.superlink)
    if flower.federation is not None:
        return on_a_federation(processes, run, flower.federation)
    kept = {JOURNAL: str(folder.journal.resolve())}
    kept |= {TRANSCRIPT: str(flower.transcript)} if flower.transcript else {}
    if flower.on == "simulation":
        federation = f"num-supernodes={flower.clients} client-resources-num-cpus=1"
        return on_our_superlink(processes, run, lambda address: None, federation, **kept)
    nodes = partial(start_nodes, processes, loaded.study, flower.clients)
    return on_our_superlink(processes, run, nodes, **kept)


def _write_config(path: Path, flower: Flower, folder: Folder, loaded: Loaded, finished: int) -> None:
    """The run's configuration as a file: a study is too long for a command line."""
    block = folder.record()["block"] or 0
    how = flower.patience.told()
    told = write(loaded.study, clients=flower.clients, block=block, finished=finished, **how)
    told[LET_THROUGH] = json.dumps(loaded.truth.tolist())
    path.write_text(toml(told), encoding="utf-8")


def _keep(flower: Flower, folder: Folder, loaded: Loaded, scorer: Scorer, cell: Cell, lines: Sequence[str]) -> None:
    try:
        outcomes = [decode(line, loaded.study) for line in lines]
        table = results.tabulate(loaded.study, scorer, cell, outcomes, flower.on)
    except ValueError as error:
        raise UnitError(f"{describe_cell(cell)}: {error}") from error
    results.write(table, part_path(folder.parts, cell))
