"""Runs: the same bytes whatever the jobs, clients, blocks, threads and pauses; nothing overwritten, nothing lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from protocol.strict import StudyError
from studies.load import load
from studies.run import run
from studies.unit import THREAD_COUNTS, UnitError

ROOT = Path(__file__).parents[2]


def bytes_of(out: Path) -> bytes:
    return (out / "results.parquet").read_bytes()


def start(study: Path, out: Path, *flags: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "studies", "run", str(study), "--out", str(out), *flags],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_parts(process: subprocess.Popen[str], out: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(out.glob("parts/*.parquet"))) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def wait_for_group(leader: int) -> None:
    """Wait until no process of a session is left."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("worker processes outlive their parent")


@pytest.mark.parametrize("clients", [3, 8])
def test_any_number_of_clients(study_path: Path, finished: Path, tmp_path: Path, clients: int) -> None:
    run(load(study_path), tmp_path, jobs=1, clients=clients, block=10)
    assert bytes_of(tmp_path) == bytes_of(finished)


@pytest.mark.parametrize("block", [1, 7])
def test_any_block_size(study_path: Path, finished: Path, tmp_path: Path, block: int) -> None:
    run(load(study_path), tmp_path, jobs=1, block=block)
    assert bytes_of(tmp_path) == bytes_of(finished)


def test_any_number_of_threads_of_the_linear_algebra(study_path: Path, finished: Path, tmp_path: Path) -> None:
    threads = 1 + (os.cpu_count() == 1)  # `finished` has one for every core
    process = start(study_path, tmp_path, "--jobs", "1", **dict.fromkeys(THREAD_COUNTS, str(threads)))
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert bytes_of(tmp_path) == bytes_of(finished)
    assert "halftruth report" in out


def test_ctrl_c_keeps_what_is_finished_and_resume_goes_on(study_path: Path, finished: Path, tmp_path: Path) -> None:
    process = start(study_path, tmp_path, "--jobs", "2", "--block", "1")
    wait_for_parts(process, tmp_path, 1)
    os.killpg(process.pid, signal.SIGINT)  # the terminal sends it to workers too
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    wait_for_group(process.pid)
    kept = list(tmp_path.glob("parts/*"))
    assert f"{len(kept)} of 40 units" in error
    assert "--resume" in error
    assert "Traceback" not in error
    assert not (tmp_path / "results.parquet").exists()
    with pytest.raises(StudyError, match=rf"{len(kept)} finished units?.*--resume.*--overwrite"):
        run(load(study_path), tmp_path, jobs=1)
    before = {path: path.stat().st_mtime_ns for path in kept}
    done: list[tuple[int, int]] = []
    run(load(study_path), tmp_path, jobs=2, resume=True, block=20, progress=lambda *now: done.append(now))
    assert bytes_of(tmp_path) == bytes_of(finished)
    assert before == {path: path.stat().st_mtime_ns for path in kept}
    assert len(list(tmp_path.glob("parts/*"))) == 40
    assert 0 < done[0][0] < done[0][1] == done[-1][0]
    sessions = json.loads((tmp_path / "study.json").read_text())["sessions"]
    assert len(sessions[0]["unit_seconds"]) <= len(kept)
    assert len(sessions[1]["unit_seconds"]) == 40 - len(kept)


def test_a_killed_run_leaves_no_worker_behind_and_resumes(study_path: Path, finished: Path, tmp_path: Path) -> None:
    process = start(study_path, tmp_path, "--jobs", "2", "--block", "1")
    wait_for_parts(process, tmp_path, 1)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    wait_for_group(process.pid)
    run(load(study_path), tmp_path, jobs=1, resume=True)
    assert bytes_of(tmp_path) == bytes_of(finished)
    assert not list(tmp_path.glob("parts/.*"))


def test_a_changed_study_is_not_resumed(study_path: Path, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "out")
    before = bytes_of(tmp_path / "out")
    changed = load(study_path, ["problem.features=sphere", "study.seed=12"])
    with pytest.raises(StudyError) as caught:
        run(changed, tmp_path / "out", jobs=1, resume=True)
    for line in ("study.seed: 11 -> 12", 'problem.features: "gaussian" -> "sphere"', 'arms.10.radius: "2.5" -> "1.2"'):
        assert line in str(caught.value)
    assert bytes_of(tmp_path / "out") == before


def test_nothing_is_overwritten_unless_asked(study_path: Path, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "out")
    small = load(study_path, ["grid.n=[150]", "study.repetitions=2"])
    with pytest.raises(StudyError, match="2 finished units"):
        run(small, tmp_path / "out", jobs=1)
    assert bytes_of(tmp_path / "out") == bytes_of(finished)
    table = run(small, tmp_path / "out", jobs=1, overwrite=True)
    assert set(table["n"].to_pylist()) == {150}
    assert len(list((tmp_path / "out" / "parts").iterdir())) == 1


def test_resuming_nothing_starts_and_resuming_all_changes_nothing(study_path: Path, tmp_path: Path) -> None:
    small = load(study_path, ["grid.n=[150]", "study.repetitions=3"])
    run(small, tmp_path, jobs=1, resume=True)
    record, rows = (tmp_path / "study.json").read_bytes(), bytes_of(tmp_path)
    run(small, tmp_path, jobs=1, resume=True)
    assert ((tmp_path / "study.json").read_bytes(), bytes_of(tmp_path)) == (record, rows)


def test_a_damaged_part_is_named(study_path: Path, tmp_path: Path) -> None:
    small = load(study_path, ["grid.n=[150]", "study.repetitions=3"])
    run(small, tmp_path, jobs=1, block=1)
    part = sorted(tmp_path.glob("parts/*"))[1]
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(StudyError, match=rf"{part.name}.*Delete the file"):
        run(small, tmp_path, jobs=1, resume=True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failed_unit_says_which_and_why_and_keeps_the_others(study_text: str, tmp_path: Path, jobs: int) -> None:
    study = tmp_path / "study.toml"
    text = study_text.replace("bound = 3.0\n", "").replace("n = [150, 1000]", "n = [2, 1000]")
    study.write_text(text.replace("repetitions = 20", "repetitions = 1"))
    out = tmp_path / "out"
    with pytest.raises(UnitError, match=r"n = 2, repetitions 0\.\.0: .*minimiser") as caught:
        run(load(study), out, jobs=jobs)
    assert "theta" not in str(caught.value)
    assert [path.name[:11] for path in out.glob("parts/*")] == ["n0000001000"]


def test_study_json_says_what_was_run_and_where(finished: Path, study_path: Path) -> None:
    record = json.loads((finished / "study.json").read_text())
    assert record["sha256"] == load(study_path).sha256
    assert record["study"]["arms"][5]["tau"] == "0.5"
    assert set(record["versions"]) >= {"halftruth", "python", "numpy", "numba"}
    assert len(record["numerics"]) == 16
    assert record["machine"]["cores"] == os.cpu_count()
    (session,) = record["sessions"]
    assert sum(session["unit_seconds"].values()) <= session["seconds"] + 0.01


def test_more_clients_than_rows_are_refused(study_path: Path, tmp_path: Path) -> None:
    loaded = load(study_path)
    with pytest.raises(StudyError, match="at most the smallest n"):
        run(loaded, tmp_path / "out", clients=min(loaded.study.grid.n) + 1)
    assert not (tmp_path / "out").exists()
