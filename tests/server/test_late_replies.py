"""A reply that comes late: charged by the node that sent it, not counted by the server, and repeated for nothing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.ledger_view import read_entries
from client.policy import Policy
from client.sources.record_columns import RecordColumns
from client.sources.record_table import read_record_table
from protocol.arms import Arm
from protocol.codec import decode_bundle, encode_bundle
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.evidence import Heard, Server
from server.exchange import Exchange
from server.listening import quorum
from server.post import Clock, Letter
from server.rounds import play

N, DEADLINE, LATE = 20, 10.0, 1  # the second node is late
STUDY = Study(
    name="late",
    seed=0,
    repetitions=1,
    problem=Problem(2, "records", False, Decimal(2), kind="records", model="mean"),
    grid=Grid((N,), (Decimal(1),), (Decimal("1e-5"),)),
    arms=(Arm(Trust.LOCAL, "piecewise", "mean"),),
    records=RecordLaw(per_holder=1, tail=Decimal("0.5"), moment=Decimal(16)),
)


@dataclass
class Slow:
    """A post with time of its own: the late node's reply needs `delay` seconds."""

    nodes_: dict[int, Node]
    delay: float
    now: float = 0.0
    letters: list[tuple[float, Letter]] = field(default_factory=list)
    pushed: int = 0

    @property
    def clock(self) -> Clock:
        """Its time."""
        return Clock(lambda: self.now, self.wait)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def nodes(self) -> Collection[int]:
        """Both."""
        return list(self.nodes_)

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """Every node is asked, and answers, at once or late."""
        names = []
        for node in nodes:
            name, self.pushed = str(self.pushed), self.pushed + 1
            replies = encode_bundle([answer(task, self.nodes_[node]) for task in decode_bundle(raw)])
            self.letters.append((self.now + self.delay * (node == LATE), Letter(node, name, replies)))
            names.append(name)
        return names

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """What has come by now."""
        here = [letter for at, letter in self.letters if at <= self.now and letter.reply_to in ids]
        self.letters = [(at, letter) for at, letter in self.letters if letter not in here]
        return here


def nodes_of(folder: Path) -> dict[int, Node]:
    """Two nodes with a file, a ledger and the system's coins each, as processes that have just started."""
    found = {}
    for node in (0, LATE):
        rows = range(node * N // 2, (node + 1) * N // 2)
        lines = [f"{row},p{row},{row % 7 / 7},{row % 5 / 5}" for row in rows]
        path = folder / f"{node}.csv"
        path.write_text("\n".join(["row,id,x,z", *lines]) + "\n", encoding="utf-8")
        policy = Policy(trusts=frozenset({Trust.LOCAL}), units=frozenset({Unit.RECORD}), label_cap=Decimal(1))
        table = read_record_table(path, False, RecordColumns(("x", "z"), "mean", id="id", row="row"))
        found[node] = Node(table, policy, DiskLedger(folder / f"{node}.sqlite"), "os", FeatureStore(None))
    return found


def spent(folder: Path) -> list[list[tuple[str, Decimal, int]]]:
    """What each node's ledger says was paid."""
    return [
        sorted((e.mechanism, e.epsilon, e.labels) for e in read_entries(folder / f"{node}.sqlite"))
        for node in (0, LATE)
    ]


def test_a_late_reply_is_charged_and_does_not_count_and_is_the_same_when_it_is_asked_for_again(tmp_path: Path) -> None:
    post = Slow(nodes_of(tmp_path), delay=DEADLINE + 2)
    exchange = Exchange(post, (0, LATE), DEADLINE, strict=False, clock=post.clock)
    raws: list[bytes] = []
    exchange.record = raws.append
    counting: list[frozenset[str]] = []

    def check(heard: Sequence[Heard], unread: Sequence[str]) -> None:
        counting.append(frozenset(name for each in heard for name in each.collected.senders))
        quorum(heard, unread)

    def played() -> bytes:
        (outcome,) = play(STUDY, Cell(N, 0, 1), exchange.ask, Server(FeatureStore(None), 0), check)
        return outcome.theta.tobytes()

    alone = played()
    paid = spent(tmp_path)
    assert all(paid) and exchange.describe() == "answered: 1, missing: 1"
    post.now += 3.0  # it arrives, in answer to a round that is over
    post.delay = 3.0
    both = played()
    assert exchange.describe() == "answered: 3, late: 1, missing: 1"
    assert both != alone and counting == [{"node 0"}, {"node 0", "node 1"}]
    assert spent(tmp_path) == paid, "nobody pays twice"
    assert len(raws) == 4 and len(set(raws)) == 2, "each said the same twice"
