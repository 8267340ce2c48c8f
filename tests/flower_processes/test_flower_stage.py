"""The bundle: what crosses the border and no more, the same bytes from wherever it is staged."""

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deploy.processes import program
from deploy.stage import PACKAGES, declared, stage, toml
from protocol import runconfig
from studies.load import load

ROOT = Path(__file__).parents[2]


def bundle(app: Path) -> str:
    """SHA-256 of the bundle that Flower makes of a folder."""
    home = {"FLWR_HOME": str(app.parent / "flower"), "FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_TELEMETRY_ENABLED": "0"}
    done = subprocess.run(
        [program("flwr"), "build", "--app", str(app)],
        cwd=app.parent,
        env={**os.environ, **home},
        capture_output=True,
        text=True,
        check=False,
    )
    (made,) = list(app.parent.glob("*.fab")) or pytest.fail(done.stdout + done.stderr)
    return hashlib.sha256(made.read_bytes()).hexdigest()


def test_two_stagings_from_folders_of_any_name_are_one_bundle(tmp_path: Path) -> None:
    checkout = tmp_path / "a name, with spaces 1.0"
    for package in (*PACKAGES, "studies"):
        shutil.copytree(ROOT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "LICENSE", checkout)
    (checkout / "client" / "labels.csv").write_text("a secret")
    (tmp_path / "there").mkdir()
    code = "import sys; from pathlib import Path; from deploy.stage import stage; stage(Path(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there" / "app")],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=True,
    )
    (tmp_path / "here").mkdir()
    here = stage(tmp_path / "here" / "app")
    assert sorted(path.name for path in here.iterdir()) == sorted(["LICENSE", *PACKAGES, "pyproject.toml"])
    assert not list((tmp_path / "there").rglob("*.csv"))
    assert bundle(here) == bundle(tmp_path / "there" / "app")


def test_every_key_of_a_run_is_declared_with_its_type(small: Path) -> None:
    told = {**runconfig.write(load(small).study), runconfig.LET_THROUGH: "[]"}
    assert {key: type(value) for key, value in told.items()} == {key: type(v) for key, v in declared().items()}
    recipe = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert set(recipe["tool"]["flwr"]["app"]["config"]) == set(declared())
    assert recipe["tool"]["flwr"]["app"]["components"] == {
        "serverapp": "server.app:app",
        "clientapp": "client.app:app",
    }


def test_a_configuration_comes_out_of_its_file_as_it_went_in(small: Path) -> None:
    told = {**runconfig.write(load(small).study, clients=3), "text": 'line\nanother "quoted" \\ \x7f \x01 ünïcödé 🂡'}
    assert tomllib.loads(toml(told)) == told


@pytest.mark.slow
def test_an_installed_wheel_stages_the_same_bundle(tmp_path: Path) -> None:
    for name in ("source", "here", "there"):
        (tmp_path / name).mkdir()
    for package in (*PACKAGES, "studies", "LICENSE", "README.md", "pyproject.toml"):
        (shutil.copytree if (ROOT / package).is_dir() else shutil.copy)(ROOT / package, tmp_path / "source" / package)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), str(tmp_path / "source")], check=True)
    code = "import sys; from pathlib import Path; from deploy.stage import stage; stage(Path(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there" / "app")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        check=True,
    )
    assert importlib.import_module("client").__file__ != str(tmp_path / "site" / "client" / "__init__.py")
    assert bundle(stage(tmp_path / "here" / "app")) == bundle(tmp_path / "there" / "app")
