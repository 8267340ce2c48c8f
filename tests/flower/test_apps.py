"""Both Flower apps over a Grid in memory: the bits of the in-process runtime, and a name for everything that fails."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict

import client.app
import server.exchange
import server.post
from client.labels import Labels
from client.node_file import build, read_node
from client.sources.synthetic import write_truth
from protocol.codec import decode_bundle, decode_reply, decode_task, encode_bundle, encode_refusal, identity
from protocol.messages import Code, Kind, Refusal, Ties
from protocol.parcel import parcel_of
from protocol.privacy import Unit
from protocol.runconfig import read, write
from protocol.study import Study, cells
from protocol.trust import Trust
from server.app import RunFailed
from server.app import app as server_app
from server.outcome_record import Lines, cell_name, decode, encode
from studies.cli import main
from studies.federate.ask import study_and_task
from studies.federate.folder import read_facts
from studies.fit.request import BALL, Request
from studies.in_process import run_cell

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
Virtual = Callable[[int], list[dict[str, Any]]]
Transcribed = Callable[[Path], list[bytes]]


def small(repetitions: int = 3, n: tuple[int, ...] = (40, 60)) -> Study:
    """All arms of figure 1, few rows."""
    study = read({}).study
    return replace(study, repetitions=repetitions, grid=replace(study.grid, n=n))


def configured(study: Study, **changes: Any) -> dict[str, Any]:
    return {**write(study), "truth": write_truth(THETA), "deadline": 5.0, **changes}


def start(grid: Any, config: dict[str, Any]) -> None:
    server_app(grid, Context(1, 1, {}, RecordDict(), config))


def delivered(folder: Path, study: Study, block: int | None = None) -> list[str]:
    """The lines of all cells: tests of records hold them to say every field and bit."""
    paths = [folder / f"{cell_name(cell)}.jsonl" for cell in cells(study, block)]
    return [line for path in paths for line in path.read_text("utf-8").splitlines()]


def in_process(study: Study, block: int | None = None) -> list[str]:
    return [encode(outcome, study) for cell in cells(study, block) for outcome in run_cell(study, THETA, cell)]


def bundle(raw: bytes, asked: Message) -> Message:
    array = Array(np.frombuffer(raw, dtype=np.uint8))
    return Message(RecordDict({"halftruth": ArrayRecord({"bundle": array})}), reply_to=asked)


@pytest.fixture
def outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the server leaves outcomes."""
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_every_arm_has_the_bits_of_the_in_process_runtime(
    grid: Any, virtual: Virtual, outcomes: Path, clients: int
) -> None:
    study = small()
    config = configured(study, clients=clients, block=2)
    room = grid(virtual(clients), config)
    start(room, config)
    assert delivered(outcomes, study, 2) == in_process(study, 2)
    assert (outcomes / "done").exists() and not (outcomes / "failed.txt").exists()
    assert room.pulls == len(cells(study, 2)), "one message a node and cell, and no waiting for what is there"


