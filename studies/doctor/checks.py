"""What is looked at: each check is a function of what was asked, and says what it found and what to do."""

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from packaging.requirements import Requirement

from protocol.counting import counted
from protocol.version import version
from studies.doctor import machine

OK, WARN, FAIL = "ok", "warning", "missing"
DISTRIBUTION, INSTALL = "halftruth", "pip install -c requirements.lock -e ."
PROGRAMS = ("flower-superlink", "flower-supernode", "flwr")
EXTRAS = {  # a module that each brings
    "simulation": "ray",
    "zst": "zstandard",
    "learn": "sklearn",
    "mlflow": "mlflow",
    "tensorboard": "tensorboard",
    "text": "wordllama",
    "accounting": "dp_accounting",
}
LEAST_MEMORY, LEAST_DISK = 2 << 30, 1 << 30


@dataclass(frozen=True)
class Asked:
    """The folder for state, and the port that a server is to have (None: any)."""

    state: Path
    port: int | None = None


@dataclass(frozen=True)
class Finding:
    """`verdict` is ok, warning (something will be slower, or is not offered) or missing; `advice` says what to do."""

    name: str
    verdict: str
    found: str
    advice: str = ""


def examine(asked: Asked) -> list[Finding]:
    """All findings, in the order of the table."""
    return [finding for check in CHECKS for finding in check(asked)]


def _installation(_: Asked) -> list[Finding]:
    name = f"{DISTRIBUTION} {version()} on Python {platform.python_version()}"
    if _version(DISTRIBUTION) == "none":
        return [Finding("installation", FAIL, f"{name}, from a folder", f"{INSTALL}, in that folder")]
    return [Finding("installation", OK, name)]


def _packages(_: Asked) -> list[Finding]:
    """Versions of what is needed, against those that this version takes."""
    if _version(DISTRIBUTION) == "none":
        return []
    wanted = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    needed = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    wrong = [f"{each.name}{each.specifier} (here: {_version(each.name)})" for each in needed if not _fits(each)]
    if wrong:
        return [Finding("packages", FAIL, ", ".join(wrong), INSTALL)]
    return [Finding("packages", OK, f"Flower {_version('flwr')}, numpy {_version('numpy')}, scipy {_version('scipy')}")]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _fits(wanted: Requirement) -> bool:
    here = _version(wanted.name)
    return here != "none" and wanted.specifier.contains(here, prereleases=True)


def _programs(_: Asked) -> list[Finding]:
    from deploy.processes import FlowerFailed, program

    try:
        for name in PROGRAMS:
            program(name)
    except FlowerFailed as error:
        return [Finding("Flower's programs", FAIL, str(error), "install into an environment of its own, and use that")]
    return [Finding("Flower's programs", OK, ", ".join(PROGRAMS))]


def _extras(_: Asked) -> list[Finding]:
    lacking = [extra for extra, module in EXTRAS.items() if util.find_spec(module) is None]
    if not lacking:
        return [Finding("extras", OK, ", ".join(EXTRAS))]
    advice = f"only where you want them: pip install '{DISTRIBUTION}[{','.join(lacking)}]'"
    return [Finding("extras", OK, f"without {', '.join(lacking)}", advice)]


def _compiler(_: Asked) -> list[Finding]:
    try:
        import numba
    except Exception as error:  # whatever an installation that does not fit makes it raise
        return [Finding("compiler", FAIL, f"numba does not start: {error}", "pip install --force-reinstall numba")]
    kept = Path(__file__).resolve().parents[2] / "server"
    chosen = os.environ.get("HALFTRUTH_KERNELS") or os.environ.get("NUMBA_CACHE_DIR")
    if not machine.writable(Path(chosen) if chosen else kept):
        advice = (
            "kernels are compiled anew each time, most of a minute: set HALFTRUTH_KERNELS to a folder that is yours"
        )
        return [Finding("compiler", WARN, f"numba {numba.__version__}, nowhere to keep what it makes", advice)]
    return [Finding("compiler", OK, f"numba {numba.__version__}")]


def _size(_: Asked) -> list[Finding]:
    cores, memory = machine.cores(), machine.memory()
    found = counted(cores, "core") + (f", {memory / 2**30:.1f} GiB of memory" if memory else "")
    if memory and memory < LEAST_MEMORY:
        return [Finding("size", WARN, found, "large studies want 2 GiB and more: run with --jobs 1")]
    return [Finding("size", OK, found)]


def _state(asked: Asked) -> list[Finding]:
    folder = asked.state
    why = machine.keeps(folder)
    if why:
        return [Finding("state", FAIL, f"{folder}: {why}", "choose a folder on a local disk: --state DIR")]
    free = machine.free_space(folder)
    found = f"{folder}, {free / 2**30:.1f} GiB free"
    if free < LEAST_DISK:
        return [Finding("state", WARN, found, "ledgers and journals fail closed on a full disk: make room")]
    return [Finding("state", OK, found)]


def _clock(_: Asked) -> list[Finding]:
    sure, words = machine.clock()
    if sure is False:
        return [Finding("clock", WARN, words, "keys and certificates are checked by time: set the clock, or start NTP")]
    return [Finding("clock", OK, words)]


def _ports(asked: Asked) -> list[Finding]:
    from deploy.ports import HOST, free_port, taken

    if not machine.loopback():
        return [Finding("ports", FAIL, f"nothing can be reached on {HOST}", "let local programs talk over loopback")]
    port = asked.port or free_port()
    holder = taken("0.0.0.0" if asked.port else HOST, port)
    if holder:
        return [Finding("ports", FAIL, f"port {port} is taken: {holder}", "end that, or choose another: --port N")]
    return [Finding("ports", OK, f"loopback; {f'port {port} is free' if asked.port else 'free ports are there'}")]


def _proxies(_: Asked) -> list[Finding]:
    names = ("grpc_proxy", "https_proxy", "http_proxy")
    proxies = sorted(name for name in os.environ if name.lower() in names and os.environ[name])
    if not proxies:
        return [Finding("proxies", OK, "none")]
    advice = "nodes would look for their server through it: set no_proxy to the server's name where that is not wanted"
    return [Finding("proxies", WARN, ", ".join(proxies), advice)]


def _system(_: Asked) -> list[Finding]:
    if sys.platform != "linux":
        advice = "studies run in-process; federations are tested on Linux only"
        return [Finding("system", WARN, f"{platform.system()} {platform.machine()}", advice)]
    return [Finding("system", OK, f"{platform.system()} {platform.machine()}")]


CHECKS: tuple[Callable[[Asked], list[Finding]], ...] = (
    _installation,
    _packages,
    _programs,
    _extras,
    _compiler,
    _system,
    _size,
    _state,
    _clock,
    _ports,
    _proxies,
)
