"""`halftruth records`: wrong requests are told before a ledger is made, and what is only simulated is called so."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.cli import main

N = 60
ADDRESSED = ("--public-data", "--coins", "addressed", "--seed", "7")
CENTRAL = ("--trust", "central", "--epsilon", "2", "--threshold", "2", "--id", "id")
LINEAR = ("--columns", "x", "--model", "linear", "--response", "y", "--step", "0.1")


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """Sixty records of two numbers and one of three texts."""
    values = np.random.default_rng(5).uniform(0, 1, size=(N, 2))
    lines = [f"c{row},{x!r},{y!r},{('yes', 'no', 'so')[row % 3]}" for row, (x, y) in enumerate(values.tolist())]
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(["id,x,y,z", *lines]) + "\n", encoding="utf-8")
    return path


def refused(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> str:
    """What is said where the command is wrong use; no folder is made."""
    assert main(["records", str(path), *words, "--state", str(path.parent / "state")]) == 2
    assert not (path.parent / "state").exists()
    return capsys.readouterr().err


def answered(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> dict[str, Any]:
    assert main(["records", str(path), *words, "--state", str(path.parent / "state"), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*LINEAR, "--batches", "disjoint", "--rounds", "61"), "at least 61 rows"),
        (("--columns", "x", "--estimator", "median-of-means", "--groups", "7000"), "at most 1000 groups"),
    ],
)
def test_what_cannot_begin_makes_no_ledger(
    losses: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert said in refused(capsys, losses, *words, *CENTRAL)


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (("--columns", "x,z=yse"), "--columns"),
        (("--columns", "x", "--model", "logistic", "--response", "z=yse", "--step", "1"), "--response"),
    ],
)
def test_a_text_that_no_cell_has_is_told_with_how_many_there_are(
    losses: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], flag: str
) -> None:
    """And not which: what is misspelt is seen by whoever knows the file."""
    said = refused(capsys, losses, *words, *CENTRAL)
    assert f"{flag}: expected a text of the column z, which has 3 different texts, got 'z=yse'" in said
    assert "'yes'" not in said and "so" not in said.split()


def test_noise_that_is_only_simulated_is_not_promised_with_other_coins(
    losses: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = ("--columns", "x", "--trust", "local", "--epsilon", "2", "--threshold", "2", "--id", "id", *ADDRESSED)
    simulated = answered(capsys, losses, *local, "--mechanism", "gaussian")["guarantee"]
    assert "can only be simulated" in simulated and "system's coins" not in simulated
    assert "With the system's coins: epsilon = 2" in answered(capsys, losses, *local)["guarantee"]


def test_constants_by_hand_take_the_place_of_a_law_that_nobody_knows(
    losses: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--columns", "x", "--model", "linear", "--response", "y", "--intercept", *CENTRAL, *ADDRESSED)
    sparse = ("--estimator", "hard-thresholding", "--curvature", "0.5", "--smoothness", "1")
    found = answered(capsys, losses, *words, *sparse, "--sparsity", "1")
    assert sum(value != 0 for value in found["estimate"].values()) == 1
    assert answered(capsys, losses, *words, *sparse, "--support", "1")["options"]["support"] == "1"
    assert "curvature and smoothness" in refused(capsys, losses, *words, *sparse[:2], "--sparsity", "1")
