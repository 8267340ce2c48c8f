"""Keeps a federation: a SuperLink and nodes, started again when they die, ended together, however this process ends.

Also a program, which `halftruth up` leaves in the background: `python -m deploy.keeper PLAN`, a plan as JSON.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy import ending, federation, secret_files
from deploy.certs import LOOPBACK
from deploy.certs import read as read_certs
from deploy.commands import join, local_host, node_words, superlink_words
from deploy.federation import FAILED, RUNNING, Child, Plan, Record, State, began, held
from deploy.flwr_command import SuperLink, private_connection
from deploy.node_keys import PublicKey, ensure_key, public_path
from deploy.nodes import import_path
from deploy.ports import free_port, taken
from deploy.processes import FlowerFailed, Processes, private_home
from deploy.register_file import admitted, change
from deploy.register_file import read as read_register
from deploy.superlink import KERNELS, SUPERLINK, wait_until_ready
from protocol.counting import counted
from protocol.failure import RunFailed
from protocol.strict import StudyError
from protocol.version import version

GLANCE = 0.3  # seconds between two looks at the children
ASKING = 2.0  # seconds between two questions for the nodes, each of which starts a program
COMING = 300.0  # seconds that nodes may take until all are there
ATTEMPTS = 3  # what ends so often while it starts does not work
LONGEST_PAUSE = 60.0  # seconds, after 1, 2, 4, ..., before a child that keeps ending is started again
SOUND = 60.0  # seconds after which a child's earlier ends are forgotten


@dataclass
class _Kept:
    """A child: how it is started, how often it was, and when it may be started again."""

    words: list[str]
    variables: Mapping[str, str]
    process: int = 0
    starts: int = 0
    ends: int = 0
    since: float = 0.0
    due: float | None = None


@dataclass
class Keeper:
    """A federation while it runs. `say` is told what a person should know; `record` what others look at."""

    plan: Plan
    processes: Processes
    say: Callable[[str], None]
    record: Record
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def start(self) -> None:
        """Start everything and return when all nodes are there. Raises FlowerFailed, StudyError."""
        state = State(Path(self.plan.state))
        link = self._start_superlink(state)
        nodes = node_words(self.plan, self.record.address)
        if self.plan.keys:
            keys = {name: self._own_key(state, name) for name in nodes}
            change(state, link, lambda entries: admitted(entries, keys, state.keys))
        for name, words in nodes.items():
            self._start(name, words, PYTHONPATH=import_path(self.processes))
        self._tell()
        self._await(link, len(nodes))
        self._tell(phase=RUNNING)

    def keep(self) -> None:
        """Start again what dies, for ever."""
        while True:
            self._revive()
            self.processes.guard()
            time.sleep(GLANCE)

    def _start_superlink(self, state: State) -> SuperLink:
        plan, authority = self.plan, self.record.authority
        database = state.database if plan.lasting else self.processes.home / "superlink.db"
        secret_files.keep_to_owner(database)  # it holds messages, and the state's folder may be open to others
        given = {"HALFTRUTH_STATE": str(state.folder), "HALFTRUTH_KEY": str(state.server_key)}
        given |= {"HALFTRUTH_NODES": str(state.register)} if plan.keys else {}
        ensure_key(state.server_key)
        for attempt in range(ATTEMPTS):
            port = plan.port or free_port()
            if holder := taken(plan.host, port):
                raise FlowerFailed(
                    f"port {port} of {plan.host or 'this machine'} is taken by {holder}: name another one"
                )
            self._start(SUPERLINK, superlink_words(plan, port, database), **KERNELS, **given)
            if wait_until_ready(self.processes, SUPERLINK, port):
                break
            if self.processes.lives(SUPERLINK) or attempt == ATTEMPTS - 1:
                raise FlowerFailed(f"the SuperLink does not start; its log: {self.processes.log(SUPERLINK)}")
            self.processes.forget(SUPERLINK)
        address = join(local_host(plan.host), port)
        self._tell(address=address)
        return private_connection(self.processes.home, self.processes.environment, address, authority)

    def _await(self, link: SuperLink, count: int) -> None:
        """Wait until so many nodes are online."""
        deadline, online = time.monotonic() + COMING, 0
        while count:
            self._revive()
            if worn := [name for name, kept in self._kept.items() if kept.ends >= ATTEMPTS]:
                raise FlowerFailed(f"{worn[0]} ended {ATTEMPTS} times; its log: {self.processes.log(worn[0])}")
            online = sum(node.status == "online" for node in link.nodes())
            if online >= count:
                return
            if time.monotonic() > deadline:
                wanted = counted(count, "node")
                got = f"got {online}; logs: {self.processes.logs}"
                raise FlowerFailed(f"expected {wanted} within {COMING:g} seconds, {got}")
            time.sleep(ASKING)

    def _start(self, name: str, words: list[str], **variables: str) -> None:
        kept = self._kept.setdefault(name, _Kept(words, variables))
        kept.words, kept.due, kept.since = words, None, time.monotonic()
        kept.starts += 1
        kept.process = self.processes.start(name, words, **variables).pid

    def _revive(self) -> None:
        """Start what has ended: at once the first time, then after longer and longer pauses."""
        now = time.monotonic()
        for name, kept in self._kept.items():
            if kept.due is None and not self.processes.lives(name):
                self.processes.forget(name)
                kept.ends = kept.ends + 1 if now - kept.since < SOUND else 1
                kept.due = now + min(LONGEST_PAUSE, 2.0 ** (kept.ends - 1) - 1)
                kept.process = 0
                if self._is_revoked(name):
                    kept.due = math.inf
                again = "its key is revoked" if kept.due == math.inf else "it is started again"
                self.say(f"{name} ended; {again}; its log: {self.processes.log(name)}")
                self._tell()
            if kept.due is not None and now >= kept.due:
                self._start(name, kept.words, **kept.variables)
                self._tell()

    def _own_key(self, state: State, name: str) -> PublicKey:
        """The key of a node that is started here; a new one in place of one that was revoked."""
        path = state.keys / name
        if self._is_revoked(name):
            path.unlink(missing_ok=True)
            public_path(path).unlink(missing_ok=True)
        return ensure_key(path)[0]

    def _is_revoked(self, name: str) -> bool:
        entries = read_register(State(Path(self.plan.state)).register) if self.plan.keys else []
        return any(entry.name == name and entry.revoked for entry in entries)

    def _tell(self, **changes: str) -> None:
        children = {name: Child(kept.process, kept.starts, kept.due == math.inf) for name, kept in self._kept.items()}
        self.record = replace(self.record, children=children, **changes)  # type: ignore[arg-type]
        federation.write(self.record)


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
            reason = str(error)
            raise
        finally:
            if reason:
                federation.write(replace(record, phase=FAILED, reason=reason))
            else:
                state.record.unlink(missing_ok=True)


def sweep(state: State) -> bool:
    """End what a keeper left that was killed together with its guardian; whether there was a record of one."""
    found = federation.read(state)
    if found is not None and found.home:
        ending.end_all(Path(found.home))
    state.record.unlink(missing_ok=True)
    return found is not None


def check(plan: Plan) -> None:
    """Raise StudyError for a plan that cannot be kept."""
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
        keep(Plan(**json.loads(words[0])), lambda line: print(line, flush=True))
    except (RunFailed, StudyError, OSError) as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ended", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
