"""A node and a server for one's own file, in one process: ledgers in a state folder, coins secret or addressed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from client.labeler import Node
from client.ledger import DiskLedger
from client.policy import Policy
from client.sources import RecordSource, Source
from protocol import strict
from protocol.store import FeatureStore
from protocol.trust import Trust
from server.curator import Curator, LiveCurator, SimulatedCurator
from server.evidence import Server
from server.release import ReleaseLedger
from studies.fit.state import CURATOR, LEDGER, require_ledger


@contextmanager
def own_room(
    source: Source | RecordSource, policy: Policy, where: Path | None, trust: Trust, seed: int | None
) -> Iterator[tuple[Node, Path, Server]]:
    """The node, its ledger's path, and the server. Where nobody pays (`where` None) ledgers are gone after the run.

    `seed` names addressed coins; None takes the system's. Raises StudyError, LedgerUnavailable and LedgerError.
    """
    features = FeatureStore(None)
    with TemporaryDirectory() as fleeting:
        state = Path(fleeting) if where is None else where
        strict.make_folder(state, "--state", 0o700)
        require_ledger(state)
        ledger = state / LEDGER
        entropy = "os" if seed is None else "addressed"
        node = Node(source, policy, DiskLedger(ledger), entropy, features, seed)
        with _curator(state, trust, seed) as curator:
            yield node, ledger, Server(features, 0, curator)


@contextmanager
def _curator(state: Path, trust: Trust, seed: int | None) -> Iterator[Curator | None]:
    if trust is not Trust.CENTRAL:
        yield None
    elif seed is not None:
        yield SimulatedCurator(seed)
    else:
        with ReleaseLedger(state / CURATOR) as releases:
            yield LiveCurator(releases)
