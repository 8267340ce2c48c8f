"""What a result was computed with: versions, processor, numerics."""

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from protocol.numerics import fingerprint
from protocol.version import version

LIBRARIES = ("numba", "numpy", "protobuf", "pyarrow", "scipy")


def describe() -> dict[str, Any]:
    """Versions, numerics fingerprint and machine as plain values for study.json; no names of hosts or users."""
    return {
        "versions": {
            "halftruth": version(),
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in LIBRARIES},
        },
        "numerics": fingerprint().hex(),
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }


def kernels_kept() -> bool:
    """Whether compiled kernels of the present source are kept; True where that cannot be known."""
    source, chosen = Path(__file__).resolve().parents[1] / "server", os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(chosen) if chosen else source / "__pycache__"
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):  # then numba has a place of its own
        return True
    newest = max(path.stat().st_mtime_ns for path in source.glob("kernels*.py"))
    return any(path.stat().st_mtime_ns >= newest for path in folder.rglob("kernels*.nbi"))
