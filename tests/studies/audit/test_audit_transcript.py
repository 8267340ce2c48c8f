"""What a server asked and received, against what was promised: real runs, and transcripts with a lie in them."""

import json
import stat
import zlib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from protocol.arms import Arm
from protocol.codec import decode_reply, decode_task, encode_bundle, encode_reply, encode_report, encode_task
from protocol.messages import Coins, Mechanism, Report, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.tasks import offers
from server.transcript import FRAME, Transcript
from studies.audit.given import GivenLabels
from studies.audit.stored import Stored, stored
from studies.audit.transcript import Promise, Received, received
from studies.cli import main

ONE = Decimal(1)
PROMISE = Promise(Trust.LOCAL, ONE)
VOTES = "judge,model_a,model_b,winner\n" + "".join(
    f"j{row},{a},{b},model_{'ab'[row % 2]}\n" for row, (a, b) in enumerate([("x", "y"), ("y", "z"), ("z", "x")] * 3)
)


def task(trust: Trust = Trust.LOCAL, epsilon: str | None = "1") -> bytes:
    level = None if epsilon is None else Decimal(epsilon)
    menu = Mechanism("none") if level is None else Mechanism.of("randomized-response", epsilon=level)
    problem = Problem(3, "gaussian", True, Decimal(3))
    return encode_task(Task(b"s" * 32, trust, Unit.LABEL, problem, (menu,), 4, level, None, 0, 1))


def reply(raw: bytes, labels: tuple[int, ...] = (0, 1, 1, 0)) -> bytes:
    return answer(raw, Node(GivenLabels(labels), Policy.simulation(), MemoryLedger(), "os", FeatureStore(None)))


def changed(raw: bytes, change: Callable[[Report], Report]) -> bytes:
    """A reply whose report says something else."""
    (signed,) = decode_reply(raw)  # type: ignore[misc]
    return encode_reply([(encode_report(change(signed.report)), b"")])


ASKED, ANSWER = task(), reply(task())


def written(folder: Path, asked: list[bytes], *messages: bytes) -> Path:
    with Transcript(folder) as kept:
        kept.asked(asked)
        for message in messages:
            kept.came(message)
    return folder


def test_what_was_promised_is_what_came(tmp_path: Path) -> None:
    half = task(epsilon="0.5")
    folder = written(tmp_path, [ASKED, half], ANSWER, encode_bundle([reply(half)]), ANSWER)
    found = received(stored(folder), PROMISE)
    assert not found.broken and found.messages == 3
    assert found.tasks == {"local: randomized-response at 1": 1, "local: randomized-response at 0.5": 1}
    assert found.reports == {"randomized-response at 1": 2, "randomized-response at 0.5": 1}
    assert Decimal("0.99") < found.level <= 1
    assert main(["audit", "transcript", str(folder), "--epsilon", "1"]) == 0


@pytest.mark.parametrize("ties", [Ties.COIN, Ties.RANDOMIZED])
def test_tables_of_tasks_about_ties_are_known(tmp_path: Path, ties: Ties) -> None:
    raw = encode_task(replace(decode_task(ASKED), ties=ties))
    found = received(stored(written(tmp_path, [raw], reply(raw, (2, 1, 0, 2)))), PROMISE)
    assert not found.broken and Decimal("0.99") < found.level <= 1


def test_levels_of_several_tables_are_not_added_up(tmp_path: Path) -> None:
    """docs/AUDIT.md says so: each of the three is within the promise, and a label spends three times as much."""
    asked = [encode_task(replace(decode_task(ASKED), ties=ties)) for ties in (Ties.NONE, Ties.COIN, Ties.RANDOMIZED)]
    found = received(stored(written(tmp_path, asked, *map(reply, asked))), PROMISE)
    assert not found.broken and found.level <= 1 and found.reports.total() == 3


def flipped(report: Report) -> Report:
    return replace(report, payload=replace(report.payload, values=1 - report.payload.values))


