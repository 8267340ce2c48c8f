"""The wire: golden files, strictness, and round trips of arbitrary messages."""

import importlib.util
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from protocol import halftruth_pb2 as wire
from protocol.arrays import decode_array
from protocol.codec import (
    Signed,
    decode_bundle,
    decode_input,
    decode_reply,
    decode_report,
    decode_task,
    decode_tasks,
    encode_bundle,
    encode_refusal,
    encode_reply,
    encode_report,
    encode_task,
    identity,
    sign_reply,
)
from protocol.errors import WireError
from protocol.messages import KEPT, Code, Coins, Kind, Mechanism, Payload, Refusal, Report, Runs
from protocol.secure.codec import decode_ask, decode_session_reply
from protocol.signature import report_words, tasks_words

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = sorted(GOLDEN.glob("*.json"))
DECODE = {
    "task": decode_task,
    "report": decode_report,
    "reply": decode_reply,
    "bundle": decode_bundle,
    "tasks": decode_tasks,
    "session ask": decode_ask,
    "session reply": decode_session_reply,
    "input": decode_input,
}


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_file(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    raw = bytes.fromhex(record["bytes"])
    assert identity(raw).hex() == record["id"]
    if not record["success"]:
        with pytest.raises(WireError):
            DECODE[record["message"]](raw)
        return
    message = DECODE[record["message"]](raw)
    if record["message"] == "task":
        assert encode_task(message) == raw  # type: ignore[arg-type]
    if record["message"] == "report":
        assert encode_report(message) == raw  # type: ignore[arg-type]


def test_golden_files_are_what_the_code_writes(make: ModuleType) -> None:
    cases = {**make.good(), **make.bad()}
    assert {path.stem for path in FILES} == set(cases)
    for name, (_, raw) in cases.items():
        assert json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["bytes"] == raw.hex(), name


def test_every_field_of_a_task_survives(make: ModuleType) -> None:
    task = decode_task(encode_task(make.EVERY_FIELD))
    for name in task.__dataclass_fields__:
        if name not in ("problem", "theta"):
            assert getattr(task, name) == getattr(make.EVERY_FIELD, name), name
    assert task.problem.digest == make.EVERY_FIELD.problem.digest
    assert task.theta is not None
    assert task.theta.tolist() == make.EVERY_FIELD.theta.tolist()


def test_points_and_coordinates_of_records_survive(make: ModuleType) -> None:
    task = decode_task(encode_task(make.RECORDS))
    assert task.coordinates == make.RECORDS.coordinates
    assert task.theta is not None and task.centre is not None
    assert task.theta.tolist() == make.RECORDS.theta.tolist()
    assert task.centre.tolist() == make.RECORDS.centre.tolist()


def test_signature_is_outside_the_reports_id(make: ModuleType) -> None:
    raw = encode_report(make.BITS)
    plain, signed = (decode_reply(encode_reply([(raw, s)])) for s in (b"", b"key"))
    assert isinstance(plain, list)
    assert isinstance(signed, list)
    assert isinstance(plain[0], Signed)
    assert plain[0].id == signed[0].id == identity(raw)
    assert signed[0].signature == b"key"


def test_a_reply_is_signed_report_by_report_and_a_refusal_not_at_all(make: ModuleType) -> None:
    raws = [encode_report(make.BITS), encode_report(make.SUMS)]
    signed = sign_reply(encode_reply([(raw, b"") for raw in raws]), lambda raw: b"under " + identity(raw))
    assert signed == encode_reply([(raw, b"under " + identity(raw)) for raw in raws])
    refusal = encode_refusal(Refusal(bytes(32), Code.INTERNAL))
    assert sign_reply(refusal, lambda raw: b"under") == refusal


def test_what_is_signed_tells_kinds_numbers_and_orders_apart() -> None:
    words = [report_words(b"ab"), tasks_words([b"ab"]), tasks_words([b"a", b"b"]), tasks_words([b"b", b"a"])]
    words += [tasks_words([]), report_words(b""), report_words(encode_bundle([b"ab"]))]
    assert len(set(words)) == len(words)
    assert decode_tasks(encode_bundle([b"a", b"b"], b"s")) == ([b"a", b"b"], b"s")


@given(
    hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.integers(0, 1)),
    st.sampled_from(Coins),
)
def test_bits_round_trip(bits: np.ndarray, coins: Coins) -> None:
    report = Report(
        bytes(32),
        Runs.of(range(3, 3 + 2 * bits.shape[1], 2)),
        Payload(Kind.SYMBOLS, bits, None, 2),
        Mechanism.of("randomized-response", epsilon=Decimal("0.1")),
        bytes(32),
        coins,
        bytes(8),
    )
    raw = encode_report(report)
    back = decode_report(raw)
    assert back.payload.values.tolist() == bits.tolist()
    assert (back.rows, back.coins, back.mechanism) == (report.rows, coins, report.mechanism)
    # The length is a function of public things: shape, rows, mechanism.
    other = Report(*(getattr(report, f) for f in ("task", "rows")), Payload(Kind.SYMBOLS, 1 - bits, None, 2),
                   *(getattr(report, f) for f in ("mechanism", "table", "coins", "numerics")))  # fmt: skip
    assert len(encode_report(other)) == len(raw)