def test_a_bare_run_shows_the_built_in_study_in_the_log(
    grid: Any, virtual: Virtual, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HALFTRUTH_OUTCOMES", raising=False)
    config = {"study": "", "design": "", "truth": write_truth(THETA), "clients": 0}
    with caplog.at_level("INFO", logger="flwr"):
        start(grid(virtual(2), config), config)
    reader, study = Lines(), read({}).study
    found = [item for item in (reader.feed(record.getMessage()) for record in caplog.records) if item]
    ((cell, records),) = found
    assert reader.done and [cell] == cells(study)
    assert records == in_process(study)


def test_finished_cells_are_not_asked_again(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    study = small()
    config = configured(study, block=2)
    first, *_ = cells(study, 2)
    (outcomes / f"{cell_name(first)}.jsonl").write_text("kept\n", "utf-8")
    room = grid(virtual(2), config)
    start(room, config)
    assert room.pulls == len(cells(study, 2)) - 1
    assert (outcomes / f"{cell_name(first)}.jsonl").read_text("utf-8") == "kept\n"
    assert sorted(path.name for path in outcomes.iterdir()) == sorted(
        [*(f"{cell_name(cell)}.jsonl" for cell in cells(study, 2)), "done", "rounds.txt"]
    )


def test_cells_that_the_configuration_calls_finished_are_not_asked(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    """For a SuperLink that is not ours: its server finds no folder of ours."""
    study = small()
    config = configured(study, block=2, finished=f"{0b1001:x}")
    room = grid(virtual(2), config)
    start(room, config)
    _, *asked, _ = cells(study, 2)
    assert len(asked) == 2 and room.pulls == 2
    left = {path.name for path in outcomes.iterdir()}
    assert left == {"done", "rounds.txt", *(f"{cell_name(cell)}.jsonl" for cell in asked)}


def test_a_transcript_holds_every_byte_that_arrived_and_no_clear_symbol_of_a_local_arm(
    grid: Any, virtual: Virtual, outcomes: Path, transcribed: Transcribed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALFTRUTH_TRANSCRIPT", str(outcomes))
    study = small(2, (50,))
    config = configured(study)
    room = grid(virtual(2), config)
    asked: dict[bytes, Trust] = {}
    arrived: list[bytes] = []

    def note(message: Message, reply: Message) -> list[Message]:
        raw = parcel_of(message.content)
        asked.update((identity(task), decode_task(task).trust) for task in decode_bundle(raw))
        arrived.append(parcel_of(reply.content))
        assert len(reply.content) == 1
        return [reply]

    room.change = note
    start(room, config)
    assert transcribed(outcomes) == arrived
    for raw in arrived:
        for reply in map(decode_reply, decode_bundle(raw)):
            assert not isinstance(reply, Refusal)
            for report in (signed.report for signed in reply):
                trust = asked[report.task]
                assert (report.table != b"") == (trust is Trust.LOCAL)
                assert (report.payload.kind is Kind.EXACT_SUMS) == (trust is Trust.CENTRAL)


# What fails is named


def fails(grid: Any, config: dict[str, Any], nodes: list[dict[str, Any]], change: Any, outcomes: Path) -> str:
    room = grid(nodes, config)
    if change is not None:
        room.change = change
    with pytest.raises(RunFailed) as caught:
        start(room, config)
    reason = (outcomes / "failed.txt").read_text("utf-8")
    assert reason == f"{caught.value}\n" and not (outcomes / "done").exists()
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    return reason


def only(node: int, change: Callable[[Message, Message], list[Message]]) -> Callable[[Message, Message], list[Message]]:
    """A change for one node; others answer as they are."""
    return lambda asked, reply: change(asked, reply) if asked.metadata.dst_node_id == node else [reply]


def records(**held: Any) -> Callable[[Message], Message]:
    """A reply that holds just these records."""
    return lambda asked: Message(RecordDict(held), reply_to=asked)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda asked: Message(Error(8, "secret"), reply_to=asked), "Flower's error 8: its process died"),
        (lambda asked: Message(Error(77, "secret"), reply_to=asked), "Flower's error 77: an unknown error"),
        (lambda asked: bundle(b"", asked), "0 replies to 5 tasks"),
        (lambda asked: bundle(b"secret", asked), "expected the bytes of a bundle"),
        (records(), "0 replies to 5 tasks"),
        (records(halftruth=ConfigRecord({"bundle": b"secret"})), "expected the bytes of a bundle"),
        (records(halftruth=ConfigRecord({"bundle": "secret"})), "0 replies"),
        (records(halftruth=ConfigRecord({"bundle": [b"secret"]})), "0 replies"),
        (records(halftruth=ConfigRecord({"bundle": b"secret", "more": 1})), "0 replies"),
        (records(another=ConfigRecord({"bundle": b"secret"})), "0 replies"),
        (records(halftruth=ArrayRecord({"bundle": Array(np.zeros(3))})), "0 replies"),
        (records(halftruth=ArrayRecord({"bundle": Array(np.zeros((1, 1), np.uint8))})), "0 replies"),
        (records(halftruth=ArrayRecord({"bundle": Array("uint8", (9,), "numpy.ndarray", b"secret")})), "0 replies"),
        (records(halftruth=ArrayRecord({"bundle": Array("uint8", (9,), "secret", b"secret")})), "0 replies"),
        (records(halftruth=ArrayRecord(), more=MetricRecord({"secret": 1})), "0 replies"),
    ],
)
def test_what_a_strict_run_cannot_use_ends_it_by_name(
    grid: Any, virtual: Virtual, outcomes: Path, reply: Callable[[Message], Message], reason: str
) -> None:
    found = fails(grid, configured(small()), virtual(3), only(101, lambda asked, _: [reply(asked)]), outcomes)
    assert f"expected a reply of node 101, got none: {reason}" in found and "secret" not in found


def test_replies_that_are_none_end_a_strict_run(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    def garbage(asked: Message, reply: Message) -> list[Message]:
        return [bundle(encode_bundle([b"secret"] * 5), asked)]

    found = fails(grid, configured(small()), virtual(3), only(101, garbage), outcomes)
    assert "rejected: 1 (node 101: expected the bytes of a reply" in found and "secret" not in found


def test_a_reply_with_more_than_its_bytes_is_none(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    def more(asked: Message, reply: Message) -> list[Message]:
        return [Message(RecordDict({**reply.content, "more": MetricRecord({"secret": 1})}), reply_to=asked)]

    found = fails(grid, configured(small()), virtual(3), only(101, more), outcomes)
    assert "node 101, got none: 0 replies" in found and "secret" not in found


def test_a_node_that_does_not_answer_is_named(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    found = fails(grid, configured(small(), deadline=0.3), virtual(3), only(101, lambda asked, reply: []), outcomes)
    assert "node 101, got none: no reply within 0.3 s" in found


def test_a_reply_of_somebody_else_is_none(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    def foreign(asked: Message, reply: Message) -> list[Message]:
        reply.metadata.__dict__["_src_node_id"] = 100
        return [reply]

    found = fails(grid, configured(small(), deadline=0.3), virtual(2), only(101, foreign), outcomes)
    assert "expected a reply of node 101, got none: no reply within 0.3 s" in found


def test_replies_twice_and_to_nothing_are_counted_and_harmless(
    grid: Any, virtual: Virtual, outcomes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def more(asked: Message, reply: Message) -> list[Message]:
        stray = Message(reply.content, reply_to=asked)
        stray.metadata.__dict__["_reply_to_message_id"] = "nobody"
        return [stray, reply, reply]

    study = small(2, (50,))
    room = grid(virtual(3), configured(study))
    room.change = only(100, more)
    with caplog.at_level("INFO", logger="flwr"):
        start(room, configured(study))
    assert delivered(outcomes, study) == in_process(study)
    assert "answered: 3, duplicate: 1, foreign: 1" in caplog.text


def test_a_live_run_goes_on_with_those_that_answered(
    grid: Any, virtual: Virtual, outcomes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = small(2, (40, 60))
    study = replace(study, arms=tuple(arm for arm in study.arms if arm.trust is not Trust.CENTRAL))
    held: list[Message] = []

    def slow(asked: Message, reply: Message) -> list[Message]:
        late, held[:] = list(held), [reply]
        return late

    config = configured(study, mode="live", deadline=0.3)
    room = grid(virtual(4), config)
    room.change = only(101, slow)
    with caplog.at_level("INFO", logger="flwr"):
        start(room, config)
    assert "answered: 6, late: 1, missing: 2" in caplog.text
    for cell in cells(study):
        lines = (outcomes / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
        found = [decode(line, study) for line in lines]
        assert {o.warnings[-1:] for o in found if o.arm.trust} == {
            (f"rows-missing: {cell.n * 3 // 4} of {cell.n} rows answered",)
        }


def test_a_live_run_says_what_it_leaves_out(
    grid: Any, virtual: Virtual, outcomes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One node refuses, one answers for another one's rows, and one sends garbage."""
    study = small(1, (60,))
    study = replace(study, arms=tuple(arm for arm in study.arms if arm.trust is Trust.LOCAL))
    config = configured(study, mode="live")
    room = grid([*virtual(3), {"config": "/nowhere/node.toml"}, virtual(3)[0], *virtual(1)], config)
    room.change = only(105, lambda asked, reply: [bundle(encode_bundle([b"secret"]), asked)])
    with caplog.at_level("INFO", logger="flwr"):
        start(room, config)
    expected = {outcome.theta.tobytes() for outcome in run_cell(study, THETA, cells(study)[0])}
    for line in (outcomes / f"{cell_name(cells(study)[0])}.jsonl").read_text("utf-8").splitlines():
        assert decode(line, study).warnings[-1] == "reports-rejected: 2 reports rejected (node 100, node 104, node 105)"
        assert decode(line, study).theta.tobytes() in expected
    for words in (
        "refused: INTERNAL x 1 (node 103)",
        "rejected: node 104: a report that is already here (node 100)",
        "rejected: node 105: expected the bytes of a reply",
        "answered: 6, refused: 1, rejected: 2",
    ):
        assert words in caplog.text


def test_a_live_run_does_not_release_a_part_of_a_sum(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    config = configured(small(), mode="live", deadline=0.3)
    found = fails(grid, config, virtual(2), only(101, lambda asked, reply: []), outcomes)
    assert "rows for the central task" in found


def test_a_live_run_fails_below_its_quorum(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    """Of four nodes three answer: enough for a share of three quarters, and not for four."""
    study = replace(small(1, (60,)), arms=tuple(arm for arm in small().arms if arm.trust is Trust.LOCAL))
    config = configured(study, mode="live", deadline=1.0, clients=4, quorum="0.75")
    room = grid(virtual(4), config)
    room.change = only(101, lambda asked, reply: [])
    start(room, config)
    for name in ("done", f"{cell_name(cells(study)[0])}.jsonl"):
        (outcomes / name).unlink()
    config |= {"quorum": "4"}
    found = fails(grid, config, virtual(4), only(101, lambda asked, reply: []), outcomes)
    assert "expected reports that count of at least 4 nodes (quorum), got those of 3" in found
    assert "messages so far: answered: 3, missing: 1" in found


def test_a_live_run_without_any_answer_fails(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    config = configured(small(), mode="live", deadline=0.2)
    assert "got none: missing: 2" in fails(grid, config, virtual(2), lambda asked, reply: [], outcomes)


@pytest.mark.parametrize("clients", [1, 3])
def test_the_server_waits_for_exactly_the_clients_it_was_told(
    grid: Any, virtual: Virtual, outcomes: Path, clients: int
) -> None:
    found = fails(grid, configured(small(), clients=clients, deadline=0.2), virtual(2), None, outcomes)
    assert f"expected {clients} client{'s' if clients > 1 else ''} within 0.2 s, got 2" in found


def test_nobody_there_is_a_failure(grid: Any, outcomes: Path) -> None:
    assert "expected some clients" in fails(grid, configured(small(), deadline=0.2), [], None, outcomes)


def test_a_wrong_configuration_is_a_failure(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    assert "did you mean 'clients'" in fails(grid, {"client": 3}, virtual(1), None, outcomes)


def test_two_clients_with_the_same_rows_are_found(grid: Any, virtual: Virtual, outcomes: Path) -> None:
    found = fails(grid, configured(small()), [virtual(2)[0]] * 2, None, outcomes)
    assert "node 101: a report that is already here (node 100)" in found


# What a client sends when something fails in it


def test_a_client_without_a_node_refuses_with_a_code_and_no_text(
    grid: Any, virtual: Virtual, outcomes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [*virtual(1), {"config": "/nowhere/secret.toml"}]
    found = fails(grid, configured(small()), nodes, None, outcomes)
    assert "INTERNAL x 1" in found
    assert "secret" not in found + caplog.text


def test_a_client_that_raises_refuses_with_a_code_and_no_text(
    grid: Any, virtual: Virtual, outcomes: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: Labels) -> Any:
        raise RuntimeError("secret label 1")

    monkeypatch.setattr(Labels, "reveal", broken)
    found = fails(grid, configured(small()), virtual(2), None, outcomes)
    assert "INTERNAL x 2 (node 100, node 101)" in found and "secret" not in found + caplog.text


def test_a_client_answers_garbage_with_an_empty_bundle(virtual: Virtual) -> None:
    context = Context(1, 7, virtual(1)[0], RecordDict(), configured(small()))
    for content in (
        RecordDict(),
        RecordDict({"halftruth": ConfigRecord({"bundle": b"x"})}),
        RecordDict({"halftruth": ArrayRecord({"bundle": Array(np.zeros((2, 2)))})}),
        RecordDict({"halftruth": ArrayRecord({"bundle": Array(np.frombuffer(b"secret", np.uint8))})}),
    ):
        message = Message(content, 7, "query")
        reply = client.app.app(message, context)
        assert parcel_of(reply.content) == encode_bundle([])


def test_a_client_refuses_what_is_no_task_one_by_one(virtual: Virtual) -> None:
    context = Context(1, 7, virtual(1)[0], RecordDict(), configured(small()))
    array = Array(np.frombuffer(encode_bundle([b"one", b"two"]), np.uint8))
    message = Message(RecordDict({"halftruth": ArrayRecord({"bundle": array})}), 7, "query")
    reply = client.app.app(message, context)
    raws = decode_bundle(parcel_of(reply.content))
    assert raws == [encode_refusal(Refusal(identity(raw), Code.TASK_INVALID)) for raw in (b"one", b"two")]


# The curator


def test_a_ledger_needs_a_folder_on_the_servers_machine(
    grid: Any, virtual: Virtual, outcomes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HALFTRUTH_STATE", raising=False)
    found = fails(grid, configured(small(), curator="ledger"), virtual(1), None, outcomes)
    assert "expected HALFTRUTH_STATE to name a folder" in found


def test_a_ledger_replays_its_releases(
    grid: Any, virtual: Virtual, outcomes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALFTRUTH_STATE", str(outcomes))
    study = small(1, (50,))
    config = configured(study, curator="ledger")
    runs = []
    for _ in range(2):
        start(grid(virtual(2), config), config)
        (part,) = outcomes.glob("cell-*.jsonl")
        runs.append(part.read_text("utf-8"))
        part.unlink()
    assert runs[0] == runs[1]
    assert (outcomes / "curator.sqlite").exists()


def test_a_ranking_of_files_is_asked_as_one_task(
    grid: Any, outcomes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes with files and ledgers of their own, labelers protected by a sum; another ledger is another task."""
    votes, out = tmp_path / "votes.csv", tmp_path / "split"
    votes.write_text("labeler,item_a,item_b,winner\np1,x,y,x\np1,y,z,y\np2,x,y,y\np3,x,z,tie\n")
    split = ["--nodes", "2", "--trust", "central", "--unit", "labeler", "--cap", "1"]
    assert main(["data", "split", str(votes), "--out", str(out), *split]) == 0
    facts = read_facts(out / "server")
    delta, ties = Decimal("1e-5"), Ties.COIN
    request = Request(
        out, Trust.CENTRAL, Decimal(1), delta, BALL, "mle", out, False, None, ties, unit=Unit.LABELER, cap=1
    )
    study, task = study_and_task(request, facts)
    config = write(study, task=task, clients=2, deadline=5.0, curator="ledger")
    nodes = [{"config": str(out / name / "node.toml")} for name in ("node-0", "node-1")]
    for node in nodes:
        build(read_node(Path(node["config"])), {})  # as at its start, which makes the ledger
    (cell,) = cells(study)
    found = []
    for state in ("one", "one", "another"):
        (tmp_path / state).mkdir(exist_ok=True)
        monkeypatch.setenv("HALFTRUTH_STATE", str(tmp_path / state))
        if state == "another":
            assert "BUDGET_EXHAUSTED x 2" in fails(grid, config, nodes, None, outcomes)
            continue
        start(grid(nodes, config), config)
        (line,) = (outcomes / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
        for name in (f"{cell_name(cell)}.jsonl", "done"):
            (outcomes / name).unlink()
        found.append(decode(line, study))
    assert found[0].theta.tobytes() == found[1].theta.tobytes()
    assert str(found[0].claim).endswith("per labeler; neighbours: replace all labels of one labeler")


def test_the_polling_is_short_at_first_and_bounded() -> None:
    pauses: list[float] = []
    clock = server.post.Clock(now=lambda: sum(pauses), sleep=pauses.append)

    class Silent:
        def nodes(self) -> list[int]:
            return [1]

        def push(self, nodes: Any, raw: bytes) -> list[str]:
            return ["a"]

        def pull(self, ids: Any) -> list[server.post.Letter]:
            return []

    golden = Path(__file__).parents[1] / "golden" / "task_local.json"
    task = bytes.fromhex(json.loads(golden.read_text("utf-8"))["bytes"])
    with pytest.raises(server.exchange.RoundFailed, match="no reply within 30 s"):
        server.exchange.Exchange(Silent(), [1], 30, True, clock=clock).ask([task])
    assert pauses[0] == 0.05 and max(pauses) == 0.5 and sum(pauses) < 31
