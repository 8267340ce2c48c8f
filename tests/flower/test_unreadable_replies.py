"""A node whose reply is no message of Flower's: the Grid's call fails with all that it would have brought, a run does
not; nobody but that node is missing, and it is named."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Error, Message, RecordDict

from client.sources.synthetic import write_truth
from protocol.runconfig import read, write
from protocol.study import Study, cells
from protocol.trust import Trust
from server.app import RunFailed
from server.app import app as server_app
from server.outcome_record import cell_name, decode

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
LIAR, NODES = 101, 3


class Line(Exception):
    """Nothing can be asked."""


def losing(grid: Any, line: bool = True) -> Any:
    """A Grid like Flower's: where a call meets what is no message, it raises, and what it held is gone."""

    class Losing(grid):  # type: ignore[misc]
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.asked: dict[str, Message] = {}
            self.gone: set[str] = set()

        def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
            sent = list(messages)
            names = list(super().push_messages(sent))
            self.asked |= dict(zip(names, sent, strict=True))
            return names

        def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
            wanted = set(message_ids)
            with self.lock:
                here = [message for message in self.arrived if message.metadata.reply_to_message_id in wanted]
                self.arrived = [message for message in self.arrived if message not in here]
                if any(message.metadata.src_node_id == LIAR for message in here):
                    self.gone |= {message.metadata.reply_to_message_id for message in here}
                    raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "a label")
                lost, self.gone = self.gone & wanted, self.gone - wanted
            return here + [Message(Error(code=3, reason=""), reply_to=self.asked[name]) for name in sorted(lost)]

        def get_node_ids(self) -> Iterable[int]:
            if self.asked and not line:
                raise Line("the line is broken")
            return list(super().get_node_ids())

    return Losing


def study() -> Study:
    found = read({}).study
    arms = tuple(arm for arm in found.arms if arm.trust is Trust.LOCAL)
    return replace(found, repetitions=2, grid=replace(found.grid, n=(30, 60)), arms=arms)


def run(room: Any, virtual: Any, mode: str) -> None:
    config = {**write(study()), "truth": write_truth(THETA), "deadline": 5.0, "mode": mode}
    server_app(room(virtual(NODES), config), Context(1, 1, {}, RecordDict(), config))


@pytest.fixture
def outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    return tmp_path


def test_a_live_run_goes_on_without_the_one_that_sent_it(
    grid: Any, virtual: Any, outcomes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="flwr"):
        run(losing(grid), virtual, "live")
    for cell in cells(study()):
        for line in (outcomes / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines():
            found = decode(line, study())
            assert (
                not found.arm.trust
                or found.warnings[-1] == f"rows-missing: {cell.n * 2 // 3} of {cell.n} rows answered"
            )
    assert "node 101: failed (Flower's error -1: what it sent is no message)" in caplog.text
    assert "answered: 4, failed: 5" in caplog.text  # the first time three are lost, and asked again
    assert "a label" not in caplog.text


def test_a_strict_run_names_the_one_that_sent_it(grid: Any, virtual: Any, outcomes: Path) -> None:
    with pytest.raises(RunFailed, match=r"expected a reply of node 101, got none: .*what it sent is no message"):
        run(losing(grid), virtual, "strict")


def test_a_broken_line_is_nobody_s_reply(grid: Any, virtual: Any, outcomes: Path) -> None:
    with pytest.raises(RunFailed, match="the line is broken"):
        run(losing(grid, line=False), virtual, "live")
