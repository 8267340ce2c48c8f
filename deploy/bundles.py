"""Bundles of code by their SHA-256: which one this installation stages, and so what an operator pins."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from deploy.processes import QUIET, FlowerFailed, program
from deploy.stage import stage

SECONDS = 120.0  # an idle machine takes three


def sha256(bundle: bytes) -> str:
    """The name of a bundle, in 64 hexadecimal digits."""
    return hashlib.sha256(bundle).hexdigest()


def staged_bundle() -> bytes:
    """The bundle that a run of this installation ships, the same bytes from any checkout or installation of one code.

    Raises FlowerFailed.
    """
    with tempfile.TemporaryDirectory(prefix="halftruth-") as name:
        home = Path(name)
        return built(stage(home / "app"), home)


def built(app: Path, home: Path) -> bytes:
    """Flower's bundle of an app in a folder; Flower's own files go to `home`. Raises FlowerFailed."""
    done = subprocess.run(
        [program("flwr"), "build", "--app", str(app)],
        cwd=home,
        env={**os.environ, **QUIET, "FLWR_HOME": str(home / "flower")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    made = list(home.glob("*.fab"))
    if len(made) != 1:
        said = " ".join((done.stdout + done.stderr).split())[-300:]
        raise FlowerFailed(f"flwr build failed: {said}")
    return made[0].read_bytes()
