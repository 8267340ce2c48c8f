"""What a server received, against what was promised: real replies, and replies that promise less or are none."""

import struct
from decimal import Decimal
from pathlib import Path

import pytest

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from protocol.codec import encode_bundle, encode_task
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.audit.given import GivenLabels
from studies.audit.transcript import received, stored
from studies.cli import main


def reply(trust: Trust, epsilon: str | None) -> bytes:
    level = None if epsilon is None else Decimal(epsilon)
    menu = Mechanism("none") if level is None else Mechanism.of("randomized-response", epsilon=level)
    problem = Problem(3, "gaussian", True, Decimal(3))
    task = Task(b"s" * 32, trust, Unit.LABEL, problem, (menu,), 4, level, None, 0, 1)
    node = Node(GivenLabels((0, 1, 1, 0)), Policy.simulation(), MemoryLedger(), "os", FeatureStore(None))
    return answer(encode_task(task), node)


def written(folder: Path, *messages: bytes) -> Path:
    raw = b"".join(struct.pack("<Q", len(message)) + message for message in messages)
    (folder / "transcript.bin").write_bytes(raw)
    return folder


def test_what_was_promised_is_what_came(tmp_path: Path) -> None:
    folder = written(tmp_path, reply(Trust.LOCAL, "1"), encode_bundle([reply(Trust.LOCAL, "0.5")]))
    found = received(stored(folder), Trust.LOCAL, Decimal(1))
    assert not found.broken and found.messages == 2
    assert found.reports == {"randomized-response at 1": 1, "randomized-response at 0.5": 1}
    assert Decimal("0.99") < found.level <= 1
    assert main(["audit", "transcript", str(folder), "--epsilon", "1"]) == 0


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (reply(Trust.CLEAR, None), "clear: none where local was promised"),
        (reply(Trust.LOCAL, "2"), "a claim of 2 above 1"),
        (b"labels: 0110", "does not read"),
    ],
)
def test_what_promises_less_is_told(tmp_path: Path, message: bytes, words: str) -> None:
    folder = written(tmp_path, reply(Trust.LOCAL, "1"), message)
    found = received(stored(folder), Trust.LOCAL, Decimal(1))
    assert any(words in told for told in found.broken)
    assert main(["audit", "transcript", str(folder), "--epsilon", "1"]) == 1


def test_a_cut_transcript_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path, reply(Trust.LOCAL, "1"))
    path = folder / "transcript.bin"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(StudyError, match="cut off"):
        stored(folder)
    assert main(["audit", "transcript", str(tmp_path / "nowhere")]) == 2
