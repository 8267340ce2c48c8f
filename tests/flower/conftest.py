"""A Grid in memory: real Flower messages and records between the real apps, in milliseconds and in one process."""

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from client.app import app as client_app
from client.sources.synthetic import write_truth
from protocol.runconfig import write
from protocol.study import Study, cells
from server.app import app as server_app
from server.outcome import Outcome
from server.outcome_record import cell_name, encode
from studies.in_process import run_cell

SERVER = 1
Change = Callable[[Message, Message], Iterable[Message]]  # (asked, reply) -> what arrives at once


class LocalGrid(Grid):
    """Nodes that answer as soon as they are asked; `change` sees each message and its reply, and says what arrives."""

    def __init__(self, node_configs: Sequence[dict[str, Any]], run_config: dict[str, Any]) -> None:
        self.contexts = {
            100 + index: Context(1, 100 + index, dict(config), RecordDict(), dict(run_config))
            for index, config in enumerate(node_configs)
        }
        self.change: Change = lambda asked, reply: [reply]
        self.arrived: list[Message] = []
        self.pulls = 0
        self.lock = threading.Lock()  # a server looks from several threads

    def set_run(self, run: Run) -> None:
        """Nothing to do."""

    @property
    def run(self) -> Run:
        """There is none."""
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        """Deprecated in Flower."""
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        """All nodes."""
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Let every node answer."""
        names = []
        for message in messages:
            name = message.object_id
            message.metadata.__dict__["_message_id"] = name
            names.append(name)
            self.arrived.extend(self.change(message, self._answer(message)))
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Everything that arrived, wanted or not: a SuperLink is not trusted to sort it."""
        with self.lock:
            self.pulls += 1
            arrived, self.arrived = self.arrived, []
            return arrived

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Flower's own loop, which sleeps for seconds."""
        raise NotImplementedError

    def _answer(self, message: Message) -> Message:
        try:
            return client_app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as error:  # as flwr-clientapp does
            return Message(Error(code=2, reason=f"{type(error)}:<'{error}'>"), reply_to=message)


@pytest.fixture(autouse=True)
def task_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages can be made, as inside a Flower task of the server."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, SERVER)


@pytest.fixture
def virtual() -> Callable[[int], list[dict[str, Any]]]:
    """Node configurations as Flower's simulation engine makes them."""
    return lambda clients: [{"partition-id": index, "num-partitions": clients} for index in range(clients)]


@pytest.fixture
def grid() -> type[LocalGrid]:
    """The grid's class: test modules cannot import this file."""
    return LocalGrid


@pytest.fixture
def same_bits(
    grid: type[LocalGrid],
    virtual: Callable[[int], list[dict[str, Any]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Study, np.ndarray, int], list[Outcome]]:
    """Run a study of one cell over both apps, hold every field to the in-process runtime's, and give the outcomes."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))

    def run(study: Study, truth: np.ndarray, clients: int) -> list[Outcome]:
        config = {**write(study), "truth": write_truth(truth), "deadline": 5.0, "clients": clients}
        server_app(grid(virtual(clients), config), Context(1, 1, {}, RecordDict(), config))
        (cell,) = cells(study)
        lines = (tmp_path / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
        expected = list(run_cell(study, truth, cell))
        assert lines == [encode(outcome, study) for outcome in expected]
        return expected

    return run
