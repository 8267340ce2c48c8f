"""What `halftruth watch` says of a run that goes on, was stopped, is finished, is begun anew, or is damaged."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from rich.console import Console

from deploy.processes import private_home
from deploy.submit import OUTCOMES
from protocol.strict import StudyError
from protocol.study import Cell
from server.delivery import ToFolder
from studies import results
from studies.cli import main
from studies.flower.run import kept_rounds
from studies.folder import Folder, prepare
from studies.load import Loaded, load
from studies.parts import part_path
from studies.run import Interrupted, run
from studies.summary import summarise
from studies.watch.budgets import Budgets
from studies.watch.look import FINISHED, RUNS, STOPPED, Seen, Watch
from studies.watch.messages import messages
from studies.watch.pace import left
from studies.watch.serve import _hosts, application
from studies.watch.show import document, shown

STUDY = Path(__file__).parents[3] / "studies" / "toml" / "quick.toml"
SMALL = ["study.repetitions=4", "grid.n=[100, 300]", "grid.epsilon=[1.0, 2.0]"]
ROUND = "{:.3f} cell-300-0-2: exchange {} with 3 nodes: 2 tasks, 198 bytes to each, 311 from all; messages so far: {}"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    """A small study of four units at `block=2`."""
    return load(STUDY, SMALL)


@pytest.fixture(scope="module")
def finished(loaded: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of it."""
    out = tmp_path_factory.mktemp("watch") / "finished"
    run(loaded, out, jobs=1, block=2)
    return out


def text(seen: Seen) -> str:
    """What a person reads."""
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(shown(seen))
    return captured.get()


def test_errors_are_those_of_the_results(loaded: Loaded, finished: Path) -> None:
    seen = Watch(Folder(finished)).look(time.time())
    assert (seen.state, seen.left, seen.runtimes) == (FINISHED, 0.0, ("in-process",))
    wanted = {(one.setting, one.arm): one.moments for one in summarise(results.read(finished / "results.parquet"))}
    assert seen.errors.keys() == wanted.keys()
    for key, moments in seen.errors.items():
        assert moments.count == wanted[key].count
        assert np.allclose([moments.mean, moments.low], [wanted[key].mean, wanted[key].low], rtol=1e-12)
    assert [(each.n, each.done, each.units) for each in seen.counts] == [(100, 2, 2), (300, 2, 2)]
    assert f"halftruth report {finished}" in " ".join(text(seen).split())


def test_a_run_is_watched_from_before_it_begins_until_it_goes_on_and_ends(loaded: Loaded, tmp_path: Path) -> None:
    out, states = tmp_path / "out", list[tuple[str, int, bool]]()
    watch = Watch(Folder(out))
    with pytest.raises(StudyError, match=r"study\.json"):
        watch.look(time.time())

    def look() -> Seen:
        seen = watch.look(time.time())
        states.append((seen.state, sum(each.done for each in seen.counts), seen.left is None))
        return seen

    def progress(done: int, whole: int) -> None:
        look()
        if len(states) == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run(loaded, out, jobs=1, block=2, progress=progress)
    assert "--resume" in text(look())
    run(loaded, out, jobs=1, resume=True, progress=progress)
    assert look().state == FINISHED
    begun = [(RUNS, 0, True), (RUNS, 1, False), (RUNS, 2, False), (STOPPED, 2, False)]
    assert states == [*begun, (RUNS, 2, False), (RUNS, 3, False), (RUNS, 4, False), (FINISHED, 4, False)]


