"""The in-process runtime: client and server code in one process, messages as bytes like everywhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from client.crowd import Crowd
from client.labeler import Node
from client.ledger import MemoryLedger
from client.policy import Policy
from client.replies import reply
from client.secure.membership import simulated
from client.sources.synthetic import Synthetic, drawn
from client.sources.synthetic_records import SyntheticRecords
from protocol.codec import identity
from protocol.secure.messages import of_session
from protocol.store import FeatureStore
from protocol.study import Cell, Study
from server.curator import SimulatedCurator
from server.evidence import Server
from server.outcome import Outcome
from server.rounds import play
from server.sent import Sent, for_client


@dataclass(frozen=True)
class InProcess:
    """K clients with synthetic labels and addressed coins, and a server, sharing public features only."""

    nodes: Sequence[Node]
    server: Server

    def ask(self, tasks: list[bytes]) -> list[bytes]:
        """Carry tasks to every client."""
        return list(self.replies(tasks))

    def replies(self, tasks: list[bytes]) -> Iterator[bytes]:
        """The same, one reply after the other: whoever reads them need not hold those of a million clients.

        What a session asks is answered under a client's name, `client 3`: see `carried`.
        """
        if isinstance(self.nodes, Crowd) and not any(map(of_session, tasks)):
            return self.nodes.replies(tasks)
        return carried(tasks, self.nodes)


def carried(tasks: Sequence[bytes], nodes: Sequence[Node]) -> Iterator[bytes]:
    """What nodes of this process reply to tasks, and to questions of sessions: each to those that are for it."""
    if not any(map(of_session, tasks)):
        return (reply(raw, node) for node in nodes for raw in tasks)
    return (
        Sent(reply(raw, node), name, identity(raw))
        for client, node in enumerate(nodes)
        for name in [f"client {client}"]
        for raw in for_client(tasks, name)
    )


def in_process(study: Study, theta: NDArray[np.float64], clients: int) -> InProcess:
    """Build the clients and the server of a simulation. Clients share a policy and a ledger, which has no caps."""
    features, policy, ledger = FeatureStore(study.seed), Policy.simulation(), MemoryLedger()
    first = drawn(study, theta, study.seed, features, (0, clients))

    def node(source: Synthetic | SyntheticRecords, client: int) -> Node:
        member = partial(simulated, study.seed, client, clients)
        return Node(source, policy, ledger, entropy="addressed", features=features, seed=study.seed, member=member)

    if isinstance(first, Synthetic):
        nodes: Sequence[Node] = Crowd(node(first, 0), clients)
    else:
        nodes = tuple(node(first.part(client, clients), client) for client in range(clients))
    return InProcess(nodes, Server(features, study.seed, SimulatedCurator(study.seed)))


def run_cell(study: Study, theta: NDArray[np.float64], cell: Cell, clients: int = 1) -> Iterator[Outcome]:
    """All outcomes of one cell."""
    room = in_process(study, theta, clients)
    return play(study, cell, room.replies, room.server)
