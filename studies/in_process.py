"""The in-process runtime: client and server code in one process, messages as bytes like everywhere."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources.synthetic import Synthetic, drawn
from protocol.store import FeatureStore
from protocol.study import Cell, Study
from server.curator import SimulatedCurator
from server.evidence import Server
from server.outcome import Outcome
from server.rounds import play

FEW = 1000  # clients that stay in memory; more are made when they are asked


@dataclass(frozen=True)
class InProcess:
    """K clients with synthetic labels and addressed coins, and a server, sharing public features only."""

    nodes: Sequence[Node]
    server: Server

    def ask(self, tasks: list[bytes]) -> list[bytes]:
        """Carry tasks to every client."""
        return list(self.replies(tasks))

    def replies(self, tasks: list[bytes]) -> Iterator[bytes]:
        """The same, one reply after the other: whoever reads them need not hold those of a million clients."""
        return (answer(raw, node) for node in self.nodes for raw in tasks)


class _Made(Sequence[Node]):
    """Clients that are made anew whenever they are asked: nothing of them is kept but what all of them share."""

    def __init__(self, make: Callable[[int], Node], clients: int) -> None:
        self._make, self._clients = make, range(clients)

    def __len__(self) -> int:
        return len(self._clients)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | Sequence[Node]:
        if isinstance(index, slice):
            return [self._make(client) for client in self._clients[index]]
        return self._make(self._clients[index])


def in_process(study: Study, theta: NDArray[np.float64], clients: int) -> InProcess:
    """Build the clients and the server of a simulation. Clients share a policy and a ledger, which has no caps."""
    features, policy, ledger = FeatureStore(study.seed), Policy.simulation(), MemoryLedger()
    first = drawn(study, theta, study.seed, features, (0, clients))

    def node(client: int) -> Node:
        source = first.part(client, clients)
        return Node(source, policy, ledger, entropy="addressed", features=features, seed=study.seed)

    many = clients > FEW and isinstance(first, Synthetic)
    nodes = _Made(node, clients) if many else tuple(map(node, range(clients)))
    return InProcess(nodes, Server(features, study.seed, SimulatedCurator(study.seed)))


def run_cell(study: Study, theta: NDArray[np.float64], cell: Cell, clients: int = 1) -> Iterator[Outcome]:
    """All outcomes of one cell."""
    room = in_process(study, theta, clients)
    return play(study, cell, room.replies, room.server)