def test_who_watches_sees_a_run_that_is_begun_anew(loaded: Loaded, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    watch = Watch(Folder(out))
    assert watch.look(time.time()).errors
    other = load(STUDY, [*SMALL, "study.seed=8"])
    prepare(Folder(out), other, 2, resume=False, overwrite=True)
    seen = watch.look(time.time())
    assert (seen.state, dict(seen.errors), seen.fingerprint) == (RUNS, {}, other.study.fingerprint.hex())


def test_parts_that_do_not_read_or_are_of_another_study_are_named(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    run(load(STUDY, [*SMALL, "study.seed=8"]), tmp_path / "other", jobs=1, block=2)
    torn, foreign, *_ = sorted((out / "parts").glob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:100])
    shutil.copy(tmp_path / "other" / "parts" / foreign.name, foreign)
    seen = Watch(Folder(out)).look(time.time())
    assert seen.unread == (torn.name, foreign.name)
    assert all(setting.n == 300 for setting, _ in seen.errors)
    assert f"{torn.name} does not read: it is left out." in text(seen)


def test_a_part_is_read_once(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(Folder(finished))
    first = watch.look(time.time())
    monkeypatch.setattr(results, "read", None)
    assert watch.look(time.time()).errors == first.errors


def test_nothing_is_written(finished: Path) -> None:
    def stamps() -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_mtime_ns) for path in [finished, *finished.rglob("*")])

    before = stamps()
    text(Watch(Folder(finished)).look(time.time()))
    assert stamps() == before


@pytest.mark.parametrize(
    ("finished", "begin", "now", "sessions", "seconds"),
    [
        ({}, 10.0, 12.0, [], None),
        ({0: 14.0}, 10.0, 14.0, [], 12.0),  # a unit takes 4 s, and three are missing
        ({0: 14.0}, 10.0, 15.0, [], 11.0),
        ({0: 14.0}, 10.0, 99.0, [], 0.0),
        ({0: 12.0, 1: 14.0}, 10.0, 14.0, [], 4.0),
        ({0: 14.0, 1: 14.0}, 10.0, 14.0, [], 4.0),  # two at once
        ({0: 5.0}, 10.0, 10.0, [{"seconds": 3.0, "unit_seconds": {0: 2.0}}], 9.0),
        ({0: 5.0, 1: 14.0}, 10.0, 14.0, [{"seconds": 3.0, "unit_seconds": {0: 2.0}}], 8.0),
        ({0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}, 0.0, 9.0, [], 0.0),
    ],
)
def test_the_time_left(
    finished: dict[int, float], begin: float, now: float, sessions: list[dict[str, Any]], seconds: float | None
) -> None:
    units = [Cell(100, 2 * at, 2) for at in range(4)]
    named = [
        each | {"unit_seconds": {part_path(Path(), units[at]).stem: took for at, took in each["unit_seconds"].items()}}
        for each in sessions
    ]
    assert left(units, {units[at]: time for at, time in finished.items()}, begin, now, named) == seconds


def test_messages_are_those_of_all_servers_once() -> None:
    first = [ROUND.format(1.0, 1, "answered: 2"), ROUND.format(2.0, 2, "answered: 4, late: 1 (node b x 1)")]
    again = [ROUND.format(3.0, 1, "answered: 2, refused: 1"), ROUND.format(4.0, 2, "answered: 5, refused: 3")]
    found = messages([*first, *again, *again, "4.0 cell-300-0-2: exchange 9 with 3 nodes: 2 tas"])
    assert found.all == {"answered": 9, "late": 1, "refused": 3}
    assert found.last == {"answered": 3, "refused": 2}
    assert (found.rounds, found.nodes, found.blamed, found.at) == (4, 3, "", 4.0)
    assert messages([]).all == {}


def test_a_server_that_begins_with_more_than_the_last_one_had_is_another_one() -> None:
    found = messages([ROUND.format(1.0, 1, "answered: 2"), ROUND.format(2.0, 1, "answered: 3, late: 1")])
    assert (found.all, found.last) == ({"answered": 5, "late": 1}, {"answered": 3, "late": 1})


def test_a_round_without_any_answer_is_one() -> None:
    found = messages([ROUND.format(1.0, 1, "answered: 2"), ROUND.format(2.0, 2, "answered: 2, missing: 3")])
    assert (found.all, found.last) == ({"answered": 2, "missing": 3}, {"missing": 3})


