"""A server's app that goes on where another one stopped: answered rounds are in its journal."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Context, Error, Message, RecordDict

from client.sources.synthetic import write_truth
from protocol.runconfig import write
from protocol.study import cells
from protocol.trust import Trust
from server.app import RunFailed
from server.app import app as server_app
from server.outcome_record import cell_name, encode
from server.resume import journal_path
from studies.in_process import run_cell
from studies.load import Loaded, build

Virtual = Callable[[int], list[dict[str, Any]]]
ROUNDS = 6


@pytest.fixture
def loaded() -> Loaded:
    """A study of rounds in two cells."""
    return build(
        {
            "study": {"name": "rounds", "seed": 3, "repetitions": 2},
            "problem": {"kind": "records", "model": "linear", "dimension": 2, "theta": [0.5, -0.5], "bound": 2},
            "records": {"features": "uniform(0, 1)", "noise": "centred pareto(1.6)", "tail": 0.5, "moment": 16},
            "grid": {"n": [40], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
            "arm": [{"trust": "central", "estimator": "descent", "rounds": ROUNDS, "step": Decimal("0.25")}],
        },
        Path(),
    )


@pytest.fixture
def room(
    grid: Any, virtual: Virtual, loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., int]:
    """Starts the server's app with two nodes of which one fails when it is asked the `failing`-th time; gives how many
    messages it sent to each.
    """
    (tmp_path / "outcomes").mkdir()
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path / "outcomes"))

    def start(failing: int = 0, **changes: Any) -> int:
        config = {
            **write(loaded.study, block=1, clients=2, deadline=5.0),
            "truth": write_truth(loaded.theta),
            **changes,
        }
        there, asked = grid(virtual(2), config), []

        def change(message: Message, reply: Message) -> list[Message]:
            asked.append(message)
            broken = len(asked) == 2 * failing
            return [Message(Error(2, "secret"), reply_to=message) if broken else reply]

        there.change = change
        try:
            server_app(there, Context(1, 1, {}, RecordDict(), config))
        except RunFailed:
            assert failing
        return len(asked) // 2

    return start


@pytest.mark.parametrize("variable", ["HALFTRUTH_JOURNAL", "HALFTRUTH_STATE"])
def test_a_new_run_goes_on_in_the_middle_of_a_cell(
    room: Callable[..., int], loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "own"))
    if variable == "HALFTRUTH_STATE":
        (tmp_path / "own").mkdir()
    folder = tmp_path / "own" / ("journal" if variable == "HALFTRUTH_STATE" else "")
    first, second = cells(loaded.study, 1)
    assert room(failing=ROUNDS + 4) == ROUNDS + 4
    assert list(folder.iterdir()) == [journal_path(folder, loaded.study, second)]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert room() == ROUNDS - 3, "three rounds were answered and are in the journal"
    assert not list(folder.iterdir())
    for cell in (first, second):
        lines = (tmp_path / "outcomes" / f"{cell_name(cell)}.jsonl").read_text("utf-8").splitlines()
        assert lines == [encode(outcome, loaded.study) for outcome in run_cell(loaded.study, loaded.theta, cell)]


def test_what_finished_cells_left_is_deleted(
    room: Callable[..., int], loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may die between delivering a cell and deleting its journal; another study's journals are its own."""
    monkeypatch.setenv("HALFTRUTH_JOURNAL", str(tmp_path / "own"))
    first, _ = cells(loaded.study, 1)
    other = replace(loaded.study, name="other")
    (tmp_path / "own").mkdir()
    stale, foreign = (journal_path(tmp_path / "own", study, first) for study in (loaded.study, other))
    for path in (stale, foreign):
        path.write_bytes(b"left")
    assert room(finished="1") == ROUNDS
    assert not stale.exists() and foreign.exists()


def test_a_damaged_journal_is_named(
    room: Callable[..., int], loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALFTRUTH_JOURNAL", str(tmp_path))
    path = journal_path(tmp_path, loaded.study, cells(loaded.study, 1)[0])
    path.write_bytes(b"something else that is no journal")
    assert room(failing=-1) == 0
    assert f"{path}: expected a journal, got another file" in (tmp_path / "outcomes" / "failed.txt").read_text("utf-8")


def test_without_a_folder_nothing_is_kept(
    room: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HALFTRUTH_JOURNAL", "HALFTRUTH_STATE"):
        monkeypatch.delenv(variable, raising=False)
    assert (room(failing=3), room()) == (3, 2 * ROUNDS)
    assert not list(tmp_path.rglob("*.journal"))


def test_a_round_of_a_live_run_keeps_its_senders_and_their_faults(
    grid: Any, virtual: Virtual, loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three nodes, of which one answers for another one's rows: neither counts, in the resumed run as in the first."""
    monkeypatch.setenv("HALFTRUTH_JOURNAL", str(tmp_path / "journal"))
    local = replace(loaded.study.arms[0], trust=Trust.LOCAL, mechanism="piecewise")
    study = replace(loaded.study, arms=(local,))
    config: dict[str, Any] = {**write(study, clients=4, deadline=5.0, mode="live"), "truth": write_truth(loaded.theta)}
    (cell,), said = cells(study), []
    for name, broken in (("whole", 0), ("parts", ROUNDS // 2), ("parts", 0)):
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path / name))
        there, asked = grid([*virtual(3), virtual(3)[0]], config), []

        def change(
            message: Message, reply: Message, asked: list[Message] = asked, broken: int = broken
        ) -> list[Message]:
            asked.append(message)
            stopped = broken and len(asked) > 4 * broken
            return [Message(Error(1, "secret"), reply_to=message) if stopped else reply]

        there.change = change
        try:
            server_app(there, Context(1, 1, {}, RecordDict(), config))
        except RunFailed:
            assert broken
        said.append(len(asked) // 4)
    assert said == [ROUNDS, ROUNDS // 2 + 1, ROUNDS - ROUNDS // 2]
    whole, parts = ((tmp_path / name / f"{cell_name(cell)}.jsonl").read_text("utf-8") for name in ("whole", "parts"))
    assert whole == parts and "node 100" in whole and "node 103" in whole


def test_a_strict_run_that_reads_rounds_of_a_live_one_says_what_to_delete(
    grid: Any, virtual: Virtual, loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the holders answered the live one, which ended early: a strict one cannot use that, however often."""
    monkeypatch.setenv("HALFTRUTH_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("HALFTRUTH_OUTCOMES", str(tmp_path))
    path = journal_path(tmp_path / "journal", loaded.study, cells(loaded.study)[0])
    said = []
    for mode in ("live", "strict", "strict"):
        config = {**write(loaded.study, clients=2, deadline=5.0, mode=mode), "truth": write_truth(loaded.theta)}
        there, asked = grid(virtual(2), config), []

        def change(message: Message, reply: Message, asked: list[Message] = asked) -> list[Message]:
            asked.append(message)
            return [Message(Error(1, "secret"), reply_to=message) if len(asked) in (2, 3, 4) else reply]

        there.change = change if mode == "live" else there.change
        with suppress(RunFailed):
            server_app(there, Context(1, 1, {}, RecordDict(), config))
        said.append((tmp_path / "failed.txt").read_text("utf-8"))
        if mode == "strict":
            path.unlink(missing_ok=True)
    assert "expected 40 rows for the central task" in said[1] and f"delete {path} to ask again" in said[1]
    assert said[2] == said[1] and (tmp_path / "done").exists()
