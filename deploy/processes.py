"""The processes of one run: a private Flower home, a guardian, children with logs, and an end that leaves nothing."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from deploy import ending, leash
from deploy.ports import listens
from protocol.failure import RunFailed

# Nothing is installed, downloaded or reported while a study runs.
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "UV_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
}
LONGEST_ROOF = 16
ENDING = (signal.SIGTERM, signal.SIGHUP)


class FlowerFailed(RunFailed):
    """A run over Flower that did not finish: says why."""


class Signalled(KeyboardInterrupt):
    """SIGTERM or SIGHUP, taken like Ctrl-C: `code` is what a shell reports for it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


class Processes:
    """Children of one run, each in a session of its own, all with `home` in their environment.

    `logs` keeps what each of them printed. `environment` is theirs.
    """

    def __init__(self, home: Path, logs: Path, guardian: "subprocess.Popen[str]") -> None:
        self.home, self.logs = home, logs
        self.environment = {**os.environ, **QUIET, **_private(home)}
        self._guardian = guardian
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._told: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {}
        self._since: dict[str, float] = {}

    def start(self, name: str, command: Sequence[str], **variables: str) -> "subprocess.Popen[bytes]":
        """Start a child whose output goes to the log `name`. Raises FlowerFailed where there is no such program."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            child = subprocess.Popen(
                [*_leash(), program(command[0]), *command[1:]],
                env={**self.environment, **variables},
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children[name], self._since[name] = child, time.monotonic()
        self._told[name] = command, variables
        self._tell_guardian(child.pid)
        return child

    def again(self, name: str) -> None:
        """Start a child that has ended as it was started before. Raises FlowerFailed."""
        command, variables = self._told[name]
        self.forget(name)
        self.start(name, command, **variables)

    def id(self, name: str) -> int:
        """The process id of a child."""
        return self._children[name].pid

    def log(self, name: str) -> Path:
        """Where the output of a child is kept."""
        return self.logs / f"{name}.log"

    def check(self) -> None:
        """Raise FlowerFailed where a child has ended that should live."""
        for name in self._children:
            if not self.lives(name):
                raise FlowerFailed(self.ended(name))

    def ended(self, name: str) -> str:
        """How a child ended, in words, and where its log is."""
        return f"{name} ended with {_how(self._children[name].wait())}; its log: {self.log(name)}"

    def since(self, name: str) -> float:
        """When a child was started, by the clock that only grows."""
        return self._since[name]

    def names(self) -> dict[int, str]:
        """The children's names by their process ids."""
        return {child.pid: name for name, child in self._children.items()}

    def kill(self, name: str) -> None:
        """End a child that is of no use without what it lost."""
        self._children[name].kill()
        self._children[name].wait()

    def lives(self, name: str) -> bool:
        """Whether a child has not ended."""
        return self._children[name].poll() is None

    def forget(self, name: str) -> None:
        """A child that may end, or that has ended and is started anew."""
        self._children.pop(name).wait()

    def guard(self) -> None:
        """Have a guardian again where it was killed."""
        if self._guardian.poll() is not None:
            with suppress(BrokenPipeError):
                self._guardian.communicate()
            self._guardian = _guardian(self.home)
            for child in self._children.values():
                self._tell_guardian(child.pid)

    def ready(self, name: str, port: int) -> bool:
        """Whether a child itself listens on a port: another program there does not count."""
        return listens(self._children[name].pid, port)

    def end_children(self) -> None:
        """End everything but the guardian, and keep the home: all may be started again. Raises FlowerFailed."""
        left = ending.end_processes(self.home, [child.pid for child in self._children.values()])
        if left:
            raise FlowerFailed(f"expected all processes of this run to end, still there: {left}")
        for name in list(self._children):
            self.forget(name)

    def end(self) -> None:
        """End everything, remove the home, and let the guardian go."""
        with unhurried():
            left = ending.end_all(self.home, [child.pid for child in self._children.values()])
            for child in self._children.values():
                if child.pid not in left:
                    child.wait()
            with suppress(BrokenPipeError):
                self._guardian.communicate()
        if left:
            raise FlowerFailed(f"expected all processes of this run to end, still there: {left}")

    def _tell_guardian(self, group: int) -> None:
        assert self._guardian.stdin is not None
        with suppress(BrokenPipeError):  # without its guardian a run goes on, and ends its children itself
            self._guardian.stdin.write(f"{group}\n")
            self._guardian.stdin.flush()


@contextmanager
def private_home(logs: Path) -> Iterator[Processes]:
    """Processes with a new private Flower home; when the block is left, in whatever way, they are ended.

    SIGTERM and SIGHUP are raised in it as Signalled. Where this very process is killed, the guardian ends the others.
    """
    with raised():
        home = Path(tempfile.mkdtemp(prefix="halftruth-", dir=_roof())).resolve()
        processes = Processes(home, logs, _guardian(home))
        try:
            (home / "tmp").mkdir()
            yield processes
        finally:
            processes.end()


def _leash() -> list[str]:
    """What a child's command begins with, so that it ends with this process even where the guardian is killed too.

    The system counts the thread that started it, so only the main one, which ends last, may.
    """
    if threading.current_thread() is not threading.main_thread():
        return []
    return [sys.executable, "-I", "-S", leash.__file__, str(os.getpid())]


def _guardian(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", ending.__file__, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )


def program(name: str) -> str:
    """The path of a program installed beside this Python. Raises FlowerFailed where Flower is not installed."""
    found = shutil.which(name, path=_path())
    if found is None:
        raise FlowerFailed(f"expected the program {name}, found none: install Flower with `pip install flwr`")
    return found


@contextmanager
def raised() -> Iterator[None]:
    """SIGTERM and SIGHUP become the exception Signalled, so that `finally` blocks run."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {sign: signal.signal(sign, _raise) for sign in ENDING}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


@contextmanager
def unhurried() -> Iterator[None]:
    """A second Ctrl-C does not interrupt the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {sign: signal.signal(sign, signal.SIG_IGN) for sign in (signal.SIGINT, *ENDING)}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


def _roof() -> str | None:
    """Where homes are made: sockets lie in them, whose paths may have 107 bytes."""
    return None if len(tempfile.gettempdir()) <= LONGEST_ROOF else "/tmp"


def _private(home: Path) -> Mapping[str, str]:
    return {"FLWR_HOME": str(home), "TMPDIR": str(home / "tmp"), "RAY_TMPDIR": str(home), "PATH": _path()}


def _path() -> str:
    """Flower starts its own programs by name: those of this Python come first."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _raise(number: int, frame: FrameType | None) -> None:
    raise Signalled(number)


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
