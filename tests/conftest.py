"""Fixtures that more than one package's tests use."""

import csv
import importlib
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

from server import kernel_cache

hypothesis.settings.register_profile("untimed", deadline=None)  # the machine may be busy, or compile a kernel
hypothesis.settings.load_profile("untimed")

# Where a shell starts tests in the background it has Ctrl-C ignored, and so would every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parents[1] / "shared"
# Kernels are kept where servers of federations look for theirs (`deploy.superlink:KERNELS`), so that none is compiled
# twice: numba reads this when it is imported first.
os.environ.setdefault("NUMBA_CACHE_LOCATOR_CLASSES", "server.kernel_cache.Kept")
os.environ.setdefault(kernel_cache.FOLDER, str(TESTS.parent / "server" / "__pycache__"))

WAITING, EARLY = ("flower_processes", "network"), 0.5  # folders of real processes, begun in this part of a run


def shared_folder(name: str) -> Path:
    """A folder of data beside the checkout: without it a user's machine skips, continuous integration fails."""
    folder = SHARED / name
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"expected {folder} to exist in continuous integration")
        pytest.skip(f"no data beside the checkout: {folder}")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real preference files and awkward ones, read in place."""
    return shared_folder("data")


@pytest.fixture(scope="session")
def transcribed() -> Callable[[Path], list[bytes]]:
    """Reads the byte strings that servers' transcripts in a folder say came, in order; each ends with a whole one."""

    def read(folder: Path) -> list[bytes]:
        found = []
        for path in sorted(folder.glob("transcript-*.bin")):
            head, raw = path.read_bytes().split(b"\n", 1)
            assert head == b"halftruth transcript 1"
            while raw:
                end = 13 + int.from_bytes(raw[1:9], "little")
                if raw[:1] == b"c":
                    found.append(raw[13:end])
                assert len(raw) >= end
                raw = raw[end:]
        return found

    return read


@pytest.fixture(scope="session")
def oracle() -> dict[int, float]:
    """Test values by number, each computed elsewhere in two independent ways."""
    with (shared_folder("oracles") / "preference.csv").open(newline="", encoding="utf-8") as file:
        return {int(row["id"]): float(row["mpmath/independent"]) for row in csv.DictReader(file)}


class HeavyOracle:
    """Test values of heavy-tailed estimation, each computed elsewhere in two ways; `asked`: whose rows were."""

    def __init__(self, path: Path) -> None:
        with path.open(newline="", encoding="utf-8") as file:
            self.values = {row["name"]: float(row["value"]) for row in csv.DictReader(file)}
        self.asked: set[str] = set()

    def __call__(self, start: str) -> float:
        """The value of this name, or the only one whose name starts so."""
        (name,) = [start] if start in self.values else [name for name in self.values if name.startswith(start)]
        self.asked.add(name)
        return self.values[name]


@pytest.fixture(scope="session")
def heavy_oracle() -> HeavyOracle:
    """Reads a test value of heavy-tailed estimation by name."""
    return HeavyOracle(shared_folder("oracles") / "heavy_tailed.csv")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`, a file's tests share a process, and so do all that share one list of oracle rows asked for."""
    from xdist.scheduler import LoadFileScheduling

    asking = {path.as_posix() for path in TESTS.rglob("test_*.py") if "heavy_oracle" in path.read_text("utf-8")}

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "oracle" if (TESTS.parent / file).as_posix() in asking else file

    config.option.loadscopereorder = False  # files stay in the order of collection
    return ByFile(config, log)


def spread(files: list[Path]) -> list[Path]:
    """Files in an order that keeps all cores busy: what starts real processes, and waits for them, is spread over the
    first part of a run, so that others compute meanwhile, and short files end it.
    """
    waiting = [file for file in files if file.parent.name in WAITING]
    others = [file for file in files if file.parent.name not in WAITING]
    places = {file: EARLY * place / len(waiting) for place, file in enumerate(waiting)}
    places |= {file: place / len(others) for place, file in enumerate(others)}
    return sorted(files, key=lambda file: places[file])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files are spread; the test of which oracle rows were asked for comes after those that ask."""
    places = {file: place for place, file in enumerate(spread(list(dict.fromkeys(item.path for item in items))))}
    items.sort(key=lambda item: (item.path.name == "test_every_row.py", places[item.path]))


@pytest.fixture(scope="session")
def accountant() -> ModuleType:
    """Google's privacy loss distributions: the extra `accounting`, and under CI always there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if os.environ.get("CI") == "true":
            return importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
        found: ModuleType = pytest.importorskip(
            "dp_accounting.pld.privacy_loss_distribution", reason="needs the extra `accounting`"
        )
        return found
