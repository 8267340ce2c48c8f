"""Keeps a federation: a SuperLink and nodes, started again when they die, ended together, however this process ends.

Also a program, which `halftruth up` leaves in the background: `python -m deploy.keeper PLAN`, a plan as JSON.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy import ending, federation, secret_files
from deploy.certs import LOOPBACK
from deploy.certs import read as read_certs
from deploy.commands import key_of, local_host, node_words
from deploy.federation import FAILED, RUNNING, STARTING, Child, Plan, Record, State, began, held
from deploy.flwr_command import SuperLink
from deploy.mending import Executors
from deploy.node_keys import PublicKey, ensure_key, public_half, public_path
from deploy.nodes import import_path
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.register_file import OF_NODE, admitted, change
from deploy.register_file import read as read_register
from deploy.restarts import Restarts
from deploy.superlink import SUPERLINK, Serving, start_superlink
from protocol.counting import counted
from protocol.failure import RunFailed
from protocol.strict import StudyError, told
from protocol.version import version
from server.transcript import TRANSCRIPT

GLANCE = 0.3  # seconds between two looks at the children
ASKING = 2.0  # seconds between two questions for the nodes, each of which starts a program
LAST_PORT = 65535
COMING = 300.0  # seconds that nodes may take until all are there


@dataclass
class _Kept:
    """A child: how often it was started, and when it will be again where it has ended."""

    starts: int = 1
    due: float | None = None


@dataclass
class Keeper:
    """A federation while it runs. `say` is told what a person should know; `record` what others look at."""

    plan: Plan
    processes: Processes
    say: Callable[[str], None]
    record: Record
    executors: Executors = field(init=False)
    restarts: Restarts = field(init=False)
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.executors, self.restarts = Executors(self.processes), Restarts(self.say)

    def start(self) -> None:
        """Start everything and return when all nodes are there. Raises FlowerFailed, StudyError."""
        state = State(Path(self.plan.state))
        link, address = self._start_superlink(state)
        self._kept[SUPERLINK] = _Kept()
        self._tell(address=address)
        nodes = node_words(self.plan, address)
        if self.plan.keys:
            keys = {name: self._own_key(state, name) for name in nodes}
            change(state, link, lambda entries: admitted(entries, keys, state.keys))
        for name, words in nodes.items():
            self.processes.start(name, words, PYTHONPATH=import_path(self.processes))
            self._kept[name] = _Kept()
        self._tell()
        self._await(link, len(nodes))
        self._tell(phase=RUNNING)

    def keep(self) -> None:
        """Start again what dies, for ever."""
        self.restarts = Restarts(self.say, for_ever=True)
        while True:
            self._revive()
            self.processes.guard()
            time.sleep(GLANCE)

    def _start_superlink(self, state: State) -> tuple[SuperLink, str]:
        plan = self.plan
        database = state.database if plan.lasting else self.processes.home / "superlink.db"
        secret_files.keep_to_owner(database)  # it holds messages, and the state's folder may be open to others
        given = {"HALFTRUTH_STATE": str(state.folder), "HALFTRUTH_KEY": str(state.server_key)}
        given |= {"HALFTRUTH_NODES": str(state.register)} if plan.keys else {}
        given |= {TRANSCRIPT: plan.transcript} if plan.transcript else {}
        ensure_key(state.server_key)
        certs = read_certs(Path(plan.certs)) if plan.certs else None
        return start_superlink(self.processes, Serving(plan.host, plan.port, certs, plan.keys, database), **given)

    def _await(self, link: SuperLink, count: int) -> None:
        """Wait until so many nodes are online."""
        deadline, online = time.monotonic() + COMING, 0
        while count:
            self._revive()
            online = sum(node.status == "online" for node in link.nodes())
            if online >= count:
                return
            if time.monotonic() > deadline:
                wanted = counted(count, "node")
                got = f"got {online}; logs: {self.processes.logs}"
                raise FlowerFailed(f"expected {wanted} within {COMING:g} seconds, {got}")
            time.sleep(ASKING)

    def _revive(self) -> None:
        """Start what has ended again when it is time, but nothing whose key is revoked."""
        for name in self.executors.gone():
            self.say(f"the executor of {name} ended, without which it is of no use")
            self.processes.kill(name)
        now = time.monotonic()
        for name, kept in self._kept.items():
            if kept.due is None and not self.processes.lives(name):
                kept.due = now + self._pause(name)
                self._tell()
            if kept.due is not None and now >= kept.due:
                self.processes.again(name)
                self.executors.forget(name)
                kept.due, kept.starts = None, kept.starts + 1
                self._tell()

    def _pause(self, name: str) -> float:
        how = self.processes.ended(name)
        try:
            if self._is_revoked(State(Path(self.plan.state)), name):
                self.say(f"{how}: its key is revoked")
                return math.inf
        except StudyError as error:  # somebody is at the register: the SuperLink itself lets no revoked key come
            self.say(str(error))
        return self.restarts.count(name, how, self.processes.since(name))

    def _own_key(self, state: State, name: str) -> PublicKey:
        """The key of a node that is started here; a new one in place of one of ours that was revoked."""
        path = key_of(self.plan, name)
        if path == state.keys / name and self._is_revoked(state, name):
            path.unlink()
            public_path(path).unlink(missing_ok=True)
        if path == state.keys / name:
            return ensure_key(path)[0]
        public = public_half(path)
        state.keys.mkdir(mode=secret_files.OWN_FOLDER, parents=True, exist_ok=True)
        secret_files.replace(state.keys / OF_NODE.format(name), f"{public.line}\n".encode(), secret_files.PUBLIC)
        return public

    def _is_revoked(self, state: State, name: str) -> bool:
        """Whether the key is revoked with which a node of this name is started here."""
        path = key_of(self.plan, name)
        if not self.plan.keys or not path.exists():
            return False
        key = public_half(path)
        return any(entry.revoked and entry.key == key for entry in read_register(state.register))

    def _tell(self, **changes: str) -> None:
        children = {
            name: Child(self.processes.id(name) if kept.due is None else 0, kept.starts, kept.due == math.inf)
            for name, kept in self._kept.items()
        }
        self.record = replace(self.record, children=children, **changes)  # type: ignore[arg-type]
        try:
            federation.write(self.record)
        except OSError as error:
            if self.record.phase == STARTING:
                raise
            self.say(f"what halftruth status shows is old: {told(error)}")  # a full disk ends no federation


def keep(plan: Plan, say: Callable[[str], None]) -> None:
    """Keep a federation until this process is told to end, by Ctrl-C, SIGTERM or SIGHUP, which is raised.

    Raises Runs where one is kept already, FlowerFailed where it does not start, StudyError where it cannot.
    """
    state = State(Path(plan.state)).make()
    with held(state):
        sweep(state)
        check(plan)
        record = Record(plan, os.getpid(), began(os.getpid()), version())
        reason = ""
        _set_aside(state.logs)
        try:
            with private_home(state.logs) as processes:
                keeper = Keeper(plan, processes, say, replace(record, home=str(processes.home)))
                federation.write(keeper.record)
                keeper.start()
                say(f"ready at {keeper.record.address}: {plan.describe()}; logs: {state.logs}")
                keeper.keep()
        except (RunFailed, StudyError, OSError) as error:
            reason = told(error)
            raise
        finally:
            state.record.unlink(missing_ok=True)
            if reason:
                with suppress(OSError):  # which may be the reason
                    federation.write(replace(record, phase=FAILED, reason=reason))


def sweep(state: State) -> bool:
    """End what a keeper left that was killed together with its guardian; whether there was a record of one."""
    found = federation.read(state)
    if found is not None and found.home:
        ending.end_all(Path(found.home))
    state.record.unlink(missing_ok=True)
    return found is not None


def check(plan: Plan) -> None:
    """Raise StudyError for a plan that cannot be kept."""
    if not 0 <= plan.port <= LAST_PORT:
        raise StudyError(f"--port: expected 0 (any free one) to {LAST_PORT}, got {plan.port}")
    if plan.keys and not plan.certs:
        raise StudyError("expected certificates where nodes show keys: a key proves nothing without encryption")
    if plan.certs is None:
        if plan.host not in LOOPBACK:
            raise StudyError(
                f"--host {plan.host}: expected --certs with it: only this machine's own loopback is served without "
                "encryption"
            )
        return
    found = read_certs(Path(plan.certs))
    needed = local_host(plan.host)
    if needed not in found.hosts:
        raise StudyError(
            f"{found.certificate}: expected it to hold {needed}, it holds {', '.join(found.hosts)}: "
            f"halftruth certs {plan.certs} --host {needed} --renew"
        )


def _set_aside(logs: Path) -> None:
    """The logs of the federation before this one stay beside the new ones."""
    for log in logs.glob("*.log"):
        if log.name != "keeper.log":
            with suppress(OSError):
                log.replace(log.with_name(f"{log.name}.1"))


def main(words: list[str]) -> int:
    """Keep the plan that the only argument holds."""
    try:
        keep(Plan(**json.loads(words[0])), _say)
    except (RunFailed, StudyError, OSError) as error:
        _say(f"halftruth: {told(error)}")
        return 1
    except KeyboardInterrupt:
        _say("ended")
    return 0


def _say(line: str) -> None:
    with suppress(OSError):  # the disk of the log is full
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
