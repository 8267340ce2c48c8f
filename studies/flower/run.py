"""A study over Flower: the same folder and the same numbers as in-process, from other processes."""

import json
import os
import shutil
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

import pyarrow as pa

from protocol.runconfig import LET_THROUGH, write
from protocol.strict import StudyError
from protocol.study import Cell
from server.outcome_record import cell_name, decode
from studies import results
from studies.flower.flwr_command import SuperLink
from studies.flower.nodes import await_nodes, start_nodes
from studies.flower.processes import QUIET, FlowerFailed, Processes, private_home
from studies.flower.stage import stage, toml
from studies.flower.superlink import start_superlink
from studies.flower.watch import Records, follow_folder, follow_log
from studies.folder import Folder, merge, prepare
from studies.load import Loaded
from studies.parts import describe_cell, part_path
from studies.run import Progress, check_clients, play_missing
from studies.score import Scorer
from studies.unit import UnitError

RUNTIMES = ("simulation", "deployment")
DEADLINE = 600.0  # seconds that a cell may take, and that the server waits for clients
MARGIN = 60.0  # seconds beyond, after which a server that says nothing is given up


@dataclass(frozen=True)
class Flower:
    """Where a study runs: `on` "simulation" or "deployment", with `clients` clients, on our own SuperLink or on a
    connection `superlink` of the user's Flower configuration.
    """

    on: str
    clients: int = 1
    superlink: str | None = None
    deadline: float = DEADLINE


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
    facts = {"runtime": flower.on, "clients": flower.clients, "flwr": installed("flwr")}
    if flower.on == "simulation" and flower.superlink is None:
        installed("ray")
    folder = Folder(out)
    units = prepare(folder, loaded, block, resume, overwrite)

    def play(folder: Folder, loaded: Loaded, missing: Sequence[Cell]) -> Generator[tuple[Cell, float]]:
        return _play(flower, folder, loaded, units, missing)

    play_missing(folder, loaded, units, play, facts, progress)
    return merge(folder, loaded, units)


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
    logs, scorer, left = folder.logs, Scorer(loaded.study, loaded.theta), set(missing)
    shutil.rmtree(logs, ignore_errors=True)
    with private_home(logs) as processes:
        app = stage(processes.home / "app")
        config = _write_config(processes.home / "run.toml", flower, folder, loaded)
        if flower.superlink is None:
            records = _on_our_superlink(flower, processes, loaded, app, config, [c for c in units if c not in left])
        else:
            records = _on_a_connection(flower, flower.superlink, processes, app, config)
        before = time.perf_counter()
        with closing(records):
            for cell, lines in records:
                if cell in left:
                    _keep(flower, folder, loaded, scorer, cell, lines)
                    left.remove(cell)
                    before, seconds = time.perf_counter(), time.perf_counter() - before
                    yield cell, seconds
    if left:
        raise FlowerFailed(f"the server said it was done without {describe_cell(min(left, key=units.index))}")
    shutil.rmtree(logs, ignore_errors=True)


def _on_our_superlink(
    flower: Flower, processes: Processes, loaded: Loaded, app: Path, config: Path, finished: Sequence[Cell]
) -> Generator[Records]:
    """Start all that a run needs, submit it, and follow the folder it writes to."""
    outcomes = processes.home / "outcomes"
    outcomes.mkdir()
    for cell in finished:  # the server skips a cell that is there
        (outcomes / f"{cell_name(cell)}.jsonl").touch()
    virtual = flower.on == "simulation"
    link, address = start_superlink(processes, outcomes, simulation=virtual)
    nodes = {} if virtual else start_nodes(processes, loaded.study, flower.clients, address)
    federation = f"num-supernodes={flower.clients} client-resources-num-cpus=1" if virtual else None
    run_id = link.run(app, config, federation)
    await_nodes(processes, nodes)  # they start while the run is submitted
    yield from follow_folder(outcomes, link, run_id, processes, 2 * flower.deadline + MARGIN)


def _on_a_connection(flower: Flower, name: str, processes: Processes, app: Path, config: Path) -> Generator[Records]:
    """Submit a run to the SuperLink that the user's own Flower configuration names, and follow its log."""
    mark = {"HALFTRUTH_HOME": str(processes.home)}  # by which our children are found and ended
    link = SuperLink(name, {**os.environ, **QUIET, **mark})
    run_id = link.run(app, config, None)
    try:
        yield from follow_log(link, run_id, 2 * flower.deadline + MARGIN)
    except (KeyboardInterrupt, GeneratorExit):
        link.stop(run_id)
        raise


def _write_config(path: Path, flower: Flower, folder: Folder, loaded: Loaded) -> Path:
    """The run's configuration as a file: a study is too long for a command line."""
    block = folder.record()["block"] or 0
    told = write(loaded.study, clients=flower.clients, block=block, deadline=flower.deadline)
    told[LET_THROUGH] = json.dumps(loaded.theta.tolist())
    path.write_text(toml(told), encoding="utf-8")
    return path


def _keep(flower: Flower, folder: Folder, loaded: Loaded, scorer: Scorer, cell: Cell, lines: Sequence[str]) -> None:
    try:
        outcomes = [decode(line, loaded.study) for line in lines]
        table = results.tabulate(loaded.study, scorer, cell, outcomes, flower.on)
    except ValueError as error:
        raise UnitError(f"{describe_cell(cell)}: {error}") from error
    results.write(table, part_path(folder.parts, cell))
