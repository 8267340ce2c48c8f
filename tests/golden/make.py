"""Write the golden files: messages as bytes, good ones and misbehaviour. They are the interface for other languages.

Run `python tests/golden/make.py` from the project's folder after a deliberate change, and give it a changelog line.
"""

import json
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1]))

from protocol import halftruth_pb2 as wire  # noqa: E402
from protocol.choice_law import choice_law  # noqa: E402
from protocol.codec import (  # noqa: E402
    encode_bundle,
    encode_refusal,
    encode_reply,
    encode_report,
    encode_task,
    identity,
)
from protocol.mechanisms import channel  # noqa: E402
from protocol.messages import (  # noqa: E402
    Code,
    Coins,
    Kind,
    Mechanism,
    Payload,
    Refusal,
    Report,
    Runs,
    Task,
    Ties,
)
from protocol.privacy import Unit  # noqa: E402
from protocol.problem import Problem  # noqa: E402
from protocol.secure.codec import encode_ask, encode_session_reply  # noqa: E402
from protocol.secure.messages import (  # noqa: E402
    NODE_KEY,
    PARCEL,
    PUBLIC,
    Agenda,
    Consent,
    Entry,
    Parcel,
    Reveal,
    SessionAsk,
    SessionReply,
    Stage,
)
from protocol.terms import law, share  # noqa: E402
from protocol.trust import Trust  # noqa: E402

