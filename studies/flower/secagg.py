"""Flower's own SecAgg+ on given vectors, its workflow and its mod in one process: a peer to measure beside."""

import time
from collections.abc import Iterable, Sequence
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitIns, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.common import recorddict_compat as compat
from flwr.server import LegacyContext
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.supercore.task_identity import TaskIdentity
from numpy.typing import NDArray

from studies.bench.sessions import Stage, table

RANGE = 1 << 22


class _Grid:
    """Nodes that answer by Flower's mod; every exchange is timed, and its records' bytes are counted."""

    def __init__(self, vectors: NDArray[np.uint64]) -> None:
        self.vectors, self.stages, self._since = vectors, list[Stage](), time.perf_counter()
        self.contexts = {1 + client: Context(1, 1 + client, {}, RecordDict(), {}) for client in range(len(vectors))}

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Sequence[Message]:
        begin = time.perf_counter()
        stage = Stage(str(len(self.stages)), server=begin - self._since)
        replies = []
        for message in messages:
            stage.sent += _size(message)
            context = self.contexts[message.metadata.dst_node_id]
            reply = secaggplus_mod(deepcopy(message), context, self._fit)  # it takes apart what it gets
            stage.came += _size(reply)
            replies.append(reply)
        self._since = time.perf_counter()
        stage.clients = self._since - begin
        self.stages.append(stage)
        return replies

    def end(self) -> float:
        return time.perf_counter() - self._since

    def _fit(self, message: Message, context: Context) -> Message:
        values = self.vectors[message.metadata.dst_node_id - 1].astype(np.float64) / RANGE
        result = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([values]), 1, {})
        return Message(compat.fitres_to_recorddict(result, False), reply_to=message)


def _size(message: Message) -> int:
    """Bytes of what its records hold, and their names; Flower's envelope of some hundred bytes is left out."""
    return sum(len(name) + _bytes(record) for name, record in message.content.items())


def _bytes(record: Any) -> int:
    total = 0
    for key, value in record.items():
        total += len(key)
        if hasattr(value, "data"):
            total += len(value.data)
        elif isinstance(value, bytes | str):
            total += len(value)
        elif isinstance(value, list):
            total += sum(len(one) if isinstance(one, bytes | str) else 8 for one in value)
        else:
            total += 8
    return total


def compared(vectors: NDArray[np.uint64], shares: int, threshold: int) -> str:
    """What SecAgg+ with so many shares, and so many of them to open a secret, spends on the mean of these vectors."""
    for name in ("_run_id", "_node_id", "_task_id"):  # as inside a task of Flower's server
        setattr(TaskIdentity, name, 1)
    grid = _Grid(vectors)
    empty = ndarrays_to_parameters([np.zeros(vectors.shape[1])])
    proxies = [(SimpleNamespace(node_id=node), FitIns(empty, {})) for node in grid.contexts]
    found: list[Any] = []

    def aggregate_fit(_: int, results: list[Any], failures: list[Any]) -> tuple[Any, dict[str, Any]]:
        found.extend(results)
        return results[0][1].parameters, {}

    strategy = SimpleNamespace(configure_fit=lambda *_: proxies, aggregate_fit=aggregate_fit)
    context = LegacyContext(Context(1, 0, {}, RecordDict(), {}), strategy=strategy)  # type: ignore[arg-type]
    context.client_manager = SimpleNamespace(num_available=lambda: len(proxies))  # type: ignore[assignment]

    context.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    context.state.array_records[MAIN_PARAMS_RECORD] = compat.parameters_to_arrayrecord(empty, True)
    workflow = SecAggPlusWorkflow(shares, threshold, max_weight=1.0, clipping_range=1.0, quantization_range=RANGE)
    begin, cpu = time.perf_counter(), time.process_time()
    workflow(grid, context)  # type: ignore[arg-type]
    after = grid.end()
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    (mean,) = parameters_to_ndarrays(found[0][1].parameters)
    off = float(np.abs(mean - vectors.mean(axis=0) / RANGE).max())
    head = f"Flower's SecAgg+, {shares} shares, {threshold} of them: within {off:.1e} of the plain mean"
    return f"{head}; {wall:.1f} s, {cpu:.1f} s of processor\n{table(grid.stages, after, len(vectors))}"
