"""The in-process runtime: client and server code in one process, messages as bytes like everywhere."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources.synthetic import drawn
from protocol.store import FeatureStore
from protocol.study import Cell, Study
from server.curator import SimulatedCurator
from server.evidence import Server
from server.outcome import Outcome
from server.rounds import play


@dataclass(frozen=True)
class InProcess:
    """K clients with synthetic labels and addressed coins, and a server, sharing public features only."""

    nodes: tuple[Node, ...]
    server: Server

    def ask(self, tasks: list[bytes]) -> list[bytes]:
        """Carry tasks to every client."""
        return [answer(raw, node) for node in self.nodes for raw in tasks]


def in_process(study: Study, theta: NDArray[np.float64], clients: int) -> InProcess:
    """Build the clients and the server of a simulation."""
    features = FeatureStore(study.seed)
    nodes = tuple(
        Node(
            source=drawn(study, theta, study.seed, features, (client, clients)),
            policy=Policy.simulation(),
            ledger=MemoryLedger(),
            entropy="addressed",
            seed=study.seed,
            features=features,
        )
        for client in range(clients)
    )
    return InProcess(nodes, Server(features, study.seed, SimulatedCurator(study.seed)))


def run_cell(study: Study, theta: NDArray[np.float64], cell: Cell, clients: int = 1) -> Iterator[Outcome]:
    """All outcomes of one cell."""
    room = in_process(study, theta, clients)
    return play(study, cell, room.ask, room.server)
