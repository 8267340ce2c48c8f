"""Real file systems that are full: nobody's answer leaves, nothing is released, and nothing is lost."""

import os
import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pytest

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.ledger_view import read_entries, read_labelers
from client.policy import Policy
from client.sources.loading import read_table
from protocol.codec import decode_reply, encode_task
from protocol.messages import Code, Mechanism, Refusal, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust
from server.journal import Journal, JournalError
from server.release import ReleaseLedger
from server.release_file import LedgerError, read_releases
from server.release_record import ReleaseRequest

Disk = tuple[Path, Callable[[], None]]
TASKS = 2_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small file system, and a way to make it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)]
    if os.name != "posix" or os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root mounts file systems, and not everywhere")
    try:
        yield folder, lambda: subprocess.run(["mount", "-o", "remount,size=8m", str(folder)], check=True) and None
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_node_whose_ledger_has_no_room_refuses_and_owes_nothing(disk: Disk, tmp_path: Path) -> None:
    folder, grow = disk
    lines = ["labeler,item_a,item_b,winner", *(f"p{row},x,y,item_a" for row in range(40))]
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(tmp_path / "votes.csv", False)
    policy = Policy(label_cap=Decimal(TASKS))
    node = Node(table, policy, DiskLedger(folder / "ledger.sqlite"), "os", FeatureStore(None))
    problem = Problem(len(table.items), "items", True, None, table.pairs)

    def asked(number: int) -> tuple[bytes, Code | None]:
        """A question of its own: levels differ, so that each is another channel."""
        epsilon = Decimal("0.1") + Decimal(number) / 10_000
        menu = (Mechanism.of("randomized-response", epsilon=epsilon),)
        task = Task(bytes(32), Trust.LOCAL, Unit.LABEL, problem, menu, len(table.pairs), epsilon, None, 0, 1)
        raw = answer(encode_task(task), node)
        reply = decode_reply(raw)
        return raw, reply.code if isinstance(reply, Refusal) else None

    answers = []
    for number in range(TASKS):
        raw, code = asked(number)
        if code is not None:
            break
        answers.append(raw)
    assert code is Code.LEDGER_UNAVAILABLE and 1 < len(answers) < TASKS
    assert len(read_entries(folder / "ledger.sqlite")) == len(answers)
    paid = sum((Decimal("0.1") + Decimal(number) / 10_000 for number in range(len(answers))), Decimal(0))
    assert {one.epsilon for one in read_labelers(folder / "ledger.sqlite")} == {paid}
    assert [asked(number)[0] for number in (0, len(answers) - 1)] == [answers[0], answers[-1]], "repeats are free"
    grow()
    assert asked(len(answers))[1] is None
    assert len(read_entries(folder / "ledger.sqlite")) == len(answers) + 1


def test_a_curator_whose_ledger_has_no_room_releases_nothing(disk: Disk) -> None:
    folder, grow = disk
    path, shown = folder / "curator.sqlite", []

    def released(ledger: ReleaseLedger, number: int) -> tuple[int, ...]:
        name = sha256(str(number).encode()).digest()
        how = ("gaussian-statistic", Decimal(1), Decimal("1e-5"), Unit.LABEL, 0)
        request = ReleaseRequest(name, 0, (b"one", b"two"), 2, -40, 1 << 60, *how)
        return ledger.release(request, [1 << 30, 5]).values

    with ReleaseLedger(path) as ledger:
        with pytest.raises(LedgerError, match="full"):
            shown.extend(released(ledger, number) for number in range(TASKS))
        assert 1 < len(shown) < TASKS
        assert [release.values for release in read_releases(path)] == shown
        grow()
        shown.append(released(ledger, len(shown)))
    assert [release.values for release in read_releases(path)] == shown


def test_a_journal_without_room_counts_no_round(disk: Disk) -> None:
    folder, grow = disk
    path, names = folder / "cell.journal", [sha256(bytes([t])).digest() for t in range(100)]
    with Journal.open(path) as journal:
        with pytest.raises(JournalError, match=r"No space left on device: nothing was counted"):
            _ = [journal.append(name, [b"round" * 1_000]) for name in names]  # type: ignore[func-returns-value]
        had = len(journal)
        assert 1 < had < 100 and journal.find(names[had]) is None
        grow()
        journal.append(names[had], [b"more"])
    with Journal.open(path) as journal:
        assert len(journal) == had + 1 and not journal.torn and journal.find(names[had]) == [b"more"]
