"""How cost grows, and what a round spends: slopes and shares of given numbers, and the same bytes of our own code."""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.threads import cores, threads
from studies.bench import growth_show, parts_show, pictures
from studies.bench.cores import core_points, counts, on_cores
from studies.bench.growth import ALL_ARMS, ARMS, CORES, EACH, REPORTED, Point, Size, _cell, axes, slopes
from studies.bench.own_round import Own, own
from studies.bench.parts import FLOWER, SHOWN, Parts
from studies.flower.measure import SETTINGS
from studies.flower.measured import Work, study_of

LAWS = {"rows": 1.0, "dimension": 2.0, "clients": 0.5, "repetitions": 1.0}


@pytest.fixture
def grown() -> list[Point]:
    """Exact power laws."""
    found = [
        Point(axis, line, x, 0.01 * x**power) for axis, power in LAWS.items() for line in ARMS for x in (1, 10, 1000)
    ]
    each = [Point(EACH, REPORTED, x, 1e-6 * x**1.5) for x in (10, 1000)]
    return [*found, *each, Point(CORES, ALL_ARMS, 1, 8.0), Point(CORES, ALL_ARMS, 2, 4.0)]


def test_slopes_of_power_laws_are_their_exponents(grown: list[Point]) -> None:
    for slope in slopes(grown):
        expected = (LAWS | {EACH: 1.5, CORES: -1.0})[slope.axis]
        assert slope.over_all == pytest.approx(expected) and slope.at_the_end == pytest.approx(expected)
    assert len(slopes(grown)) == 4 * len(ARMS) + 2
    assert slopes(grown[:1]) == []


def test_every_axis_has_a_small_and_a_whole_form() -> None:
    assert list(axes(True)) == list(axes(False)) == list(LAWS)
    assert all(x <= size.rows for size, values in [axes(False)["clients"]] for x in values)


def test_a_core_has_one_process_of_one_thread() -> None:
    """What is started among so many cores sees so many, uses a thread in each process, and nothing stays so."""
    before = cores(), threads()
    with on_cores(1):
        code = "import protocol.threads as t; print(t.cores(), t.threads())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"] and (cores(), threads()) == before
    assert counts(1) == [1] and counts(2) == [1, 2] and counts(12) == [1, 2, 4, 8, 12]


def test_a_worker_imports_nothing_that_only_bounds_of_shuffling_need() -> None:
    """A third of the start of every worker and of every client's program."""
    code = "import sys, studies.unit; print('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.slow
def test_a_run_over_every_number_of_cores() -> None:
    found = list(core_points(1, small=True))
    assert [point.x for point in found] == counts(cores()) and all(point.seconds > 0 for point in found)


def test_what_a_round_is_shown_for() -> None:
    assert set(SHOWN) <= set(SETTINGS)


def test_many_repetitions_are_one_cell() -> None:
    """More rows than a study's cells have by themselves."""
    assert _cell(Size(rows=300_000, dimension=2, repetitions=2), "local, de-biased SGD", 1) > 0


def test_growth_is_shown_and_drawn(grown: list[Point], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    growth_show.show(grown)
    said = capsys.readouterr().out
    assert "1 to 1,000" in said and "2.00" in said and "-1.00" in said
    assert [path.name for path in growth_show.draw(grown, tmp_path)] == ["scaling.png", "scaling.svg"]


def test_shares_of_a_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = {"SuperLink": 1.0, "server's app": 0.5, "warm executors": 0.5, "others": 0.0001}
    one = Parts("warm", 4, 1.2, programs, Own(0.1, 0.02, 0.0))
    assert one.whole == pytest.approx(2.0001) and one.spent[FLOWER] == pytest.approx(1.8801)
    assert sum(one.spent.values()) == pytest.approx(one.whole)
    assert Parts("warm", 4, 1.2, {"SuperLink": 0.1}, Own(0.2, 0.0, 0.0)).spent[FLOWER] == 0.0
    parts_show.show([one])
    said = capsys.readouterr().out
    assert "1.88 (94.00%)" in said and "0.02 (1.00%)" in said and "others" not in said
    assert [path.name for path in parts_show.draw([one], tmp_path)] == ["round.png", "round.svg"]


def test_our_own_code_plays_the_rounds_of_a_federation(tmp_path: Path) -> None:
    """With signatures and without: every part is there, and nothing of a careless federation signs."""
    loaded = study_of(Work(clients=2, rounds=3, records=300, dimension=2), tmp_path)
    careful, careless = own(loaded, 2, signed=True), own(loaded, 2, signed=False)
    assert careful.compute > 0 and careful.serialisation > 0 and careful.signatures > 0
    assert careless.signatures == 0


def test_what_was_measured_before_ctrl_c_is_kept(
    grown: list[Point], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(runs: int, small: bool) -> Iterator[Point]:
        yield from grown[:3]
        raise KeyboardInterrupt

    monkeypatch.setattr(pictures, "points", stopped)
    words = {"scaling": True, "round": True, "names": [], "against": None, "runs": 5, "small": True}
    assert pictures.pictures(argparse.Namespace(**words, out=tmp_path)) == 1
    said = capsys.readouterr()
    assert "interrupted" in said.err and f"rows 1,000, {grown[0].line}" in said.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scaling.json", "scaling.png", "scaling.svg"]