@given(st.lists(st.integers(0, 400), unique=True).map(sorted))
def test_runs_name_exactly_their_numbers(numbers: list[int]) -> None:
    runs = Runs.of(numbers)
    assert runs.numbers().tolist() == numbers
    assert runs.count == len(numbers)
    assert np.flatnonzero(runs.have(np.arange(420))).tolist() == numbers


@pytest.mark.parametrize("count", [1, KEPT.start - 1, KEPT.start, KEPT.stop - 1, KEPT.stop])
def test_numbers_that_are_kept_are_the_same_and_nobody_writes_to_them(count: int) -> None:
    first, again = (Runs.of(range(7, 7 + 3 * count, 3)).numbers() for _ in range(2))
    assert np.array_equal(first, np.arange(7, 7 + 3 * count, 3)) and first.dtype == np.int64
    assert (first is again) is (count in KEPT)
    assert first.flags.writeable is (count not in KEPT)


@pytest.mark.parametrize("runs", [((5, 1, 1), (3, 1, 1)), ((0, 0, 2),), ((0, 1, 0),), ((0, 1, 3), (2, 1, 1))])
def test_runs_that_repeat_or_fall_back_are_refused(runs: tuple[tuple[int, int, int], ...]) -> None:
    with pytest.raises(ValueError, match="runs"):
        Runs(runs)


@given(st.binary(max_size=200))
def test_noise_is_refused_or_canonical(raw: bytes) -> None:
    for decode in (decode_task, decode_report, decode_reply):
        try:
            decode(raw)
        except WireError:
            continue
        pytest.fail("random bytes were taken for a message")


@given(st.data())
def test_one_changed_byte_never_raises_anything_else(make: ModuleType, data: st.DataObject) -> None:
    for kind, raw in filter(lambda case: case[1], make.good().values()):
        at = data.draw(st.integers(0, len(raw) - 1))
        changed = raw[:at] + bytes([data.draw(st.integers(0, 255))]) + raw[at + 1 :]
        try:
            DECODE[kind](changed)
        except WireError:
            continue


@pytest.mark.parametrize("dtype", [wire.DTYPE_BIT, wire.DTYPE_U8, wire.DTYPE_F64])
@pytest.mark.parametrize("shape", [[0, 1 << 63], [0, (1 << 64) - 1], [1 << 62, 0], [0, 1 << 31, 1 << 31, 2]])
def test_an_axis_beyond_all_memory_is_refused_beside_one_of_nothing(dtype: wire.DType, shape: list[int]) -> None:
    """Not an OverflowError, which no reader of replies expects: one node could end everybody's run."""
    with pytest.raises(ValueError, match="expected at most"):
        decode_array(wire.Array(dtype=dtype, shape=shape, data=b""))


def test_a_million_bits_of_one_labeler_take_125_kilobytes() -> None:
    bits = np.zeros((1, 1_000_000), dtype=np.uint8)
    report = Report(bytes(32), None, Payload(Kind.SYMBOLS, bits, None, 2), Mechanism("none"), b"", Coins.OS, bytes(8))
    assert 125_000 <= len(encode_report(report)) < 125_200


def test_a_refusal_carries_a_code_and_nothing_else(make: ModuleType) -> None:
    _, raw = make.good()["reply_refusal"]
    assert decode_reply(raw) == Refusal(make.BITS.task, Code.BUDGET_EXHAUSTED)


@pytest.mark.parametrize("bound", ["3.0", "3", "0.30", "1e1"])
def test_a_problem_keeps_its_name_on_the_wire(make: ModuleType, bound: str) -> None:
    problem = replace(make.DRAWN, bound=Decimal(bound))
    assert decode_task(encode_task(replace(make.LOCAL, problem=problem))).problem.digest == problem.digest


def test_a_sender_cannot_fill_a_log(make: ModuleType) -> None:
    raw = encode_report(replace(make.BITS, mechanism=Mechanism("x" * 10_000, (("b", Decimal(1)), ("a", Decimal(1))))))
    with pytest.raises(WireError) as caught:
        decode_report(raw)
    assert len(str(caught.value)) < 250
