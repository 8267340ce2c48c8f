"""CPU seconds of processes that come and go: sums only grow, and nothing is counted twice."""

from pathlib import Path

from studies.flower.calls import calls_of
from studies.flower.looks import Look, Measured, Meter, Process

PARENT, CHILD = 10, 11


def one(number: int, own: float, ended: float = 0.0, program: str = "app") -> Process:
    return Process(number, PARENT, program, own, ended, 0)


def test_what_a_child_spent_while_it_lived_is_not_counted_again_by_who_waited_for_it() -> None:
    meter = Meter()
    meter.add([one(PARENT, 1.0), one(CHILD, 2.0, program="child")])
    meter.add([one(PARENT, 1.5, 2.25)])
    assert meter.spent == {"app": 1.5, "child": 2.0, "children of app": 0.25, "children of child": 0.0}


def test_a_child_may_be_waited_for_later_or_before_it_is_missed() -> None:
    late, early = Meter(), Meter()
    late.add([one(PARENT, 1.0), one(CHILD, 2.0)])
    late.add([one(PARENT, 1.0)])
    late.add([one(PARENT, 1.0, 2.5)])
    early.add([one(PARENT, 1.0), one(CHILD, 2.0)])
    early.add([one(PARENT, 1.0, 2.5), one(CHILD, 2.0)])
    early.add([one(PARENT, 1.0, 2.5)])
    early.add([one(PARENT, 1.0, 4.5)])
    assert sum(late.spent.values()) == 3.5
    assert sum(early.spent.values()) == 5.5, "what came too early is taken off the next"


def test_sums_never_fall_when_a_process_ends_for_whom_nobody_here_waits() -> None:
    meter = Meter()
    meter.add([one(CHILD, 2.0)])
    meter.add([])
    assert sum(meter.spent.values()) == 2.0


def test_calls_are_read_from_what_a_superlink_prints_and_counted_by_round(tmp_path: Path) -> None:
    at = "2026-11-30T14:20:0"
    lines = [
        f'{at}0.500Z DEBUG [uvicorn.access] 127.0.0.1:1 - "POST /v1/fleet/pull-object HTTP/1.1" 200',
        f'{at}1.500Z DEBUG [uvicorn.access] 127.0.0.1:1 - "POST /v1/fleet/pull-object HTTP/1.1" 200',
        f'{at}2.500Z INFO [uvicorn.access] 127.0.0.1:1 - "POST /v1/runtime/get-nodes HTTP/1.1" 500',
        f'{at}2.600Z DEBUG [uvicorn.access] 127.0.0.1:1 - "POST /v1/fleet/pull-object HTTP/1.1" 200',
        f'{at}2.700Z DEBUG [uvicorn.access] 127.0.0.1:1 - "GET /health HTTP/1.1" 200',
        "INFO : [Fleet.PushMessages] POST /v1/fleet/pull-object",
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    calls = list(calls_of(tmp_path / "log"))
    begin = calls[0][0] - 0.5
    found = Measured([(begin + second, "") for second in (1, 2, 3)], [], calls)
    assert found.calls_a_round() == {"fleet/pull-object": 1.0, "runtime/get-nodes": 0.5}


def test_memory_is_that_of_programs_that_lived_through_all_rounds_and_ended_before_the_last_look() -> None:
    looks = [
        Look(0.5, {}, {("app", 1): 1_000_000, ("node", 2): 5_000_000, ("early", 3): 1}),
        Look(1.5, {}, {("app", 1): 3_000_000, ("node", 2): 4_000_000, ("node", 4): 6_000_000}),
        Look(2.5, {}, {("node", 2): 9_000_000}),
    ]
    found = Measured([(1.0, ""), (2.0, "")], looks).growth()
    assert found == {"app": (1.0, 3.0), "node": (5.0, 4.0)}
