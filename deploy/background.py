"""A federation in the background: starts a keeper and waits until it is ready; ends it, and what a dead one left."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from deploy import commands, ending, federation, keeper, secret_files
from deploy.federation import FAILED, RUNNING, Plan, Record, Runs, State
from deploy.processes import FlowerFailed
from protocol.strict import StudyError

PAUSE = 0.1
PATIENCE = 600.0  # seconds that a start may take; the keeper itself gives up earlier
LEAVING = 60.0  # seconds that a keeper may take to end everything
TAIL = 5  # lines of a log that are shown


def start(plan: Plan) -> tuple[Record, bool]:
    """A federation that is ready, and whether it was started now: one of the same plan is left as it is.

    Raises Runs where another one is up, FlowerFailed where it does not start, StudyError where it cannot; then
    nothing of it is left.
    """
    state = State(Path(plan.state)).make()
    if federation.is_kept(state):
        return _ready(state, plan, None), False
    keeper.sweep(state)
    keeper.check(plan)
    commands.node_words(plan, "")
    secret_files.check_room(state.folder)
    state.logs.mkdir(exist_ok=True)
    log = state.logs / "keeper.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "deploy.keeper", json.dumps(asdict(plan))],
            env={**os.environ, "PYTHONPATH": _import_path()},
            cwd=state.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return _ready(state, plan, child), True
    except BaseException:
        if child.poll() is None:
            child.terminate()
        child.wait()
        raise


def stop(state: State) -> bool:
    """End everything of a state's federation, whatever shape it is in; false where there was nothing to end.

    Keys, certificates, register, ledger and logs stay. Raises FlowerFailed where something does not end.
    """
    if not federation.is_kept(state):
        return keeper.sweep(state)
    record = federation.read(state)
    for sign in (signal.SIGTERM, signal.SIGKILL):
        _tell(state, record, sign)
        deadline = time.monotonic() + LEAVING
        while federation.is_kept(state) and time.monotonic() < deadline:
            time.sleep(PAUSE)
        if not federation.is_kept(state):
            if record is not None and record.home:  # its guardian may still be at it
                ending.end_all(Path(record.home))
            state.record.unlink(missing_ok=True)
            return True
    raise FlowerFailed(f"expected process {record and record.keeper} to end, it has not: it holds {state.lock}")


def last_lines(log: Path, count: int = TAIL) -> list[str]:
    """The last lines of a log; none where there is no log."""
    with suppress(OSError):
        return log.read_text("utf-8", "replace").splitlines()[-count:]
    return []


def _ready(state: State, plan: Plan, child: "subprocess.Popen[bytes] | None") -> Record:
    """Wait until the federation runs: the one of `child`, or one that is there."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended = child.poll() is not None if child is not None else not federation.is_kept(state)
        record = federation.read(state)
        if record is not None and record.phase == FAILED:
            raise FlowerFailed(record.reason)
        if ended:
            raise FlowerFailed(
                f"the keeper ended: {' '.join(last_lines(state.logs / 'keeper.log')) or 'without a word'}"
            )
        if record is not None and record.plan != plan:
            raise Runs(
                f"another federation is up in {state.folder}: {record.plan.describe()}: end it first with "
                f"halftruth down --state {state.folder}"
            )
        if record is not None and record.phase == RUNNING:
            return record
        time.sleep(PAUSE)
    raise FlowerFailed(f"expected the federation to be ready in {PATIENCE:g} seconds, it is not; logs: {state.logs}")


def _tell(state: State, record: Record | None, sign: int) -> None:
    """Signal the keeper, and nobody who got its number."""
    if record is None:
        raise StudyError(
            f"{state.record}: expected a record of who keeps the federation, found none that reads: try again in a "
            f"moment, or end the process that holds {state.lock} (fuser shows it)"
        )
    with suppress(OSError):
        handle = os.pidfd_open(record.keeper)
        try:
            if federation.is_keeper(record):
                signal.pidfd_send_signal(handle, sign)
        finally:
            os.close(handle)


def _import_path() -> str:
    return os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
