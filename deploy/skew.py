"""The version that a bundle of code says it has, and that of this installation: both ends of a federation have one.

Standard library only: it is read by a SuperNode, which holds nothing of the client.
"""

import io
import tomllib
import zipfile
from importlib import metadata

DISTRIBUTION, UNKNOWN = "halftruth", "0.0.0"
RECIPE, LONGEST, LONGEST_VERSION = "pyproject.toml", 1 << 20, 40


def own_version() -> str:
    """What a bundle that is staged here says."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return UNKNOWN


def version_of(bundle: bytes) -> str:
    """What a bundle says; "" where it says nothing that can be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as packed, packed.open(RECIPE) as file:
            recipe = tomllib.loads(file.read(LONGEST).decode("utf-8"))
        return str(recipe["project"]["version"])[:LONGEST_VERSION]
    except Exception:  # whatever a server makes readers of archives and of TOML do
        return ""
