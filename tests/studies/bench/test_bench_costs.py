"""What trust models cost: every model's exchange is played, and what is counted is what its messages have to be."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.sealed import SEALED
from protocol.trust import Trust
from studies.bench import costs
from studies.bench.costs import ARMS, main, played
from studies.bench.costs_room import Meter
from studies.bench.costs_show import Cost, table, write

SIGNATURE = 104  # bytes of one on P-384, at most


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[Trust, Cost]:
    folder = tmp_path_factory.mktemp("costs")
    return {trust: played(trust, 3, 2, 1, folder) for trust in ARMS}


def test_every_trust_model_is_played(found: dict[Trust, Cost]) -> None:
    assert set(found) == set(Trust)
    assert {trust: one.exchanges for trust, one in found.items()} == {
        trust: 5 if trust is Trust.DISTRIBUTED else 1 for trust in Trust
    }
    for one in found.values():
        assert (one.clients, one.dimension) == (3, 2)
        assert min(one.up, one.down, one.client_seconds, one.server_seconds) > 0
        assert (one.shuffler_seconds > 0) == (one.trust == "shuffled")


def test_bytes_are_those_of_the_messages(found: dict[Trust, Cost]) -> None:
    local, shuffled = found[Trust.LOCAL], found[Trust.SHUFFLED]
    assert SIGNATURE < local.up < 400
    assert found[Trust.CLEAR].down < local.down  # no mechanism
    assert shuffled.up > local.up + SEALED + SIGNATURE - 8  # a sealed report, and the signature of the submission
    assert shuffled.up < local.up + 400
    assert local.questions == shuffled.questions == found[Trust.CENTRAL].questions > 3 * 2 * 8
    assert found[Trust.DISTRIBUTED].questions == 2 * local.questions  # the tasks are told twice in a session
    assert found[Trust.DISTRIBUTED].up > 10 * SEALED


def test_time_inside_of_other_time_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 1.0, 3.0, 10.0, 20.0, 21.0])
    monkeypatch.setattr("studies.bench.costs_room.time.process_time", lambda: next(ticks))
    meter = Meter()
    with meter.of("server"), meter.of("client"):  # from 0 to 10, but for 1 to 3
        pass
    with meter.of("client"):
        pass
    assert meter.seconds == {"server": 8.0, "client": 3.0}


def test_a_table_and_files_say_what_was_found(found: dict[Trust, Cost], tmp_path: Path) -> None:
    made = list(found.values())
    said = table(made)
    assert "3 clients, 2 numbers, runs: 1" in said
    assert all(f"\n{trust.label} " in said for trust in ARMS)
    write(made, tmp_path / "costs.csv")
    write(made, tmp_path / "costs.json")
    rows = list(csv.DictReader((tmp_path / "costs.csv").read_text("utf-8").splitlines()))
    assert [Cost(**one) for one in json.loads((tmp_path / "costs.json").read_text("utf-8"))] == made
    assert [int(row["up"]) for row in rows] == [one.up for one in made]
    with pytest.raises(ValueError, match=r"\.csv or \.json"):
        write(made, tmp_path / "costs.txt")


def test_what_was_measured_before_ctrl_c_is_kept(
    found: dict[Trust, Cost], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> Iterator[Cost]:
        yield found[Trust.LOCAL]
        raise KeyboardInterrupt

    monkeypatch.setattr(costs, "measured", interrupted)
    assert main(["--size", "3x2", "--out", str(tmp_path / "costs.json")]) == 130
    assert "\nlocal " in capsys.readouterr().out
    assert [one["trust"] for one in json.loads((tmp_path / "costs.json").read_text("utf-8"))] == ["local"]


@pytest.mark.parametrize(
    "words", [["--size", "3"], ["--size", "2x1"], ["--size", "ax1"], ["--runs", "0"], ["--out", "a"]]
)
def test_words_that_ask_for_nothing_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)
