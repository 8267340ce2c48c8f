"""What a container image is built from has all that it runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def seen_by_a_build() -> set[str]:
    """Files that the list lets a build see, by the plain patterns that it has."""
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    files: set[str] = set()
    for path in (found for pattern in allowed for found in ROOT.glob(pattern)):
        files |= {str(each.relative_to(ROOT)) for each in (path.rglob("*") if path.is_dir() else [path])}
    return {name for name in files if "__pycache__" not in name and (ROOT / name).is_file()}


def test_an_image_has_every_module() -> None:
    packages = ("client", "deploy", "protocol", "server", "studies")
    modules = {str(path.relative_to(ROOT)) for package in packages for path in (ROOT / package).rglob("*.py")}
    marks = {f"{package}/py.typed" for package in packages}
    assert modules | marks <= seen_by_a_build()


@pytest.mark.slow
def test_what_an_image_installs_serves(tmp_path: Path) -> None:
    """Without a daemon to build it: what the build sees is installed, and asked for its commands."""
    for name in seen_by_a_build():
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "src" / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), str(tmp_path / "src")], check=True)
    code = (
        "import deploy.flower_private.superlink as used, deploy.plugin.mod, deploy.health, sys\n"
        "from studies.cli import main\n"
        "assert used.__file__.startswith(sys.argv[1]), used.__file__\n"
        "sys.exit(main(['certs', 'certs', '--host', 'localhost']) or main(['node', '--show-bundle']))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path / "site")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
