"""Where and with what figures were measured: processor, cores, load, versions."""

import os
import platform
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from protocol.version import version

LIBRARIES = ("numpy", "numba", "scipy", "flwr", "scikit-learn", "choix", "multi-freq-ldpy", "pfl")
Facts = dict[str, str | int | float]


def facts(load_before: float, command: str) -> Facts:
    """Plain values for each line of the JSON file; "" for what is not installed."""
    versions = {f"version_{name}": _version(name) for name in LIBRARIES}
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "load_before": round(load_before, 2),
        "load_after": round(load(), 2),
        "command": command,
        "version_halftruth": version(),
        "version_python": platform.python_version(),
        **versions,
    }


def told(found: Facts) -> str:
    """The same for people, in one line."""
    names = ("halftruth", "python", *LIBRARIES)
    versions = ", ".join(f"{name} {found[f'version_{name}']}" for name in names if found[f"version_{name}"])
    busy = f"load {found['load_before']} before and {found['load_after']} after"
    return f"{found['processor']}, {found['cores']} cores, {busy}; {versions}"


def load() -> float:
    """The load average of the last minute; NaN where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def processor() -> str:
    """The processor's name, as the system has it."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text("utf-8").splitlines() if listed.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except PackageNotFoundError:
        return ""
