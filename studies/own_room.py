"""A node and a server for one's own file, in one process: ledgers in a state folder, coins secret or addressed."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from client.labeler import Node
from client.ledger import DiskLedger
from client.policy import Policy
from client.secure.membership import Membership, member_of
from client.secure.memory import DiskMemory
from client.sources import RecordSource, Source
from deploy.node_keys import ensure_key, public_path
from protocol import strict
from protocol.store import FeatureStore
from protocol.trust import Trust
from server.curator import Curator, LiveCurator, SimulatedCurator
from server.evidence import Server
from server.release import ReleaseLedger
from studies.fit.state import CURATOR, LEDGER, require_ledger

MEMBER = "member.key"


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
        member = partial(_alone, state / MEMBER, ledger) if trust is Trust.DISTRIBUTED else None
        node = Node(source, policy, DiskLedger(ledger), entropy, features, seed, member=member)
        with _curator(state, trust, seed) as curator:
            yield node, ledger, Server(features, 0, curator)


def _alone(key: Path, ledger: Path) -> Membership:
    """The only member of a sum under masks: the holder of one's own file, who signs with a key of the state folder."""
    ensure_key(key)
    return member_of(key, public_path(key), DiskMemory(ledger), least=1, colluding=Decimal(0))


@contextmanager
def _curator(state: Path, trust: Trust, seed: int | None) -> Iterator[Curator | None]:
    if trust is not Trust.CENTRAL:
        yield None
    elif seed is not None:
        yield SimulatedCurator(seed)
    else:
        with ReleaseLedger(state / CURATOR) as releases:
            yield LiveCurator(releases)
