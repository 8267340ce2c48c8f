"""Looks at a federation: what runs, what it takes, which nodes are there, and what failed."""

import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deploy import ending, federation, register_file
from deploy.background import last_lines
from deploy.federation import RUNNING, Record, State
from deploy.flwr_command import PRIVATE, Seen, SuperLink
from deploy.processes import QUIET, FlowerFailed
from protocol.strict import StudyError

KEEPER, OTHER = "keeper", "other"
PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Taken:
    """What a process and those that it started take: how many they are, CPU seconds, resident megabytes."""

    processes: int
    cpu_seconds: float
    memory_mb: float


@dataclass(frozen=True)
class Node:
    """A node of the register or of the SuperLink: its name, "" where nobody registered it, its id, and its status."""

    name: str
    id: str
    status: str


@dataclass(frozen=True)
class Status:
    """A federation as it is now. `phase`: "running", "starting", "failed", "down", or "killed": only a record is left.

    `ended`: the last lines of the logs of what does not run but should.
    """

    state: str
    phase: str
    what: str = ""
    address: str = ""
    version: str = ""
    reason: str = ""
    taken: dict[str, Taken] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    ended: dict[str, list[str]] = field(default_factory=dict)

    @property
    def online(self) -> int:
        """How many nodes are there."""
        return sum(node.status == "online" for node in self.nodes)

    def describe(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {**asdict(self), "online": self.online}


def status(state: State) -> Status:
    """What there is to know about a state's federation."""
    kept, record = federation.is_kept(state), federation.read(state)
    if record is None:
        return Status(str(state.folder), federation.STARTING if kept else "down")
    phase = record.phase if kept or record.phase == federation.FAILED else "killed"
    ended = [name for name, child in record.children.items() if kept and not child.process]
    if phase == federation.FAILED:
        ended = sorted(log.stem for log in state.logs.glob("*.log") if log.stem in record.reason)
    reason = record.reason
    nodes: list[Node] = []
    if kept and record.address:
        try:
            nodes = _nodes(state if record.plan.keys else None, link_of(record).nodes())
        except (FlowerFailed, StudyError) as error:
            reason = str(error)
    return Status(
        str(state.folder),
        phase,
        record.plan.describe(),
        record.address,
        record.version,
        reason,
        _taken(record) if kept else {},
        {name: child.starts for name, child in record.children.items()},
        nodes,
        {name: last_lines(state.logs / f"{name}.log") for name in ended},
    )


def running(state: State) -> Record:
    """The record of a federation that runs. Raises FlowerFailed where none does."""
    record = federation.read(state)
    if record is None or record.phase != RUNNING or not federation.is_kept(state):
        raise FlowerFailed(f"expected a federation that runs in {state.folder}, found none: halftruth up or server")
    return record


def keyed_link(state: State, needed: bool = True) -> SuperLink | None:
    """The connection to a server that knows its nodes by their keys; None where none runs and none is `needed`.

    Raises FlowerFailed where none runs, StudyError for a server without node keys.
    """
    if not needed and not federation.is_kept(state):
        return None
    record = running(state)
    if not record.plan.keys:
        raise StudyError(f"expected a server that knows its nodes by keys, got {record.plan.describe()}")
    return link_of(record)


def link_of(record: Record) -> SuperLink:
    """The connection to a federation that runs."""
    return SuperLink(PRIVATE, {**os.environ, **QUIET, "FLWR_HOME": record.home})


def _nodes(state: State | None, seen: list[Seen]) -> list[Node]:
    known = {node.id: node.status for node in seen}
    entries = [] if state is None else register_file.read(state.register)
    named = [
        Node(entry.name, entry.node, "revoked" if entry.revoked else known.get(entry.node, "unknown to the server"))
        for entry in entries
        if entry.revoked or entry.node in known
    ]
    there = {node.id for node in named}
    return named + [
        Node("", node.id, node.status)
        for node in seen
        if node.id not in there and node.status not in register_file.GONE
    ]


def _taken(record: Record) -> dict[str, Taken]:
    """What is taken by the keeper, by each child with all that it started, and by what nobody of them has started."""
    names = {child.process: name for name, child in record.children.items() if child.process}
    names[record.keeper] = KEEPER
    found: dict[str, list[tuple[float, float]]] = {}
    for process in {*ending.carriers(Path(record.home)), record.keeper}:
        with suppress(OSError, ValueError):
            found.setdefault(_whose(process, names), []).append(_usage(process))
    return {
        name: Taken(len(all_), round(sum(cpu for cpu, _ in all_), 1), round(sum(memory for _, memory in all_), 1))
        for name, all_ in found.items()
    }


def _whose(process: int, names: dict[int, str]) -> str:
    """The child from which a process descends."""
    while process > 1:
        if process in names:
            return names[process]
        process = int(ending.stat(process)[1])
    return OTHER


def _usage(process: int) -> tuple[float, float]:
    """CPU seconds, with those of children that it waited for, and resident megabytes."""
    words = ending.stat(process)
    return sum(map(int, words[11:15])) / TICKS, int(words[21]) * PAGE / 1e6