def of_fewer(report: Report) -> Report:
    return replace(report, payload=replace(report.payload, values=report.payload.values[:, :3]))


def of_other_rows(report: Report) -> Report:
    return replace(report, rows=Runs.of(range(2, 6)))


def of_another_table(report: Report) -> Report:
    return replace(report, table=bytes(32))


CLEAR = task(Trust.CLEAR, None)
LIES: dict[str, tuple[list[bytes], bytes, str]] = {
    "a clear label": ([ASKED, CLEAR], reply(CLEAR), "clear: none where local was promised"),
    "a clear question": ([ASKED, CLEAR], b"", "a task that asks for clear where local was promised"),
    "a larger level": ([ASKED, task(epsilon="2")], reply(task(epsilon="2")), "a claim of 2 above 1"),
    "text": ([ASKED], b"labels: 0110", "does not read"),
    "what nobody asked": ([ASKED], reply(task(epsilon="0.25")), "an answer to another task"),
    "another table": ([ASKED], changed(ANSWER, of_another_table), "a table that is not that of randomized-response"),
    "another mechanism": (
        [ASKED],
        changed(ANSWER, lambda report: replace(report, mechanism=Mechanism.of("randomized-response", epsilon=ONE / 2))),
        "with other parameters than were offered",
    ),
    "rows of others": ([ASKED], changed(ANSWER, of_other_rows), "rows that were not asked for"),
    "fewer rows": ([ASKED], changed(ANSWER, of_fewer), "expected symbols of shape"),
    "a second answer": ([ASKED], changed(ANSWER, flipped), "not what was asked"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_told(tmp_path: Path, lie: str) -> None:
    asked, message, words = LIES[lie]
    folder = written(tmp_path, asked, ANSWER, *filter(None, [message]))
    found = received(stored(folder), PROMISE)
    assert any(words in told for told in found.broken), found.broken
    assert main(["audit", "transcript", str(folder), "--epsilon", "1"]) == 1


def test_a_shuffled_answer_has_to_go_through_the_shuffler(tmp_path: Path) -> None:
    """A simulation has none; with the system's coins a server would know whose the report is."""
    design = np.eye(1)[np.zeros(300, dtype=np.int64)]
    problem, arm = Problem(1, "values", False, Decimal(3), design), Arm(Trust.SHUFFLED, "randomized-response", "rr-mle")
    study = Study("crowd", 1, 1, problem, Grid((300,), (ONE,), (Decimal("1e-3"),)), (arm,))
    (offer,) = offers(study, Cell(300, 0, 1))
    assert offer.task is not None
    raw, source = encode_task(offer.task), GivenLabels((0, 1) * 150)
    node = Node(source, Policy.simulation(), MemoryLedger(), "addressed", FeatureStore(1), seed=1)
    simulated = answer(raw, node)

    def heard(name: str, came: bytes, trust: Trust) -> Received:
        (tmp_path / name).mkdir()
        return received(stored(written(tmp_path / name, [raw], came)), Promise(trust, ONE, addressed=True))

    told = heard("simulated", simulated, Trust.SHUFFLED)
    past = heard("past", changed(simulated, lambda report: replace(report, coins=Coins.OS)), Trust.SHUFFLED)
    other = heard("other", changed(simulated, of_another_table), Trust.CENTRAL)
    assert not told.broken and told.tasks == {"shuffled: randomized-response at 1": 1}
    assert any("came past the shuffler" in words for words in past.broken)
    assert any("a table that is not that of" in words for words in other.broken)


def test_coins_of_a_seed_are_told_unless_they_were_promised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = Node(GivenLabels((0, 1, 1, 0)), Policy.simulation(), MemoryLedger(), "addressed", FeatureStore(1), seed=1)
    folder = str(written(tmp_path, [ASKED], answer(ASKED, node)))
    assert main(["audit", "transcript", folder, "--epsilon", "1", "--json"]) == 1
    assert "whoever knows a seed" in "".join(json.loads(capsys.readouterr().out)["broken"])
    assert main(["audit", "transcript", folder, "--epsilon", "1", "--coins", "addressed"]) == 0


def test_every_changed_byte_and_every_cut_is_told(tmp_path: Path) -> None:
    """In a length, a kind, a check or a body."""
    (path,) = written(tmp_path, [ASKED], ANSWER, ANSWER).iterdir()
    raw = path.read_bytes()
    for place in range(0, len(raw), 7):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        assert broken(path), place
    ends = {start + FRAME.size + size for start, size in frames(raw)} | {raw.index(b"\n") + 1}
    for size in range(0, len(raw), 3):
        path.write_bytes(raw[:size])
        assert size in ends or broken(path), size


def broken(path: Path) -> bool:
    try:
        return bool(received(stored(path), PROMISE).broken)
    except StudyError:
        return True


def frames(raw: bytes) -> list[tuple[int, int]]:
    found, place = [], raw.index(b"\n") + 1
    while place < len(raw):
        _, size, check = FRAME.unpack(raw[place : place + FRAME.size])
        assert zlib.crc32(raw[place + FRAME.size : place + FRAME.size + size]) == check
        found.append((place, size))
        place += FRAME.size + size
    return found


def test_what_is_no_transcript_is_told(tmp_path: Path) -> None:
    assert main(["audit", "transcript", str(tmp_path)]) == 2
    assert main(["audit", "transcript", str(tmp_path / "nowhere")]) == 2
    assert main(["audit", "transcript"]) == 2
    assert not received(Stored(), PROMISE).broken


# Runs in this process; those over real servers are in tests/flower_processes


def test_a_federation_of_files_keeps_what_its_server_received(tmp_path: Path) -> None:
    votes, out, kept = tmp_path / "votes.csv", tmp_path / "nodes", tmp_path / "kept"
    votes.write_text(VOTES, encoding="utf-8")
    assert main(["data", "split", str(votes), "--nodes", "3", "--out", str(out)]) == 0
    words = ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", "--epsilon", "1"]
    for _ in range(2):  # the second time nodes repeat their answers
        assert main([*words, "--transcript", str(kept)]) == 0
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    found = stored(kept)
    assert len(found.came) == 6 and len(set(found.came)) == 3 and len(found.asked) == 2
    told = received(found, PROMISE)
    assert not told.broken and set(told.coins) == {"os"}
    assert received(found, Promise(Trust.LOCAL, Decimal("0.5"))).broken


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_study_keeps_what_its_servers_received_and_its_numbers(tmp_path: Path, jobs: str) -> None:
    study, kept = Path(__file__).parents[3] / "studies" / "toml" / "quick.toml", tmp_path / "kept"
    words = ["run", str(study), "--set", "study.repetitions=1", "--set", "grid.n=[50, 60]", "--clients", "3"]
    assert main([*words, "--out", str(tmp_path / "with"), "--transcript", str(kept), "--jobs", jobs]) == 0
    assert main([*words, "--out", str(tmp_path / "without"), "--jobs", "1"]) == 0
    one, other = ((tmp_path / name / "results.parquet").read_bytes() for name in ("with", "without"))
    assert one == other
    assert len(list(kept.iterdir())) == 2, "one file a cell"
    found = received(stored(kept), Promise(Trust.CLEAR, None, addressed=True))
    assert not found.broken and found.messages == 3 * sum(found.tasks.values())
    assert np.all([name.split(":")[0] in ("clear", "central", "local") for name in found.tasks])


def test_a_server_that_runs_is_told_by_whoever_starts_it(tmp_path: Path) -> None:
    kept = ["--transcript", str(tmp_path / "kept")]
    study = str(Path(__file__).parents[3] / "studies" / "toml" / "quick.toml")
    out = ["--out", str(tmp_path / "out"), "--on", "deployment"]
    assert main(["run", study, *out, "--superlink", "lab", *kept]) == 2
    assert main(["run", study, *out, "--federation", str(tmp_path / "none"), *kept]) == 2
    assert not (tmp_path / "kept").exists() and not (tmp_path / "out").exists()
