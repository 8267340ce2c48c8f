"""A figure of private optimisation about heavy-tailed records: rounds of descent, in-process."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.sources.synthetic_records import SyntheticRecords
from protocol.codec import decode_reply, decode_task
from protocol.coins import Address, Stream, normal, words
from protocol.grid import truncate
from protocol.messages import Refusal, Task
from protocol.study import Cell, Study
from protocol.study_file import parse
from protocol.threads import spread
from server.listening import Ask
from server.record_rounds import opening
from server.rounds import play
from studies.bench.figure import Prepared, Side
from studies.in_process import InProcess, in_process

Floats = NDArray[np.float64]
SEED, DIMENSION, STEP, RADIUS = 13, 20, 0.25, 2.0


@dataclass(frozen=True, eq=False)
class _Data:
    """Records, the bound of a gradient's coordinates, and what is added to the mean of each round."""

    features: Floats
    responses: Floats
    bound: float
    noise: Floats

    def gradients(self, w: Floats) -> Floats:
        """Bounded gradients in one vectorised pass, (n, d)."""
        return np.clip((self.features @ w - self.responses)[:, None] * self.features, -self.bound, self.bound)

    def descend(self) -> Floats:
        """The rounds in plain numpy."""
        w, path = np.zeros(DIMENSION), []
        for each in self.noise:
            w = w - STEP * (self.gradients(w).mean(axis=0) + each)
            w *= min(1.0, RADIUS / float(np.linalg.norm(w)))
            path.append(w)
        return np.asarray(np.mean(path, axis=0))

    def read(self) -> None:
        """Read the features once a round, on all cores."""
        parts = np.array_split(self.features, 8)
        for _ in self.noise:
            spread(np.max, parts)


def descent(small: bool) -> Prepared:
    """Least squares with Pareto noise before a curator, beside the same rounds in plain numpy; records are there.

    The limit is to read the features once a round, on all cores that the figure may use.
    """
    n, rounds = (5_000, 3) if small else (10**6, 20)
    study, cell = _study(n, rounds), Cell(n, 0, 1)
    room = in_process(study, np.full(DIMENSION, DIMENSION**-0.5), 1)
    data = _data(room, opening(study, cell, room.server)[0], rounds)

    def ours(ask: Ask = room.ask) -> object:
        return list(play(study, cell, ask, room.server))

    def agree() -> None:
        """Every sum that leaves the client is numpy's, but for products that round across a step of the grid."""
        said: list[tuple[bytes, bytes]] = []

        def ask(tasks: list[bytes]) -> list[bytes]:
            replies = room.ask(tasks)
            said.extend(zip(tasks, replies, strict=True))
            return replies

        ours(ask)
        assert len(said) == rounds
        for raw, reply in said:
            task, answered = decode_task(raw), decode_reply(reply)
            assert not isinstance(answered, Refusal) and task.theta is not None and task.exponent is not None
            sums = answered[0].report.payload.values[0, 0]
            plain = truncate(data.gradients(task.theta[0]), task.exponent).sum(axis=0)
            np.testing.assert_allclose(sums, plain, rtol=0, atol=100 * 2.0**task.exponent)

    peer, limit = Side("plain numpy", data.descend), Side("reading", data.read)
    return Prepared(Side("halftruth", ours), (peer,), n * rounds, "M rows/s", agree, limit)


def _data(room: InProcess, task: Task, rounds: int) -> _Data:
    """The records of a task's rows, which the client keeps from now on."""
    source = room.nodes[0].source
    assert isinstance(source, SyntheticRecords)
    x, y, _ = source.records(task, 0, np.arange(task.n)).reveal()
    bound = float(task.menu[0].get("threshold") or 0)
    coins = words(Address(SEED, Stream.METRICS), 0, rounds * DIMENSION)
    assert y is not None and bound
    return _Data(x[:, 0], y[:, 0], bound, normal(coins).reshape(rounds, DIMENSION) * (bound / task.n))


def _study(n: int, rounds: int) -> Study:
    arm: dict[str, Any] = {"trust": "central", "estimator": "descent", "rounds": rounds, "step": Decimal("0.25")}
    return parse(
        {
            "study": {"name": "records", "seed": SEED, "repetitions": 1},
            "problem": {"kind": "records", "model": "linear", "dimension": DIMENSION, "bound": 2},
            "records": {
                "features": "uniform(0, 1.7320508075688772)",
                "noise": "centred pareto(1.6)",
                "tail": Decimal("0.5"),
                "moment": Decimal("18.22"),
            },
            "grid": {"n": [n], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
            "arm": [arm],
        }
    )
