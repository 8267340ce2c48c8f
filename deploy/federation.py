"""What is known of a running federation: a folder, a record that its keeper writes, and a lock that it holds."""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from deploy.secret_files import OWN_FOLDER, PUBLIC, replace
from protocol.failure import RunFailed
from protocol.strict import make_folder

STARTING, RUNNING, FAILED = "starting", "running", "failed"
PROC = Path("/proc")
LOOKING = 2.0  # seconds


class Runs(RunFailed):
    """A federation that runs already, in this state folder."""


@dataclass(frozen=True)
class State:
    """The folder of a federation: what stays when it ends (keys, certs, logs, register, ledger) and what does not."""

    folder: Path

    @property
    def logs(self) -> Path:
        """A log for each process."""
        return self.folder / "logs"

    @property
    def keys(self) -> Path:
        """Keys of the server and of nodes that were started here."""
        return self.folder / "keys"

    @property
    def server_key(self) -> Path:
        """The server's key, which signs its tasks."""
        return self.keys / "server"

    @property
    def certs(self) -> Path:
        """Certificates that were made here."""
        return self.folder / "certs"

    @property
    def register(self) -> Path:
        """The nodes that may answer, and their keys."""
        return self.folder / "nodes.toml"

    @property
    def database(self) -> Path:
        """What the SuperLink of a lasting server remembers."""
        return self.folder / "superlink.db"

    @property
    def record(self) -> Path:
        """What runs, as its keeper says."""
        return self.folder / "federation.json"

    @property
    def lock(self) -> Path:
        """Held by the keeper while it lives, and let go by the system however it ends."""
        return self.folder / "lock"

    def make(self) -> "State":
        """Make the folder, for its owner only. Raises StudyError where that is not possible."""
        make_folder(self.folder, "--state", OWN_FOLDER)
        return self


@dataclass(frozen=True)
class Plan:
    """What a keeper shall keep. `nodes`: how many synthetic ones, or a folder of node folders, or none at all.

    `host`, `port`: where the SuperLink listens (0: any free port). `certs`: a folder of certificates, without which
    there is no encryption; `keys`: only nodes of the register may come. `lasting`: the SuperLink remembers its nodes.
    `transcript`: a folder in which the server keeps what it asks and receives.
    """

    state: str
    nodes: int | str = 0
    host: str = "127.0.0.1"
    port: int = 0
    certs: str | None = None
    keys: bool = False
    lasting: bool = False
    transcript: str = ""

    def describe(self) -> str:
        """What it is, for a person."""
        how = "TLS and node keys" if self.keys else "TLS" if self.certs else "no encryption"
        if not self.nodes:
            return f"a server, {how}"
        what = f"{self.nodes} synthetic nodes" if isinstance(self.nodes, int) else f"the nodes of {self.nodes}"
        return f"a server and {what}, {how}"


@dataclass(frozen=True)
class Child:
    """A process that is kept, 0 while it is not there. `starts`: how often it was started; `left`: it ended and is not
    started again, since its key is revoked.
    """

    process: int
    starts: int = 1
    left: bool = False


@dataclass(frozen=True)
class Record:
    """What a keeper says about what it keeps. `home`: by which all its processes are found, see deploy.ending."""

    plan: Plan
    keeper: int
    began: str
    version: str
    home: str = ""
    address: str = ""
    phase: str = STARTING
    reason: str = ""
    children: Mapping[str, Child] = field(default_factory=dict)

    @property
    def authority(self) -> Path | None:
        """The certificate that nodes and runs trust."""
        return Path(self.plan.certs) / "ca.crt" if self.plan.certs else None


def write(record: Record) -> None:
    """Put the record into its state folder, in place of an earlier one."""
    replace(State(Path(record.plan.state)).record, json.dumps(asdict(record), indent=1).encode() + b"\n", PUBLIC)


def read(state: State) -> Record | None:
    """The record of a state folder; None where there is none, or one that says nothing."""
    try:
        found: dict[str, Any] = json.loads(state.record.read_text("utf-8"))
        children = {name: Child(**child) for name, child in found.pop("children").items()}
        return Record(plan=Plan(**found.pop("plan")), children=children, **found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


@contextmanager
def held(state: State) -> Iterator[None]:
    """Hold the lock of a state folder. Raises Runs where another process does."""
    with state.lock.open("ab") as file:
        deadline = time.monotonic() + LOOKING
        while not _takes(file, fcntl.LOCK_EX):  # whoever looks holds it for a moment
            if time.monotonic() > deadline:
                raise Runs(f"a federation runs already in {state.folder}: halftruth status --state {state.folder}")
            time.sleep(0.02)
        yield


def is_kept(state: State) -> bool:
    """Whether a keeper lives."""
    try:
        with state.lock.open("rb") as file:
            return not _takes(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _takes(file: BinaryIO, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False


def began(process: int) -> str:
    """When a process began, which tells it from a later one of the same number; "" where it is gone, or unknown."""
    with suppress(OSError):
        ticks = (PROC / str(process) / "stat").read_text("ascii", "replace").rpartition(")")[2].split()[19]
        return f"{(PROC / 'sys/kernel/random/boot_id').read_text('ascii').strip()}:{ticks}"
    return ""


def is_keeper(record: Record) -> bool:
    """Whether the process that a record names is still the one that wrote it."""
    if not PROC.is_dir():
        with suppress(OSError):
            os.kill(record.keeper, 0)
            return True
        return False
    return began(record.keeper) == record.began
