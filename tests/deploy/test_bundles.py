"""What an operator pins is what a run of the same installation ships."""

from pathlib import Path

import pytest

from deploy.bundles import built, sha256
from deploy.processes import FlowerFailed
from deploy.stage import stage
from studies.cli import main


def test_the_shown_bundle_is_the_one_that_is_shipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "--show-bundle"]) == 0
    assert capsys.readouterr().out.strip() == sha256(built(stage(tmp_path / "app"), tmp_path))


def test_what_is_no_app_is_told(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    with pytest.raises(FlowerFailed, match="flwr build failed"):
        built(tmp_path / "app", tmp_path)
