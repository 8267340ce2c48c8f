"""A private choice of a threshold in a live round that hardly anybody answers."""

from decimal import Decimal
from pathlib import Path

import pytest

from client.labeler import answer
from protocol.strict import StudyError
from protocol.study import cells
from server.listening import quorum
from server.rounds import play
from studies.in_process import in_process
from studies.load import build, tables

STUDY = Path(__file__).resolve().parents[3] / "studies/toml/heavy-mean.toml"


def test_thresholds_that_nobody_answered_about_are_counted() -> None:
    content = tables(STUDY, ["study.repetitions=1", "grid.n=[1000]", "grid.epsilon=[1.0]"])
    content["arm"] = [{"trust": "local", "estimator": "mean", "threshold": "private", "choice_share": Decimal("0.4")}]
    loaded = build(content, STUDY.parent)
    room = in_process(loaded.study, loaded.truth, 100)

    def ask(tasks: list[bytes]) -> list[bytes]:
        """Only the first of a hundred nodes is there, with ten rows."""
        return [answer(raw, room.nodes[0]) for raw in tasks]

    with pytest.raises(StudyError, match=r"expected an answer about each of .* thresholds, got none about"):
        list(play(loaded.study, cells(loaded.study)[0], ask, room.server, quorum))
