"""Real runs of the command line over Flower, each with a mark in its environment by which its processes are found."""

import importlib.util
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from protocol.runconfig import DEFAULT_STUDY
from studies.load import load
from studies.run import run

ROOT = Path(__file__).parents[2]
MARK = "HALFTRUTH_TEST_MARK"
STUDY = """
study = { name = "small", seed = 11, repetitions = 2 }
problem = { kind = "pairwise", dimension = 4, features = "gaussian", theta = [0.75, 0.25, -0.25, -0.75], bound = 3.0 }
grid = { n = [200], epsilon = [1.0], delta = [1e-5] }
""" + DEFAULT_STUDY[DEFAULT_STUDY.index("arm = [") :]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without Flower, or on a system without /proc, there is nothing to start; continuous integration insists."""
    reason = None
    if importlib.util.find_spec("flwr") is None or importlib.util.find_spec("ray") is None:
        reason = "Flower is not installed"
    if not Path("/proc/self/environ").exists():
        reason = "processes are looked for in /proc"
    if reason and os.environ.get("CI") != "true":
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@dataclass
class Command:
    """`halftruth run` in a process of its own, writing to `out`; or another command, told all its words."""

    out: Path
    words: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    verb: str = "run"
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def start(self) -> "Command":
        """Start it."""
        where = ["--out", str(self.out)] if self.verb == "run" else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "studies", self.verb, *self.words, *where],
            env={**os.environ, **self.variables, MARK: self.mark, "PYTHONPATH": self._path()},
            cwd=self.out.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self

    def end(self, within: float = 480) -> tuple[int, str]:
        """Its exit code and what it said, once it has ended and no process of it is left, nor its Flower home."""
        said = "".join(self.process.communicate(timeout=within))
        assert self.others() == {}, "processes are left"
        return self.process.returncode, said

    def others(self) -> dict[int, str]:
        """Command lines of all its processes but the first."""
        found = {}
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal() and int(entry.name) != self.process.pid:
                try:
                    variables = Path(entry.path, "environ").read_bytes().split(b"\0")
                    words = Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
                if f"{MARK}={self.mark}".encode() in variables:
                    found[int(entry.name)] = words
        return found

    def await_process(self, name: str, within: float = 180) -> int:
        """The id of its process that has `name` in its command line, as soon as there is one."""
        return self.wait(lambda: next((id_ for id_, words in self.others().items() if name in words), None), within)

    def wait(self, look: Callable[[], int | None], within: float = 180) -> int:
        """What `look` returns as soon as it finds something while the command runs."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            if self.process.poll() is not None:
                pytest.fail(f"ended too early: {self.process.communicate()}")
            time.sleep(0.05)
        pytest.fail("waited in vain")

    def wait_until(self, holds: Callable[[], bool], within: float) -> None:
        """Wait for something after the command has ended."""
        deadline = time.monotonic() + within
        while not holds():
            assert time.monotonic() < deadline, self.others()
            time.sleep(0.05)

    def home(self) -> Path:
        """The private Flower home of its processes."""
        process = self.await_process("bin/flower-superlink")
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        return Path(next(value for value in variables if value.startswith(b"FLWR_HOME="))[10:].decode())

    def _path(self) -> str:
        return os.pathsep.join(filter(None, [self.variables.get("PYTHONPATH"), str(ROOT)]))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study with all arms of the main one."""
    path = tmp_path_factory.mktemp("study") / "small.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def reference(small: Path, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """Its results in-process."""
    out = tmp_path_factory.mktemp("reference")
    return run(load(small), out, jobs=1).drop_columns("runtime")


@pytest.fixture
def command(small: Path, tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Makes commands that run the small study; whatever a failed test leaves is ended."""
    made: list[Command] = []

    def make(*words: str, name: str = "out", study: Path = small, verb: str = "run", **variables: str) -> Command:
        told = (str(study), *words) if verb == "run" else words
        made.append(Command(tmp_path / name, told, variables, verb).start())
        return made[-1]

    yield make
    for one in made:
        one.process.kill()  # its guardian ends the others
        one.process.communicate()


@pytest.fixture
def expect_bits(command: Callable[..., Command], tmp_path: Path) -> Callable[[str, str, int], None]:
    """Expects a study's results over (runtime, clients) to be those of in-process, apart from where they were made."""

    def expect(study: str, runtime: str, clients: int) -> None:
        path = tmp_path / "study.toml"
        path.write_text(study, encoding="utf-8")
        expected = run(load(path), tmp_path / "reference", jobs=1).drop_columns("runtime")
        started = command("--on", runtime, "--clients", str(clients), study=path)
        code, words = started.end()
        assert code == 0, words
        assert pq.read_table(started.out / "results.parquet").drop_columns("runtime").equals(expected)

    return expect
