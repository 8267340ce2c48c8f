"""A server that raises ends its run in words, and leaves no outcome."""

import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from client.sources.synthetic import write_truth
from protocol.runconfig import write
from protocol.study_file import parse
from server.app import RunFailed, app

STUDY = """
study = { name = "two", seed = 11, repetitions = 1 }
problem = { kind = "pairwise", dimension = 4, features = "gaussian" }
grid = { n = [2] }
arm = [{ trust = "clear", estimator = "mle" }]
"""


def test_a_server_that_raises_says_why(
    grid: Any, virtual: Callable[[int], list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two comparisons in four dimensions have no minimiser."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    study = parse(tomllib.loads(STUDY, parse_float=Decimal))
    truth = write_truth(np.array([0.75, 0.25, -0.25, -0.75]))
    config = {**write(study), "truth": truth, "deadline": 5.0, "clients": 2}
    with pytest.raises(RunFailed, match="minimiser") as caught:
        app(grid(virtual(2), config), Context(1, 1, {}, RecordDict(), config))
    assert (tmp_path / "failed.txt").read_text("utf-8") == f"{caught.value}\n"
    assert not list(tmp_path.glob("cell-*")) and not (tmp_path / "done").exists()
