"""Who can read a node's files: they should be its user's alone."""

import os
import stat
from pathlib import Path


def open_to_others(path: Path) -> bool:
    """Whether the file's mode lets anybody but its owner in; never where systems have no such modes. Raises OSError."""
    return os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO))


def readable_by_others(path: Path) -> bool:
    """Whether others may read the file itself; who may look into its folder is not asked. Raises OSError."""
    return os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & (stat.S_IRGRP | stat.S_IROTH))