ONE = Decimal(1)
RR = Mechanism.of("randomized-response", epsilon=ONE)
GAUSS = Mechanism.of("gaussian-statistic-clipped", epsilon=ONE, delta=Decimal("1e-5"), radius=Decimal("2.5"))
DRAWN = Problem(5, "gaussian", True, Decimal(3))
ITEMS = Problem(3, "items", True, None, np.array([[0, 1], [2, 1], [0, 2]], dtype=np.int32))
LOCAL = Task(b"\x01" * 32, Trust.LOCAL, Unit.LABEL, DRAWN, (RR,), 1000, ONE, None, 0, 4)
CLEAR = Task(
    b"\x02" * 32, Trust.CLEAR, Unit.LABEL, ITEMS, (Mechanism("none"),), 3, None, None, 0, 1, rows=Runs.of([0, 2])
)
CENTRAL = Task(b"\x03" * 32, Trust.CENTRAL, Unit.LABEL, DRAWN, (GAUSS,), 1000, ONE, Decimal("1e-5"), 8, 2, exponent=-40)
LABELERS = Task(
    b"\x06" * 32,
    Trust.CENTRAL,
    Unit.LABELER,
    ITEMS,
    (GAUSS,),
    3,
    ONE,
    Decimal("1e-5"),
    0,
    1,
    exponent=-51,
    ties=Ties.HALF,
    cap=2,
    groups=np.array([0, 1, 0], dtype=np.int32),
)
SHARES = Task(
    b"\x07" * 32,
    Trust.LOCAL,
    Unit.LABELER,
    ITEMS,
    (Mechanism.of("randomized-response", epsilon=share(ONE, 3)),),
    3,
    ONE,
    None,
    0,
    1,
    ties=Ties.COIN,
    cap=3,
)
SHAPED = Task(
    b"\x08" * 32,
    Trust.CENTRAL,
    Unit.LABEL,
    Problem(2, "gaussian", False, None, scales=(ONE, Decimal("0.25"))),
    (Mechanism.of("gaussian-statistic-shaped", epsilon=ONE, delta=Decimal("1e-5"), radius=Decimal("1.5")),),
    100,
    ONE,
    Decimal("1e-5"),
    0,
    1,
    exponent=-44,
    map=np.array([[0.75, 0.0], [-0.5, 1.5]]),
)
EVERY_FIELD = Task(
    b"\x04" * 32,
    Trust.DISTRIBUTED,
    Unit.LABELER,
    DRAWN,
    (RR, GAUSS),
    50,
    ONE,
    Decimal("1e-5"),
    1,
    2,
    round=3,
    attempt=4,
    rows=Runs(((0, 2, 5), (20, 1, 3))),
    theta=np.array([[0.5, -0.5, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]),
    exponent=-47,
    ties=Ties.COIN,
    cap=15,
    cohort=b"\x05" * 32,
    modulus=1 << 25,
)
RECORDS = Task(
    b"\x09" * 32,
    Trust.LOCAL,
    Unit.RECORD,
    Problem(3, "records", False, None, kind="records", model="linear"),
    (Mechanism.of("piecewise", dimension=Decimal(2), epsilon=ONE, threshold=Decimal("2.5")),),
    100,
    ONE,
    None,
    4,
    2,
    round=2,
    theta=np.array([[0.5, -0.5, 0.0], [0.0, 0.25, 1.0]]),
    coordinates=Runs(((0, 2, 2),)),
    centre=np.array([[0.0, 0.0, 2.0], [0.0, -1.0, 0.0]]),
)
TABLE = channel("randomized-response", {"epsilon": ONE}).digest
BITS = Report(
    identity(encode_task(LOCAL)),
    Runs.of(range(10, 21)),
    Payload(Kind.SYMBOLS, np.array([[1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1]] * 4, dtype=np.uint8), None, 2),
    RR,
    TABLE,
    Coins.OS,
    b"numerics",
)
TIES = Report(
    identity(encode_task(replace(CLEAR, ties=Ties.HALF))),
    Runs.of([0, 2]),
    Payload(Kind.SYMBOLS, np.array([[2, 1]], dtype=np.uint8), None, 3),
    Mechanism("none"),
    b"",
    Coins.OS,
    b"numerics",
)
THIRD = replace(SHARES, study=b"\x0a" * 32, unit=Unit.LABEL, menu=(RR,), ties=Ties.RANDOMIZED, cap=0)
THIRDS = Report(
    identity(encode_task(THIRD)),
    None,
    Payload(Kind.SYMBOLS, np.array([[2, 0, 1]], dtype=np.uint8), None, 3),
    RR,
    law(THIRD, RR).digest,
    Coins.OS,
    b"numerics",
)
SUMS = Report(
    identity(encode_task(CENTRAL)),
    None,
    Payload(Kind.EXACT_SUMS, np.array([[[1.5, -2.0, 0.0, 0.25]], [[0.0, 1.0, 2.0, 3.0]]]), np.array([1000], "u8")),
    GAUSS,
    b"",
    Coins.ADDRESSED,
    b"numerics",
    groups=Runs.of([7]),
)

SETS_OF_ITEMS = Problem(
    4,
    "items",
    True,
    Decimal(3),
    np.array([[0, 2, -1], [1, 2, 3]], dtype=np.int32),
    "choice",
    "plackett-luce",
    3,
    np.array([2, 3], dtype=np.int32),
)
SUBSET = Mechanism.of("subset-selection", epsilon=ONE)
CHOICES = Task(b"\x08" * 32, Trust.LOCAL, Unit.LABEL, SETS_OF_ITEMS, (SUBSET,), 2, ONE, None, 0, 1)
SETS = Report(
    identity(encode_task(CHOICES)),
    None,
    Payload(Kind.SYMBOLS, np.array([[[0, 1, 0], [0, 0, 1]]], dtype=np.uint8), None, 2),
    SUBSET,
    choice_law(CHOICES, SUBSET).digest,
    Coins.OS,
    b"numerics",
)


def _with(raw: bytes, kind: type[wire.Task] | type[wire.Report] | type[wire.Reply], change: object) -> bytes:
    message = kind()
    message.ParseFromString(raw)
    change(message)  # type: ignore[operator]
    return message.SerializeToString(deterministic=True)


def _sessions() -> dict[str, tuple[str, bytes]]:
    """A question and an answer of each stage of a session."""
    agenda = Agenda((identity(encode_task(SHARES)),), (60,))
    entries = tuple(
        Entry(bytes([2 + place]) * NODE_KEY, b"c" * PUBLIC, b"m" * PUBLIC, (50,), b"s" * 104) for place in range(2)
    )
    parcels, signed = (Parcel(0, b"p" * PARCEL), Parcel(1, b"q" * PARCEL)), (Consent(0, b"a"), Consent(1, b"b"))
    lists = {"ticket": b"ticket", "joined": (0, 1)}
    fields = {
        Stage.KEYS: {"tasks": (encode_task(SHARES),)},
        Stage.SHARES: {"roster": entries},
        Stage.INPUT: {**lists, "tasks": (encode_task(SHARES),), "parcels": parcels},
        Stage.CONSENT: {**lists, "survivors": (1,)},
        Stage.OPENING: {**lists, "parcels": parcels, "survivors": (1,), "statements": signed, "consents": signed},
    }
    given = {
        Stage.KEYS: {"entry": entries[0]},
        Stage.SHARES: {"ticket": b"ticket", "commitment": b"h" * 32, "parcels": parcels},
        Stage.CONSENT: {"signature": b"s" * 104},
        Stage.OPENING: {"reveals": (Reveal(0, True, 2, b"x" * 16), Reveal(1, False, 2, b"y" * 16))},
    }
    name = agenda.session
    asked = {stage: encode_ask(SessionAsk(name, stage, agenda, **more)) for stage, more in fields.items()}
    found = {f"session_ask_{stage.name.lower()}": ("session ask", raw) for stage, raw in asked.items()}
    for stage, more in given.items():
        raw = encode_session_reply(SessionReply(name, stage, **more))
        found[f"session_reply_{stage.name.lower()}"] = ("session reply", raw)
    residues = Payload(Kind.RESIDUES, np.array([[1, 2, 4095], [0, 5, 6]], dtype=np.uint64), bits=12)
    masked = encode_report(replace(SUMS, payload=residues))
    found["report_residues"] = ("report", masked)
    found["session_reply_input"] = ("input", encode_reply([(masked, b"s" * 104)], b"t" * 104))
    return found


def _bad_sessions() -> dict[str, tuple[str, bytes]]:
    """Questions and answers of sessions that have to be refused."""
    good = {name: raw for name, (_, raw) in _sessions().items()}

    def asked(stage: str, change: object) -> bytes:
        return _with(good[f"session_ask_{stage}"], wire.SessionAsk, change)

    return {
        "bad_session_other_id": ("session ask", asked("keys", lambda m: setattr(m, "session", b"x" * 32))),
        "bad_session_other_tasks": ("session ask", asked("keys", lambda m: m.tasks.__setitem__(0, b"other"))),
        "bad_session_no_least_rows": ("session ask", asked("keys", lambda m: m.agenda.least.__setitem__(0, 0))),
        "bad_session_no_stage": ("session ask", asked("keys", lambda m: setattr(m, "stage", 6))),
        "bad_session_field_of_another_stage": ("session ask", asked("consent", lambda m: m.tasks.append(b"more"))),
        "bad_session_member_twice": ("session ask", asked("opening", lambda m: m.joined.members.append(1))),
        "bad_session_short_parcel": ("session ask", asked("input", lambda m: setattr(m.parcels[0], "content", b"p"))),
        "bad_session_no_signature": ("session ask", asked("shares", lambda m: setattr(m.roster[0], "signature", b""))),
        "bad_session_both_shares": (
            "session reply",
            _with(good["session_reply_opening"], wire.SessionReply, lambda m: setattr(m.reveals[1], "member", 0)),
        ),
        "bad_report_residue_too_wide": (
            "report",
            _with(good["report_residues"], wire.Report, lambda m: setattr(m.payload.values, "bits", 13)),
        ),
        "bad_reply_statement_outside_a_session": ("reply", good["session_reply_input"]),
    }


def good() -> dict[str, tuple[str, bytes]]:
    """Names, kinds and bytes of messages that have to be accepted."""
    return {
        "task_local": ("task", encode_task(LOCAL)),
        "task_clear_items": ("task", encode_task(CLEAR)),
        "task_central": ("task", encode_task(CENTRAL)),
        "task_every_field": ("task", encode_task(EVERY_FIELD)),
        "task_labelers": ("task", encode_task(LABELERS)),
        "task_shares": ("task", encode_task(SHARES)),
        "task_shaped": ("task", encode_task(SHAPED)),
        "task_randomized_ties": ("task", encode_task(THIRD)),
        "task_choices": ("task", encode_task(CHOICES)),
        "task_records": ("task", encode_task(RECORDS)),
        "report_sets": ("report", encode_report(SETS)),
        "report_bits": ("report", encode_report(BITS)),
        "report_ties": ("report", encode_report(TIES)),
        "report_randomized_ties": ("report", encode_report(THIRDS)),
        "report_sums": ("report", encode_report(SUMS)),
        "reply_two_reports": ("reply", encode_reply([(encode_report(BITS), b""), (encode_report(SUMS), b"s" * 64)])),
        "bundle": ("bundle", encode_bundle([encode_task(LOCAL), encode_task(CLEAR)])),
        "bundle_empty": ("bundle", encode_bundle([])),
        "bundle_signed": ("tasks", encode_bundle([encode_task(LOCAL), encode_task(CLEAR)], b"s" * 104)),
        "reply_not_signed": ("reply", encode_refusal(Refusal(BITS.task, Code.NOT_SIGNED))),
        "reply_group_too_small": ("reply", encode_refusal(Refusal(SUMS.task, Code.GROUP_TOO_SMALL))),
        "reply_refusal": ("reply", encode_refusal(Refusal(BITS.task, Code.BUDGET_EXHAUSTED))),
        **_sessions(),
    }


def bad() -> dict[str, tuple[str, bytes]]:
    """Names, kinds and bytes of misbehaviour that has to be refused."""
    task, bits, sums = encode_task(LOCAL), encode_report(BITS), encode_report(SUMS)
    central, reply = encode_task(CENTRAL), encode_refusal(Refusal(BITS.task, Code.INTERNAL))

    def payload(change: object, of: bytes = bits) -> bytes:
        return _with(of, wire.Report, change)

    return {
        "bad_task_empty": ("task", b""),
        "bad_task_map_of_other_coordinates": ("task", encode_task(replace(SHAPED, map=np.eye(3)))),
        "bad_task_scales_all_one": (
            "task",
            _with(encode_task(SHAPED), wire.Task, lambda m: [m.problem.scales.pop(), m.problem.scales.append("1")]),
        ),
        "bad_task_truncated": ("task", task[:-1]),
        "bad_task_unknown_field": ("task", task + bytes([0xA2, 0x06, 0x01, 0x41])),
        "bad_task_field_twice": ("task", task + bytes([0x10, 0x02])),
        "bad_task_trust_of_a_later_version": ("task", _with(task, wire.Task, lambda m: setattr(m, "trust", 9))),
        "bad_task_ties_of_a_later_version": ("task", _with(task, wire.Task, lambda m: setattr(m, "ties", 5))),
        "bad_task_no_trust": ("task", _with(task, wire.Task, lambda m: setattr(m, "trust", 0))),
        "bad_task_epsilon_spelled_otherwise": ("task", _with(task, wire.Task, lambda m: setattr(m, "epsilon", "1.0"))),
        "bad_task_epsilon_nan": ("task", _with(task, wire.Task, lambda m: setattr(m, "epsilon", "NaN"))),
        "bad_task_bound_negative": ("task", _with(task, wire.Task, lambda m: setattr(m.problem, "bound", "-3"))),
        "bad_task_empty_menu": ("task", _with(task, wire.Task, lambda m: m.ClearField("menu"))),
        "bad_task_no_rows": ("task", _with(task, wire.Task, lambda m: setattr(m, "n", 0))),
        "bad_task_parameters_unsorted": ("task", _with(central, wire.Task, lambda m: m.menu[0].parameters.reverse())),
        "bad_task_runs_overlap": (
            "task",
            _with(
                task, wire.Task, lambda m: [m.rows.add(start=3, step=1, count=4), m.rows.add(start=5, count=1, step=1)]
            ),
        ),
        "bad_task_theta_nan": (
            "task",
            _with(
                task,
                wire.Task,
                lambda m: m.theta.MergeFrom(
                    wire.Array(dtype=wire.DTYPE_F64, shape=[1, 1], data=np.array([np.nan]).tobytes())
                ),
            ),
        ),
        "bad_task_groups_of_other_rows": (
            "task",
            _with(encode_task(LABELERS), wire.Task, lambda m: setattr(m, "n", 4)),
        ),
        "bad_task_choices_of_pairs": ("task", _with(task, wire.Task, lambda m: setattr(m.problem, "choices", 2))),
        "bad_task_choices_without_a_number": (
            "task",
            _with(encode_task(CHOICES), wire.Task, lambda m: m.problem.ClearField("choices")),
        ),
        "bad_report_padding_bits": (
            "report",
            payload(lambda m: setattr(m.payload.values, "data", m.payload.values.data[:-1] + b"\xff")),
        ),
        "bad_report_too_short": (
            "report",
            payload(lambda m: setattr(m.payload.values, "data", m.payload.values.data[:-1])),
        ),
        "bad_report_sum_inf": (
            "report",
            payload(
                lambda m: setattr(m.payload.values, "data", np.full((2, 1, 4), np.inf).tobytes()),
                sums,
            ),
        ),
        "bad_report_sums_without_counts": ("report", payload(lambda m: m.payload.ClearField("counts"), sums)),
        "bad_report_sums_as_bytes": (
            "report",
            payload(lambda m: setattr(m.payload.values, "dtype", wire.DTYPE_U8), sums),
        ),
        "bad_report_symbols_as_floats": (
            "report",
            payload(lambda m: setattr(m.payload.values, "dtype", wire.DTYPE_F64)),
        ),
        "bad_report_shape_overflows": ("report", payload(lambda m: m.payload.values.shape.append(1 << 62))),
        "bad_report_short_task_id": ("report", payload(lambda m: setattr(m, "task", b"short"))),
        "bad_report_no_coins": ("report", payload(lambda m: setattr(m, "coins", 0))),
        "bad_report_no_mechanism": ("report", payload(lambda m: m.ClearField("mechanism"))),
        "bad_report_no_numerics": ("report", payload(lambda m: setattr(m, "numerics", b""))),
        "bad_bundle_of_another_kind": ("bundle", encode_refusal(Refusal(BITS.task, Code.INTERNAL))),
        "bad_bundle_of_signed_replies": ("bundle", encode_bundle([reply], b"s" * 104)),
        "bad_reply_empty": ("reply", b""),
        "bad_reply_refusal_without_a_code": (
            "reply",
            _with(reply, wire.Reply, lambda m: setattr(m.refusal, "code", 0)),
        ),
        "bad_reply_refusal_with_text": ("reply", reply[:1] + bytes([reply[1] + 4]) + reply[2:] + b"\x1a\x02no"),
        "bad_reply_report_and_refusal": ("reply", encode_reply([(bits, b"")]) + reply),
        "bad_reply_report_inside_is_bad": ("reply", encode_reply([(bits[:-3], b"")])),
        **_bad_sessions(),
    }


def main() -> None:
    """Write one JSON file a case; cases that are gone are removed."""
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for success, cases in ((True, good()), (False, bad())):
        for name, (kind, raw) in cases.items():
            record = {"message": kind, "success": success, "id": identity(raw).hex(), "bytes": raw.hex()}
            (FOLDER / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