def test_messages_are_seen_while_a_server_runs_and_after(loaded: Loaded, tmp_path: Path) -> None:
    folder, watch = Folder(tmp_path), Watch(Folder(tmp_path))
    prepare(folder, loaded, 2, resume=False, overwrite=False)
    folder.rounds_now.symlink_to(tmp_path / "nowhere")  # of a process that was killed
    with private_home(folder.logs) as processes, kept_rounds(processes, folder):
        assert watch.look(time.time()).messages.rounds == 0
        (processes.home / OUTCOMES).mkdir()
        said = ToFolder(processes.home / OUTCOMES)
        said.heard(ROUND.partition(" ")[2].format(1, "answered: 3, late: 1 (node \x1b[31m x 1)"))
        during = watch.look(time.time())
        assert during.messages.all == {"answered": 3, "late": 1}
    assert not folder.rounds_now.is_symlink()
    after = watch.look(time.time())
    assert after.messages == during.messages
    told = " ".join(text(after).split())
    assert "nodes that answered 3 of 3 3" in told and "replies that came too late 1 1" in told and "\x1b" not in told


def test_a_run_that_is_quiet_says_so(loaded: Loaded, tmp_path: Path) -> None:
    prepare(Folder(tmp_path), loaded, 2, resume=False, overwrite=False)
    now = time.time()
    assert "Nothing was written" not in text(Watch(Folder(tmp_path)).look(now))
    assert "Nothing was written for 10 min" in text(Watch(Folder(tmp_path)).look(now + 600))


def test_the_command_looks_once_without_a_terminal(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(finished)]) == 0
    assert capsys.readouterr().out.startswith("quick (in-process): finished")
    assert main(["watch", str(finished), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    wanted = json.loads(json.dumps(document(Watch(Folder(finished)).look(0.0)), allow_nan=False))
    assert told == wanted | {"seconds_since_a_sign": told["seconds_since_a_sign"]}
    assert main(["watch", str(tmp_path / "nowhere")]) == 2
    assert "study.json" in capsys.readouterr().err


def test_a_terminal_is_written_to_until_the_run_is_finished(loaded: Loaded, finished: Path, tmp_path: Path) -> None:
    out, half = tmp_path / "out", tmp_path / "half"
    shutil.copytree(finished, half)
    for path in [half / "results.parquet", *sorted((half / "parts").glob("n0000000100*"))]:
        path.unlink()
    script = (
        "import sys; from rich.console import Console; from pathlib import Path; from studies.watch import _live;"
        "from studies.watch.look import Watch; from studies.folder import Folder;"
        "from studies.watch.budgets import Budgets;"
        "_live(Console(force_terminal=True, width=120), Watch(Folder(Path(sys.argv[1]))), Budgets([]), 0.05)"
        "; print('END')"
    )
    words = [sys.executable, "-c", script, str(out)]
    with subprocess.Popen(words, cwd=STUDY.parents[2], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = iter(child.stdout.readline, "")
        assert any("Waits for a run" in line for line in lines)
        os.rename(half, out)
        assert any("2 of 4" in line or "0 of 2" in line for line in lines)
        run(loaded, out, jobs=1, resume=True)
        rest = list(lines)
        assert "END\n" in rest[-1] and any("finished" in line for line in rest)
        assert child.wait(20) == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fe80::1", "192.0.2.1"])
def test_the_page_is_asked_for_by_the_name_that_is_printed_and_by_no_other(finished: Path, host: str) -> None:
    named = f"[{host}]" if ":" in host else host
    app = application(Watch(Folder(finished)), Budgets([]), 1.0, _hosts(host, named))

    async def status(name: str) -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            return (await client.get("/", headers={"host": name})).status_code

    assert asyncio.run(status(f"{named}:8000")) == 200
    assert asyncio.run(status("elsewhere.example:8000")) == 400
