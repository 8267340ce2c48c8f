"""What a result was computed with: versions, processor, numerics."""

import os
import platform
from importlib import metadata
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
