"""Many clients with one label each, and a long stream of labels: through client, messages and estimator."""

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.labels import Labels
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources import Facts, ProblemUnknown
from protocol.codec import encode_task
from protocol.coins import Address, Stream, words
from protocol.messages import Mechanism, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.study import cells
from protocol.terms import law
from protocol.trust import Trust
from server.estimators.base import Estimate, Options
from server.estimators.minimiser import debiased
from server.estimators.pair_sums import PairSums, by_pair
from server.listening import listen
from server.rounds import play
from studies.bench.by_pfl import by_pfl
from studies.bench.figure import Prepared, Side, installed
from studies.bench.measure import timed
from studies.flower.simulated import by_flower
from studies.in_process import InProcess, in_process
from studies.load import Loaded, build
from studies.run import run

SEED, CELLS = 7, 2
HELD = 1 << 13  # replies that a reader holds at once
RR = Mechanism.of("randomized-response", epsilon=Decimal(1))


def clients(small: bool) -> Prepared:
    """As many clients as labels in two cells of a study, over two processes; others do a share of them.

    The limit is what no runtime that carries bytes can avoid: an object for each reply, made and joined with others.
    """
    n, few, some, nodes = (200, 200, 200, 2) if small else (500_000, 20_000, 20_000, 400)
    loaded, alone = _study(n), _study(few)
    room = in_process(alone.study, alone.truth, few)
    one = max(islice(room.replies([_asked(alone, few)]), few), key=len)
    each = replace(room, nodes=tuple(room.nodes))  # nobody answers for others
    jobs = 1 if small else min(CELLS, os.cpu_count() or 1)

    def objects() -> None:
        text, size = one * HELD, len(one)
        for _ in range(0, CELLS * n // jobs, HELD):
            b"".join([text[at : at + size] for at in range(0, len(text), size)])

    whole = CELLS * n
    peers = [Side("halftruth, clients one by one, one core", lambda: _heard(alone, each), few / whole)]
    if installed("pfl"):
        peers.append(Side("pfl, one core", by_pfl(some), some / whole))
    if installed("ray") and not small:  # it starts a cluster
        peers.append(Side("Flower's simulation engine, without its start", by_flower(nodes), nodes / whole))
    return Prepared(
        ours=Side("halftruth", lambda: _seconds(lambda: _played(loaded, n, jobs))),
        peers=tuple(peers),
        work=whole,
        unit="clients/s",
        agree=_agree_with_one_client,
        limit=Side("an object a reply, all cores", lambda: _seconds(objects)),
        cost=_as_number,
    )


def clients_memory(small: bool) -> Prepared:
    """The most that a process holds in which so many clients answer; the peer is one client with all their labels."""
    n = 200 if small else 1_000_000
    loaded = _study(n)

    def peak(many: int) -> float:
        room = in_process(loaded.study, loaded.truth, many)
        _heard(loaded, room)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before = peak(1)
    ours = Side("halftruth", lambda: peak(n))
    return Prepared(ours, (Side("one client", lambda: before),), 1.0, "MB", _agree_with_one_client, cost=_as_number)


def _agree_with_one_client() -> None:
    """Estimates do not depend on who holds which rows."""
    few = _study(200)
    assert _played(few, 200, jobs=1).equals(_played(few, 1, jobs=1)), "estimates depend on who holds which rows"


def _heard(loaded: Loaded, room: InProcess) -> float:
    """Seconds of one cell: asking, answering, estimating."""
    cell = cells(loaded.study, 1)[0]
    return _seconds(lambda: list(play(loaded.study, cell, room.replies, room.server)))


def _seconds(work: Callable[[], object]) -> float:
    return timed(work, time.perf_counter)


def _study(n: int) -> Loaded:
    table = {
        "study": {"name": "clients", "seed": SEED, "repetitions": CELLS},
        "problem": {
            "kind": "pairwise",
            "dimension": 4,
            "features": "gaussian",
            "theta": [0.5, -0.5, 0.5, -0.5],
            "bound": 4,
        },
        "grid": {"n": [n], "epsilon": [1]},
        "arm": [{"trust": "local", "estimator": "debiased"}],
    }
    return build(table, Path())


def _played(loaded: Loaded, many: int, jobs: int | None) -> pa.Table:
    with tempfile.TemporaryDirectory() as out:
        return run(loaded, Path(out), jobs=jobs, clients=many, block=1)


def _asked(loaded: Loaded, n: int) -> bytes:
    study = loaded.study
    return encode_task(
        Task(study.fingerprint, Trust.LOCAL, Unit.LABEL, study.problem, (RR,), n, Decimal(1), None, 0, 1)
    )


@dataclass(frozen=True)
class _Held:
    """Labels in memory: those of repetition r are line r of `lines`, taken in turns."""

    problem: Problem
    lines: NDArray[np.uint8] = field(repr=False)
    synthetic = True
    public = False

    def check(self, task: Task) -> None:
        if task.problem.digest != self.problem.digest or task.n != self.lines.shape[1]:
            raise ProblemUnknown("expected the problem that the labels belong to")

    def rows(self, task: Task) -> Runs:
        return Runs.of(range(task.n))

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        return None

    def levels(self, task: Task, rows: NDArray[np.int64]) -> None:
        return None

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        line = self.lines[repetition % len(self.lines)]
        return Labels(line if len(rows) == len(line) else line[rows])


@dataclass(frozen=True)
class _Stream:
    """Comparisons of items in blocks: every block asks about the same pairs, so often as it has repetitions."""

    items: int
    times: int  # that a pair is asked in a repetition
    block: int  # repetitions
    blocks: int

    @property
    def labels(self) -> int:
        return self.items * (self.items - 1) // 2 * self.times * self.block * self.blocks

    def problem(self) -> Problem:
        pairs = np.stack(np.triu_indices(self.items, 1), axis=1).astype(np.int32)
        return Problem(self.items, "items", sum_zero=True, bound=None, design=np.tile(pairs, (self.times, 1)))

    def source(self, problem: Problem) -> _Held:
        assert problem.design is not None
        theta, n = np.linspace(1.0, -1.0, self.items), len(problem.design)
        chance = 1.0 / (1.0 + np.exp(theta[problem.design[:, 0]] - theta[problem.design[:, 1]]))
        coins = [words(Address(SEED, Stream.LABELS, n, line), 0, n) for line in range(self.block)]
        return _Held(problem, np.array([coin < chance * 2.0**64 for coin in coins], dtype=np.uint8))

    def tasks(self, problem: Problem) -> Iterator[Task]:
        assert problem.design is not None
        one, n = Decimal(1), len(problem.design)
        for first in range(0, self.block * self.blocks, self.block):
            yield Task(bytes(32), Trust.LOCAL, Unit.LABEL, problem, (RR,), n, one, None, first, self.block)


BOUNDED = Options(bound=10.0)
LONG = _Stream(items=100, times=20, block=40, blocks=26)
SHORT = _Stream(items=5, times=30, block=3, blocks=4)


def stream(small: bool) -> Prepared:
    """10^8 labels of pairs of 100 items by blocks, through one client; the limit is their memory, read and written."""
    size = SHORT if small else LONG
    node = _node(size)
    room = np.zeros(min(size.labels, 1 << 24), dtype=np.uint8)

    def copied() -> None:
        for start in range(0, size.labels, len(room)):
            room[: size.labels - start].copy()

    ours = Side("halftruth", lambda: _fitted(size, node))
    return Prepared(ours, (), size.labels, "M labels/s", _agree_with_all_at_once, Side("a copy of a byte each", copied))


def stream_memory(small: bool) -> Prepared:
    """The most that a process holds that does `stream` and nothing else, its imports and compiled code included."""
    size = SHORT if small else LONG
    node = _node(size)

    def peak() -> float:
        _fitted(size, node)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    return Prepared(Side("halftruth", peak), (), 1.0, "MB", _agree_with_all_at_once, cost=_as_number)


def _as_number(made: object) -> float:
    assert isinstance(made, float)
    return made


def _node(size: _Stream) -> Node:
    source = size.source(size.problem())
    return Node(source, Policy.simulation(), MemoryLedger(), "addressed", FeatureStore(SEED), seed=SEED)


def _fitted(size: _Stream, node: Node) -> Estimate:
    """A fit of sums by pair, to which each block is added when it has come."""
    problem = size.problem()
    assert problem.design is not None
    wins = np.zeros(len(problem.design), dtype=np.int64)
    for task in size.tasks(problem):
        heard = listen([task], lambda raws: (answer(raw, node) for raw in raws))[task]
        assert heard.collected.symbols is not None
        wins += heard.collected.symbols.sum(axis=0, dtype=np.uint16)
    counts = np.full(len(wins), size.block * size.blocks)
    return debiased(_sums(size, problem, counts, wins), BOUNDED)


def _sums(size: _Stream, problem: Problem, counts: NDArray[np.int64], wins: NDArray[np.int64]) -> PairSums:
    channel = law(next(size.tasks(problem)), RR)
    flip, keep = channel.probability(0, 1), channel.probability(0, 0)
    assert problem.design is not None and problem.design.dtype == np.int32
    pairs = by_pair(problem.design.astype(np.int32), counts, wins)
    return PairSums(size.items, *pairs, float(keep - flip), float(flip))


def _agree_with_all_at_once() -> None:
    """The same as one task about all repetitions."""
    node, whole = _node(SHORT), _Stream(SHORT.items, SHORT.times, SHORT.block * SHORT.blocks, 1)
    assert np.abs(_fitted(SHORT, node).u - _fitted(whole, node).u).max() <= 1e-12
