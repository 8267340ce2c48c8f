"""Crashes at every step of a private study of twenty rounds: the same bits, nothing asked twice, nothing paid twice."""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import server.journal
from client.labeler import Node, answer
from client.ledger import DiskLedger, MemoryLedger
from client.ledger_view import read_entries, read_labelers
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
from server.curator import LiveCurator
from server.delivery import ToFolder
from server.evidence import Server
from server.exchange import Exchange
from server.journal import MAGIC, JournalError
from server.listening import RoundFailed, complete
from server.outcome_record import cell_name
from server.post import Letter
from server.release import ReleaseLedger
from server.release_file import read_releases
from server.resume import journal_path, resumed
from server.rounds import play
from studies.in_process import in_process
from studies.load import Loaded, build

ROUNDS = 20
STEPS = 10  # of a round: two nodes, sent, heard, and six of writing it
MADE = 6  # of making a journal
CELL = Cell(40, 0, 1)


class Crash(BaseException):
    """The process is gone: nothing catches it."""


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one process nobody sees whether bytes have reached the disk, and thousands of them take a minute."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@dataclass
class Fuse:
    """Counts the steps of a server; at step `at` it dies."""

    at: int = 0
    steps: int = 0

    def burn(self) -> None:
        """One more step."""
        self.steps += 1
        if self.steps == self.at:
            raise Crash


@dataclass
class Wire:
    """A post whose nodes answer at once, one after the other."""

    there: dict[int, Node]
    fuse: Fuse
    letters: list[Letter] = field(default_factory=list)
    rounds: int = 0

    def nodes(self) -> Collection[int]:
        """All of them."""
        return list(self.there)

    def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
        """Every node is asked, and answers."""
        self.rounds += 1
        for node in nodes:
            self.fuse.burn()
            replies = encode_bundle([answer(task, self.there[node]) for task in decode_bundle(raw)])
            self.letters.append(Letter(node, f"{node} {self.rounds}", replies))
        self.fuse.burn()
        return [f"{node} {self.rounds}" for node in nodes]

    def pull(self, ids: Collection[str]) -> Sequence[Letter]:
        """What they said."""
        self.fuse.burn()
        letters, self.letters = self.letters, []
        return letters


def played(study: Study, there: dict[int, Node], server: Server, folder: Path, fuse: Fuse) -> tuple[str, int]:
    """A server's process from start to end: the cell's lines, and how many rounds it asked."""
    wire = Wire(there, fuse)
    delivery = ToFolder(folder)
    if not delivery.has(CELL):
        exchange = Exchange(wire, sorted(there), 60.0, strict=True)
        with resumed(folder, study, CELL, exchange.ask, complete) as own:
            outcomes = list(play(study, CELL, own.ask, server, own.check))
            fuse.burn()
            delivery.deliver(study, CELL, outcomes)
            fuse.burn()
    return (folder / f"{cell_name(CELL)}.jsonl").read_text("utf-8"), wire.rounds


