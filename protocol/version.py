"""The version of this installation: what a result was computed with, and what two ends compare."""

from importlib import metadata

DISTRIBUTION = "halftruth"


def version() -> str:
    """The installed version of halftruth; "unknown" where the packages are run without being installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"
