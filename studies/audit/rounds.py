"""Runs of several rounds about records: everything that was let out of one, together, against the claim for the run.

Rounds depend on each other: where a gradient is taken, and around what it is bounded, follows from what came before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.draws import Draws
from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from protocol.coins import Words
from protocol.messages import Task
from protocol.numeric import numeric_channel
from protocol.store import FeatureStore
from protocol.study import Cell
from protocol.terms import share
from server.choice_record import Choice, ChoiceRequest
from server.curator import LiveCurator
from server.evidence import Server
from server.release import ReleaseLedger
from server.release_record import Release, ReleaseRequest, in_real_units
from server.rounds import play
from studies.audit.central import DELTA, RECORDS, ROWS, SEED, study_of
from studies.audit.coins import AuditCoins
from studies.audit.exact import Law, enumerated
from studies.audit.given import GivenDraws, GivenRecords
from studies.audit.numbers import scalar_boxes
from studies.audit.subject import Claim, Floats, Subject, all_pairs
from studies.load import Loaded

PACE, WIDE_PACE = 0.05, 0.01  # runs are slow, and so are choices among many
ARMS: Mapping[str, Mapping[str, object]] = {
    "descent": {
        "mechanism": "gaussian",
        "estimator": "descent",
        "rounds": Decimal(2),
        "step": Decimal("0.5"),
        "threshold": Decimal(1),
    },
    "threshold": {"mechanism": "gaussian", "estimator": "mean", "threshold": "private"},
}
TOGETHER = 256  # runs of a block: repetitions of one study, each with noise of its own
LOCAL_ROUNDS = 2
WIDTH = 512  # bytes of a reply
ENDS = {"above": 9.0, "below": -9.0}  # of the only record: beyond the bound wherever a gradient is taken
_RUN = "a study played to its end, every release and choice of its curator together, with the system's coins"
_REPLIES = "client.labeler:answer in every round of a study, on all classes of its coins, whole replies together"


@dataclass(frozen=True, eq=False)
class Recording:
    """A curator that does what a live one does, and keeps what it let out, by repetition."""

    curator: LiveCurator
    told: dict[int, list[float]]
    name: bytes = b""

    def release(self, task: Task, request: ReleaseRequest, exact_sum: list[int]) -> Release:
        """The ledger's release."""
        found = self.curator.release(task, request, exact_sum)
        self.told.setdefault(request.repetition, []).extend(in_real_units(found).tolist())
        return found

    def choose(self, task: Task, request: ChoiceRequest, scores: list[int]) -> Choice:
        """The ledger's choice."""
        found = self.curator.choose(task, request, scores)
        self.told.setdefault(request.repetition, []).extend(map(float, (*found.places, *found.values)))
        return found


def of_run(name: str, epsilon: Decimal) -> Subject:
    """All that a curator lets out in a whole study of one arm of `ARMS` about eight records of one number.

    Where all rounds are Gaussian, neighbours are no easier to tell apart than two normal laws, whatever later rounds
    make of earlier ones.
    """
    problem, normal = {"kind": "records", "model": "mean", "dimension": 1}, name == "descent"
    loaded = study_of(problem, {"trust": "central", **ARMS[name]}, epsilon, DELTA)
    inputs = {key: GivenRecords(values[:, :1]) for key, values in RECORDS.items()}
    claim, draw = Claim(epsilon, DELTA, "record"), partial(_runs, loaded)
    return Subject(
        f"run/{name}",
        claim,
        inputs,
        all_pairs(RECORDS),
        _RUN,
        draw=draw,
        pace=PACE if normal else WIDE_PACE,
        normal=normal,
    )


def _runs(loaded: Loaded, source: GivenRecords, count: int, _: AuditCoins) -> Floats:
    """What so many runs tell, (count, numbers)."""
    node = Node(source, Policy.simulation(), MemoryLedger(), "addressed", FeatureStore(SEED), seed=SEED)
    found: list[list[float]] = []
    for start in range(0, count, TOGETHER):
        told: dict[int, list[float]] = {}
        with ReleaseLedger(None) as ledger:
            server = Server(node.features, SEED, Recording(LiveCurator(ledger), told))
            cell = Cell(ROWS, start, min(TOGETHER, count - start))
            list(play(loaded.study, cell, lambda tasks: [answer(raw, node) for raw in tasks], server))
        found += [told[repetition] for repetition in sorted(told)]
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True)
class EachRoundItsCoins(Node):
    """A node with a word for each round: its only row's coin there."""

    given: Callable[[int], Draws] | None = field(default=None, repr=False)

    def draws(self, task: Task, repetition: int) -> Draws:
        """Those of the task's round."""
        assert self.given is not None
        return self.given(task.round)


def of_replies(epsilon: Decimal) -> Subject:
    """A record's answers in every round of local descent: the exact law of all replies together.

    The second round asks for the gradient where the first answer led, so its law follows from that answer.
    """
    level, problem = share(epsilon, LOCAL_ROUNDS), {"kind": "records", "model": "mean", "dimension": 1}
    arm: dict[str, Any] = {"trust": "local", "mechanism": "duchi", "estimator": "descent", "batches": "all"}
    arm |= {"rounds": Decimal(LOCAL_ROUNDS), "step": Decimal("0.1"), "threshold": Decimal(1)}
    loaded = study_of(problem, arm, epsilon, DELTA, rows=1)
    channel = numeric_channel("duchi", {"epsilon": level, "threshold": Decimal(1), "dimension": Decimal(1)})
    inputs = {name: GivenRecords(np.array([[value]])) for name, value in ENDS.items()}

    def laws() -> Mapping[str, Law]:
        found = {}
        for name, value in ENDS.items():
            axis = scalar_boxes(channel, -float(np.sign(value)))[0][0]
            found[name] = enumerated(partial(_replies, loaded, inputs[name]), [[axis] * LOCAL_ROUNDS])
        return found

    claim = Claim(epsilon, Decimal(0), "record")
    return Subject("node/rounds", claim, inputs, all_pairs(inputs), _REPLIES, laws=laws)


def _replies(loaded: Loaded, source: GivenRecords, words: Words) -> NDArray[np.uint8]:
    """The replies of all rounds, each with its length, for each row of coins: (rows, bytes)."""
    features, found = FeatureStore(SEED), []
    for row in words:
        node = EachRoundItsCoins(
            source,
            Policy.simulation(),
            MemoryLedger(),
            "addressed",
            features,
            seed=SEED,
            given=lambda place, row=row: GivenDraws(row[None, place : place + 1]),  # type: ignore[misc]
        )
        heard: list[bytes] = []

        def ask(tasks: list[bytes], node: Node = node, heard: list[bytes] = heard) -> list[bytes]:
            heard += (replies := [answer(raw, node) for raw in tasks])
            return replies

        list(play(loaded.study, Cell(1, 0, 1), ask, Server(features, SEED)))
        if len(heard) != LOCAL_ROUNDS or max(map(len, heard)) > WIDTH:
            raise ValueError(f"expected {LOCAL_ROUNDS} replies of at most {WIDTH} bytes, got others")
        found.append(b"".join(len(reply).to_bytes(4, "big") + reply.ljust(WIDTH, b"\0") for reply in heard))
    return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), -1)
