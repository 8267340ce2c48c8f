"""The table, the JSON file and the regression rule, on given numbers: nothing here is timed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from protocol.strict import StudyError
from studies.bench.figure import NOTHING, Figure, Prepared, Side, at_least, at_most, times
from studies.bench.machine import facts, told
from studies.bench.measure import measure, rows
from studies.bench.regression import compared, fallen
from studies.bench.row import LIMIT, OURS, PEER, Row, dump, parse
from studies.bench.show import COLUMNS, lines, reached, show
from studies.cli import main

OUR, SLOW, BEST = Side("ours", lambda: None), Side("slow", lambda: None), Side("best", lambda: None)


def prepared(unit: str = "M labels/s", cost: Callable[[object], float] | None = None) -> Prepared:
    return Prepared(OUR, (SLOW,), 4e6, unit, lambda: None, BEST, cost)


@pytest.fixture
def found() -> list[Row]:
    """Three turns: ours, a peer and a limit; a busy second turn, in which everything took ten times as long."""
    costs = [[2.0, 8.0, 1.0], [20.0, 60.0, 12.0], [4.0, 12.0, 2.0]]
    return rows("labels", prepared(), [(OURS, OUR), (PEER, SLOW), (LIMIT, BEST)], costs, small=False)


@pytest.fixture
def figure() -> Figure:
    return Figure("labels", "labels of one kind", at_least(1), lambda small: prepared(), needs=("no_such_module",))


def test_rates_and_ratios_are_medians(found: list[Row]) -> None:
    ours, peer, limit = found
    assert (ours.value, ours.least, ours.most, ours.ratio) == (1.0, 0.2, 2.0, 1.0)
    assert (peer.value, peer.ratio) == (4 / 12, 3.0), "of 4, 3 and 3: a turn's own"
    assert (limit.value, limit.ratio) == (2.0, 0.5), "of 0.5, 0.6 and 0.5"
    assert {row.runs for row in found} == {3}


def test_a_cost_can_be_read_off_what_a_run_returns() -> None:
    memory = Prepared(Side("ours", lambda: 250), (), 1.0, "MB", lambda: None, cost=lambda made: float(str(made)))
    (row,) = measure(Figure("memory", "peak", at_most(600), lambda small: memory), 3, small=True)
    assert (row.value, row.least, row.most, row.small) == (250.0, 250.0, 250.0, True)


def test_sides_run_in_turn_after_a_warm_run() -> None:
    order: list[str] = []
    sides = {name: Side(name, lambda name=name: order.append(name)) for name in "abc"}  # type: ignore[misc]
    turn = Prepared(sides["a"], (sides["b"],), 1.0, "s", lambda: order.append("agree"), sides["c"])
    measure(Figure("order", "who comes when", NOTHING, lambda small: turn), 2, small=False)
    assert "".join(order) == "agreeabcabcabc"


def test_sides_that_do_not_agree_are_not_measured() -> None:
    def differ() -> None:
        raise AssertionError("other bits")

    wrong = replace(prepared(), agree=differ)
    with pytest.raises(AssertionError, match="other bits"):
        measure(Figure("wrong", "two things", NOTHING, lambda small: wrong), 1, small=True)


def test_the_table_has_a_line_for_each_peer(figure: Figure, found: list[Row]) -> None:
    second = replace(found[1], side="other", ratio=0.5)
    first, more = lines(figure, [*found[:2], second, found[2]])
    about_ours = ("labels", "1 M labels/s (0.2 to 2)", "slow", "0.333", "3", ">= 1 M labels/s", "yes")
    assert first == (*about_ours, "best", "2", "50%")
    assert more == ("", "", "other", "0.333", "0.5", "", "", "", "", "")
    assert len(first) == len(COLUMNS)
    assert lines(figure, found[:1])[0][2:5] == ("-", "-", "-"), "nobody to compare with"


def test_what_was_asked_is_met_or_not(found: list[Row]) -> None:
    assert reached(at_least(1), found) is True and reached(at_least(1.01), found) is False
    assert reached(at_most(1), found) is True and reached(at_most(0.99), found) is False
    assert reached(times(3), found) is True and reached(times(3.01), found) is False
    quick = replace(found[1], side="quick", ratio=1.5)
    assert reached(times(3), [*found, quick]) is False, "every peer counts"
    assert reached(times(3, "slow"), [*found, quick]) is True
    assert reached(times(3.01, share=0.5), found) is True and reached(times(3.01, share=0.51), found) is False
    assert reached(NOTHING, found) is None and reached(times(3, "absent"), found) is None


def test_missing_peers_are_named(figure: Figure, found: list[Row], capsys: pytest.CaptureFixture[str]) -> None:
    show(found, {"labels": figure})
    said = capsys.readouterr().out
    assert "labels: labels of one kind" in said
    assert "labels: no no_such_module, which is not installed (pip install halftruth[bench])" in said


def test_a_recorded_run_comes_back_and_pandas_reads_it(found: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    where = facts(0.5, "halftruth bench labels --runs 3")
    dump(found, where, path)
    assert parse(path) == found
    frame = pd.read_json(path)
    assert frame.loc[frame.role == "peer", "ratio"].tolist() == [3.0]
    assert set(frame.command) == {"halftruth bench labels --runs 3"} and set(frame.cores) == {where["cores"]}
    assert {"processor", "load_before", "load_after", "version_numpy", "version_flwr"} <= set(frame.columns)
    assert "load 0.5 before" in told(where) and f"numpy {where['version_numpy']}" in told(where)


@pytest.mark.parametrize("text", ["", "{}", '[{"figure": "labels"}]', "[1]", "{"])
def test_other_files_are_no_recorded_run(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, "utf-8")
    if text == "{}":
        assert parse(path) == []
        return
    with pytest.raises(StudyError, match="got another file"):
        parse(path)


def test_a_recorded_run_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="found none"):
        parse(tmp_path / "nowhere.json")


def test_a_ratio_may_fall_by_the_margin_and_no_further(found: list[Row]) -> None:
    ours, peer, limit = found
    recorded = [replace(ours, value=1e9), replace(peer, ratio=6.0), replace(limit, ratio=0.9)]
    assert fallen(found, recorded) == [], "seconds do not count, and a half is allowed"
    assert compared(found, recorded) == 2
    slower = [replace(peer, ratio=6.01), replace(limit, ratio=1.01)]
    assert fallen(found, slower) == [
        "labels, peer slow: expected a ratio of at least 6.01 / 2, got 3",
        "labels, limit best: expected a ratio of at least 1.01 / 2, got 0.5",
    ]
    assert len(fallen(found, slower, margin=1.0)) == 2 and fallen(found, slower, margin=3.0) == []


def test_what_one_run_lacks_is_not_compared(found: list[Row]) -> None:
    assert fallen(found, []) == [] and compared(found, []) == 0
    assert fallen(found, [replace(found[1], side="gone", ratio=99.0)]) == []


def test_two_forms_are_not_compared(found: list[Row]) -> None:
    with pytest.raises(StudyError, match="in one form"):
        fallen([replace(row, small=True) for row in found], found)


def test_what_was_measured_before_ctrl_c_is_kept(
    found: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def alone(figure: Figure, runs: int, small: bool) -> list[Row]:
        asked.append(figure.name)
        if len(asked) > 1:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr("studies.bench.run.alone", alone)
    out = tmp_path / "bench.json"
    assert main(["bench", "--small", "--out", str(out)]) == 1
    assert [row.side for row in parse(out)] == [row.side for row in found]
    assert f"{asked[1]}: interrupted" in capsys.readouterr().err
    assert len(asked) == 2


def test_the_file_is_plain_json(found: list[Row], tmp_path: Path) -> None:
    dump(found, {}, tmp_path / "bench.json")
    assert [one["side"] for one in json.loads((tmp_path / "bench.json").read_text("utf-8"))] == ["ours", "slow", "best"]
