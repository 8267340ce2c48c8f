"""A second release of the same sums is another attempt: another task, which nodes charge again or refuse."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.ledger_view import read_labelers
from client.policy import Policy
from client.sources.record_columns import RecordColumns
from client.sources.record_table import read_record_table
from protocol.arms import Arm
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.curator import LiveCurator
from server.evidence import Server
from server.listening import RoundFailed, quorum
from server.outcome import Outcome
from server.release import ReleaseLedger
from server.release_file import read_releases
from server.rounds import play

CELL = Cell(20, 0, 1)
NAMES = ("a", "b")
DESCENT = (("rounds", Decimal(3)), ("step", Decimal("0.25")))


class Federation:
    """Two nodes with ten records each, and a curator."""

    def __init__(self, folder: Path, most: int) -> None:
        self.folder = folder
        policy = Policy(
            trusts=frozenset({Trust.CENTRAL}), units=frozenset({Unit.RECORD}), label_cap=None, max_attempt=most
        )
        columns = RecordColumns(("x",), "linear", response="y", id="id", row="row")
        self.nodes: dict[str, Node] = {}
        for place, name in enumerate(NAMES):
            rows = [f"{row},p{row},{row % 3 / 2},{row % 2}" for row in range(10 * place, 10 * place + 10)]
            (folder / f"{name}.csv").write_text("\n".join(["row,id,x,y", *rows]) + "\n", encoding="utf-8")
            table = read_record_table(folder / f"{name}.csv", False, columns)
            self.nodes[name] = Node(table, policy, DiskLedger(self.ledger(name)), "os", FeatureStore(None))
        self.study = Study(
            name="attempts",
            seed=0,
            repetitions=1,
            problem=Problem(1, "records", False, Decimal(2), kind="records", model="linear"),
            grid=Grid((CELL.n,), (Decimal(1),), (Decimal("1e-5"),)),
            arms=(Arm(Trust.CENTRAL, "gaussian", "descent", DESCENT),),
            records=RecordLaw(per_holder=1, tail=Decimal("0.5"), moment=Decimal(16)),
        )

    def ledger(self, name: str) -> Path:
        return self.folder / f"{name}.sqlite"

    def ask(self, present: Sequence[str], attempt: int) -> Outcome:
        """A live run with these nodes."""
        with ReleaseLedger(self.folder / "curator.sqlite") as ledger:
            server = Server(FeatureStore(None), 0, LiveCurator(ledger), attempt)

            def asked(tasks: list[bytes]) -> list[bytes]:
                return [answer(task, self.nodes[name]) for name in present for task in tasks]

            (outcome,) = play(self.study, CELL, asked, server, quorum)
        return outcome

    def spent(self) -> dict[str, set[Decimal]]:
        """The epsilon of every record, by node."""
        return {name: {one.epsilon for one in read_labelers(self.ledger(name))} for name in NAMES}

    def releases(self) -> Counter[int]:
        """How many rounds were released, by how many records were in them."""
        return Counter(release.request.count for release in read_releases(self.folder / "curator.sqlite"))


def test_another_cohort_gets_a_release_of_its_own_by_another_attempt(tmp_path: Path) -> None:
    own = Federation(tmp_path, most=2)
    first = own.ask("a", 0)
    assert own.spent() == {"a": {Decimal(1)}, "b": set()} and own.releases() == {10: 3}
    again = own.ask("ab", 0)
    assert again.theta.tobytes() == first.theta.tobytes(), "what was committed is replayed, whoever answers now"
    assert own.releases() == {10: 3}
    assert own.spent() == {"a": {Decimal(1)}, "b": {Decimal(1)}}, "who answers is charged, whatever is made of it"
    second = own.ask("ab", 1)
    assert second.theta.tobytes() != first.theta.tobytes()
    assert own.releases() == {10: 3, 20: 3} and own.spent() == {"a": {Decimal(2)}, "b": {Decimal(2)}}
    assert own.ask("ab", 1).theta.tobytes() == second.theta.tobytes()
    assert own.spent() == {"a": {Decimal(2)}, "b": {Decimal(2)}} and own.releases() == {10: 3, 20: 3}


def test_a_node_allows_the_first_attempt_only_unless_its_policy_says_more(tmp_path: Path) -> None:
    own = Federation(tmp_path, most=0)
    own.ask("ab", 0)
    with pytest.raises(RoundFailed, match="ATTEMPT_NOT_ALLOWED x 2"):
        own.ask("ab", 1)
    assert own.spent() == {"a": {Decimal(1)}, "b": {Decimal(1)}} and own.releases() == {20: 3}