@contextmanager
def dying_disk(fuse: Fuse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fuse]:
    """A server's process that may die before, within and after each write of its journal."""

    def write(handle: int, place: int, content: bytes) -> None:
        fuse.burn()
        for end in (7, 19, len(content) // 2, len(content) - 1):
            os.pwrite(handle, content[:end], place)
            fuse.burn()
        os.pwrite(handle, content, place)
        fuse.burn()

    with monkeypatch.context() as patched:
        patched.setattr(server.journal, "_write", write)
        yield fuse


def crashed(
    study: Study, there: dict[int, Node], room: Server, folder: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that dies at a step."""
    fuse = Fuse(at)
    with dying_disk(fuse, monkeypatch), pytest.raises(Crash):
        played(study, there, room, folder, fuse)


@pytest.fixture(scope="module")
def synthetic() -> Loaded:
    """Private convex optimisation under both trust models, side by side: a round is one message."""
    common = {"estimator": "descent", "rounds": ROUNDS, "step": Decimal("0.25")}
    return build(
        {
            "study": {"name": "crashes", "seed": 3, "repetitions": 1},
            "problem": {"kind": "records", "model": "linear", "dimension": 2, "theta": [0.5, -0.5], "bound": 2},
            "records": {"features": "uniform(0, 1)", "noise": "centred pareto(1.6)", "tail": 0.5, "moment": 16},
            "grid": {"n": [CELL.n], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
            "arm": [{"trust": "central", **common}, {"trust": "local", "mechanism": "piecewise", **common}],
        },
        Path(),
    )


def totals(nodes: dict[int, Node]) -> list[object]:
    ledgers = [node.ledger for node in nodes.values()]
    return [ledger.totals for ledger in ledgers if isinstance(ledger, MemoryLedger)]


def steps_of(study: Study, theta: np.ndarray, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Fuse, str, list]:
    """An uninterrupted server: its steps, its lines, and what nodes paid."""
    room, fuse = in_process(study, theta, clients=2), Fuse()
    there = dict(enumerate(room.nodes))
    with dying_disk(fuse, monkeypatch):
        lines, rounds = played(study, there, room.server, folder, fuse)
    assert rounds == ROUNDS and not list(folder.glob("*.journal"))
    return fuse, lines, totals(there)


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_at_any_step_leaves_the_same_bits(
    synthetic: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    study = synthetic.study
    (tmp_path / "whole").mkdir()
    whole, lines, paid = steps_of(study, synthetic.theta, tmp_path / "whole", monkeypatch)
    assert whole.steps == MADE + ROUNDS * STEPS + 2
    for at in range(1, whole.steps + 1, stride):
        folder = tmp_path / str(at)
        folder.mkdir()
        room = in_process(study, synthetic.theta, clients=2)
        there = dict(enumerate(room.nodes))
        crashed(study, there, room.server, folder, at, monkeypatch)
        found, rounds = played(study, there, room.server, folder, Fuse())
        assert (found, totals(there)) == (lines, paid), at
        assert rounds <= ROUNDS - max(0, at - MADE - 1) // STEPS, f"{rounds} rounds asked again at step {at}"
        delivered = at == whole.steps  # whoever starts the next run clears up
        assert journal_path(folder, study, CELL).exists() == delivered


def test_a_server_that_dies_again_and_again_gets_there(
    synthetic: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each life has 25 steps, two rounds' worth: what is in the journal is never lost."""
    study = synthetic.study
    (tmp_path / "whole").mkdir()
    _, lines, paid = steps_of(study, synthetic.theta, tmp_path / "whole", monkeypatch)
    room = in_process(study, synthetic.theta, clients=2)
    there, lives = dict(enumerate(room.nodes)), 0
    while not (tmp_path / f"{cell_name(CELL)}.jsonl").exists():
        lives += 1
        assert lives < 2 * ROUNDS
        fuse = Fuse(25)
        with dying_disk(fuse, monkeypatch):
            try:
                played(study, there, room.server, tmp_path, fuse)
            except Crash:
                continue
    assert lives > ROUNDS // 3
    assert (played(study, there, room.server, tmp_path, Fuse())[0], totals(there)) == (lines, paid)


# Labels of files: coins of the system, ledgers on disk, a curator with a ledger


@dataclass(frozen=True)
class Books:
    """Two nodes with records of a file each, and the server's state."""

    folder: Path
    study: Study

    def nodes(self) -> dict[int, Node]:
        """As processes that have just started."""
        policy = Policy(trusts=frozenset({Trust.LOCAL, Trust.CENTRAL}), units=frozenset({Unit.RECORD}), label_cap=None)
        columns = RecordColumns(("x", "z"), "linear", response="y", id="id", row="row")
        tables = [read_record_table(self.folder / f"{name}.csv", False, columns) for name in ("a", "b")]
        ledgers = [DiskLedger(self.folder / f"{name}.sqlite") for name in ("a", "b")]
        return {
            number: Node(table, policy, ledger, "os", FeatureStore(None))
            for number, (table, ledger) in enumerate(zip(tables, ledgers, strict=True))
        }

    def played(self, fuse: Fuse, folder: Path | None = None) -> tuple[str, int]:
        """A server's process, as `played`."""
        with ReleaseLedger(self.folder / "curator.sqlite") as ledger:
            server = Server(FeatureStore(None), 0, LiveCurator(ledger))
            return played(self.study, self.nodes(), server, folder or self.folder, fuse)

    def spent(self) -> object:
        """What ledgers charged, entry by entry and in total, and how often the curator released."""
        paths = [self.folder / f"{name}.sqlite" for name in ("a", "b")]
        entries = [sorted((e.mechanism, e.epsilon, e.delta, e.labels) for e in read_entries(path)) for path in paths]
        return entries, [read_labelers(path) for path in paths], len(read_releases(self.folder / "curator.sqlite"))


MOVES = (("rounds", Decimal(ROUNDS)), ("step", Decimal("0.25")))
LOCAL = Arm(Trust.LOCAL, "piecewise", "descent", MOVES)
CENTRAL = Arm(Trust.CENTRAL, "gaussian", "descent", MOVES)


def books(folder: Path, *arms: Arm) -> Books:
    """Fresh files and ledgers."""
    folder.mkdir()
    for file, rows in (("a", range(25)), ("b", range(25, CELL.n))):
        lines = [f"{row},p{row},{row % 7 / 7},{row % 5 / 5},{row % 3}" for row in rows]
        (folder / f"{file}.csv").write_text("\n".join(["row,id,x,z,y", *lines]) + "\n", encoding="utf-8")
    study = Study(
        name="records of files",
        seed=0,
        repetitions=1,
        problem=Problem(2, "records", False, Decimal(2), kind="records", model="linear"),
        grid=Grid((CELL.n,), (Decimal(1),), (Decimal("1e-5"),)),
        arms=arms,
        records=RecordLaw(per_holder=1, tail=Decimal("0.5"), moment=Decimal(16)),
    )
    return Books(folder, study)


@pytest.mark.parametrize("arms", [(LOCAL,), (CENTRAL, LOCAL)], ids=["local", "central"])
@pytest.mark.parametrize("count", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_a_crash_at_any_step_spends_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arms: tuple[Arm, ...], count: int
) -> None:
    """Totals are those of one uninterrupted run, and what came out is what everybody says when asked once more.

    An exact round is not in the journal: it is asked again, and every node repeats it from its ledger.
    """
    whole, fuse = books(tmp_path / "whole", *arms), Fuse()
    with dying_disk(fuse, monkeypatch):
        whole.played(fuse)
    found = []
    for at in np.linspace(1, fuse.steps, count + 2).astype(int)[1:-1].tolist():
        own = books(tmp_path / str(at), *arms)
        with dying_disk(Fuse(at), monkeypatch) as dying, pytest.raises(Crash):
            own.played(dying)
        kept = b"".join(path.read_bytes() for path in own.folder.glob("*.journal"))
        found.append(len(kept) > len(MAGIC))  # an early crash finds nothing there yet
        lines, rounds = own.played(Fuse())
        assert (rounds < ROUNDS) == found[-1]
        assert own.spent() == whole.spent(), at
        assert not list(own.folder.glob("*.journal"))
        (own.folder / "again").mkdir()
        assert own.played(Fuse(), own.folder / "again")[0] == lines
        assert own.spent() == whole.spent()
    assert any(found) == (CENTRAL not in arms)


# What does not count is not kept


def test_a_round_that_fails_is_asked_again(synthetic: Loaded, tmp_path: Path) -> None:
    """A node refuses in the third round; when its policy is mended the study goes on there."""
    study, room = synthetic.study, in_process(synthetic.study, synthetic.theta, clients=2)
    there = dict(enumerate(room.nodes))

    class Stubborn(Wire):
        def push(self, nodes: Sequence[int], raw: bytes) -> Sequence[str | None]:
            if self.rounds == 2:
                self.there = {**self.there, 1: replace(self.there[1], policy=Policy())}
            return super().push(nodes, raw)

    exchange = Exchange(Stubborn(dict(there), Fuse()), sorted(there), 60.0, strict=True)
    with (
        pytest.raises(RoundFailed, match="TRUST_NOT_ALLOWED x 1"),
        resumed(tmp_path, study, CELL, exchange.ask, complete) as own,
    ):
        list(play(study, CELL, own.ask, room.server, own.check))
    lines, rounds = played(study, there, room.server, tmp_path, Fuse())
    assert rounds == ROUNDS - 2
    (tmp_path / "whole").mkdir()
    assert played(study, there, room.server, tmp_path / "whole", Fuse())[0] == lines


def test_a_damaged_journal_ends_the_run_by_name(
    synthetic: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, room = synthetic.study, in_process(synthetic.study, synthetic.theta, clients=2)
    there = dict(enumerate(room.nodes))
    crashed(study, there, room.server, tmp_path, 100, monkeypatch)
    path = journal_path(tmp_path, study, CELL)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(JournalError, match=path.name):
        played(study, there, room.server, tmp_path, Fuse())
    assert path.read_bytes() == content, "damage is never silently reset"
