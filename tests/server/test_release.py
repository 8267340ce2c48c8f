"""The curator's ledger: one (task, repetition), one value, whatever crashes, races or breaks."""

import dataclasses
import math
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

from protocol.coins import Address, Stream, normal, words
from protocol.messages import Coins
from protocol.privacy import Unit
from server.mechanisms import CENTRAL
from server.mechanisms.discrete_gaussian import SMALLEST_SENSITIVITY, calibrate_run, delta_upper_bound
from server.release import ReleaseLedger, simulated_release
from server.release_file import LedgerError, is_release_ledger, read_releases
from server.release_record import Release, ReleaseRequest, decode, encode, in_real_units

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("release_worker.py")


def request(**changes: object) -> ReleaseRequest:
    asked = ReleaseRequest(
        task=b"task",
        repetition=0,
        accepted=(b"two", b"one"),
        count=2,
        exponent=-40,
        sensitivity_squared=1 << 60,
        mechanism="gaussian-statistic",
        epsilon=Decimal(1),
        delta=Decimal("1e-5"),
        unit=Unit.LABEL,
        cap=0,
    )
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


def worker(*arguments: object) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def seen(*processes: subprocess.Popen[str], status: int = 0) -> dict[int, set[tuple[int, ...]]]:
    """What the processes printed: the different values of each task."""
    values: dict[int, set[tuple[int, ...]]] = defaultdict(set)
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == status
        for line in output.splitlines():
            number, numbers = line.split()
            values[int(number)].add(tuple(map(int, numbers.split(","))))
    return values


def recorded(path: Path) -> dict[int, tuple[int, ...]]:
    return {int.from_bytes(release.request.task, "big"): release.values for release in read_releases(path)}


@pytest.mark.parametrize("where", ["file", "memory"])
def test_a_second_call_returns_the_first_release(tmp_path: Path, where: str) -> None:
    with ReleaseLedger(tmp_path / "ledger" if where == "file" else None) as ledger:
        first = ledger.release(request(), [1, 2, 3])
        again = ledger.release(request(accepted=(b"three",), count=1), [10, 20, 30])
        other = ledger.release(request(repetition=1), np.array([1, 2, 3]))
    assert again == first
    assert first.request.accepted == (b"one", b"two")
    assert other.values != first.values
    assert first.coins is Coins.OS


def test_a_release_survives_its_process_and_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        first = ledger.release(request(), [1, 2, 3])
    with ReleaseLedger(path) as ledger:
        assert ledger.release(request(), [4, 5, 6]) == first
        second = ledger.release(request(task=b"another"), [4, 5, 6])
    assert read_releases(path) == [first, second]
    assert is_release_ledger(path)
    assert os.listdir(tmp_path) == ["ledger"]


def test_the_scale_keeps_the_claim_for_every_mechanism() -> None:
    with ReleaseLedger(None) as ledger:
        for name, mechanism in CENTRAL.items():
            asked = request(task=name.encode(), mechanism=name)
            release = ledger.release(asked, [0] * 4)
            assert delta_upper_bound(asked.epsilon, release.stddev, asked.sensitivity_squared, 4) <= 1e-5
            wanted = mechanism.noise_multiplier(asked.epsilon, asked.delta) * 2.0**30
            assert 1 <= release.stddev / wanted < 1 + 1e-6


@pytest.mark.parametrize("mechanism", ["gaussian", "gaussian-classical"])
def test_rounds_of_one_claim_have_one_scale_whatever_they_move_by(mechanism: str) -> None:
    """A threshold that follows results sets the sensitivity: the noise of no round may be less than the claim needs.

    Rounds of sensitivity D have s >= s0 D / D0, and T rounds of s0 and D0 keep the claim, so that any T rounds do.
    """
    rounds, dimension = 20, 3
    asked = request(mechanism=mechanism, unit=Unit.RECORD, rounds=rounds)
    least = calibrate_run(asked.epsilon, asked.delta, dimension, asked.noise_multiplier, rounds)
    kept = delta_upper_bound(asked.epsilon, least, rounds * SMALLEST_SENSITIVITY**2, rounds * dimension)
    assert kept <= float(asked.delta)
    assert least >= asked.noise_multiplier * SMALLEST_SENSITIVITY
    with ReleaseLedger(None) as ledger:
        for place, moved in enumerate([1, (1 << 48) + 1, 3 << 50, (1 << 61) - 7, 1 << 90]):
            made = ledger.release(dataclasses.replace(asked, sensitivity_squared=moved, repetition=place), (0,) * 3)
            smallest = max(moved, SMALLEST_SENSITIVITY**2)
            assert (made.stddev * SMALLEST_SENSITIVITY) ** 2 >= least**2 * smallest
            assert made.stddev <= 1.001 * asked.noise_multiplier * math.sqrt(smallest) + 1


def test_live_and_simulated_noise_follow_one_law() -> None:
    """Kolmogorov-Smirnov of both against the normal law of the analytic scale; false alarm 1e-9 each (coins of the
    system are not seeded, so the live half may fail once in 10^9 runs)."""
    asked, size = request(), 4_000
    with ReleaseLedger(None) as ledger:
        live = ledger.release(asked, [0] * size)
    simulated = simulated_release(asked, [0] * size, normal(words(Address(1, Stream.CURATOR), 0, size)))
    assert live.stddev == pytest.approx(simulated.stddev, rel=1e-6)
    for release in (live, simulated):
        assert kstest(np.array(release.values, dtype=float) / simulated.stddev, "norm").pvalue > 1e-9
    assert simulated.coins is Coins.ADDRESSED


def test_simulated_release_is_the_formula() -> None:
    release = simulated_release(request(), [5, -7], [1.0, -2.0])
    stddev = CENTRAL["gaussian-statistic"].noise_multiplier(Decimal(1), Decimal("1e-5")) * 2.0**30
    assert release.values == (5 + stddev, -7 - 2 * stddev)
    assert in_real_units(release) == pytest.approx([value * 2.0**-40 for value in release.values])
    for normals in ([1.0], [1.0, math.nan], [1.0, math.inf]):
        with pytest.raises(ValueError, match="expected 2 finite normal numbers"):
            simulated_release(request(), [5, -7], normals)


def test_real_units_of_a_large_release() -> None:
    release = Release(request(exponent=-50), (3 << 70, -(1 << 50)), 1 << 60)
    assert in_real_units(release).tolist() == [3.0 * 2**20, -1.0]


def test_the_exact_sum_is_never_on_disk(tmp_path: Path) -> None:
    path, secret = tmp_path / "ledger", 987654321987654
    with ReleaseLedger(path) as ledger:
        ledger.release(request(), [secret])
    stored = path.read_bytes()
    for form in (str(secret).encode(), secret.to_bytes(8, "big"), secret.to_bytes(8, "little")):
        assert form not in stored
    assert str(read_releases(path)[0].values[0]).encode() in stored


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_new_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    with ReleaseLedger(tmp_path / "ledger") as ledger:
        ledger.release(request(), [5])
    assert (tmp_path / "ledger").stat().st_mode & 0o777 == 0o600


def test_errors_and_names_show_no_sum() -> None:
    with ReleaseLedger(None) as ledger, pytest.raises(TypeError, match="integers in units of the grid") as caught:
        ledger.release(request(), [123456.5])  # type: ignore[list-item]
    assert "123456" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_one_task_never_has_other_parameters() -> None:
    with ReleaseLedger(None) as ledger:
        ledger.release(request(), [1, 2])
        labelers = {"unit": Unit.LABELER, "cap": 3}
        for changes in ({"exponent": -41}, {"epsilon": Decimal(2)}, {"sensitivity_squared": 1 << 61}, labelers):
            with pytest.raises(LedgerError, match="got others"):
                ledger.release(request(**changes), [1, 2])
        with pytest.raises(LedgerError, match="got others"):
            ledger.release(request(), [1, 2, 3])
        assert ledger.release(request(), [0, 0]).values


def test_what_cannot_be_noised_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        with pytest.raises(ValueError, match="use a finer grid"):
            ledger.release(request(sensitivity_squared=100), [1])
        with pytest.raises(ValueError, match="at least one coordinate"):
            ledger.release(request(), [])
        with pytest.raises(ValueError, match="expected epsilon"):
            ledger.release(request(epsilon=Decimal("NaN")), [1])
        assert read_releases(path) == []
        ledger.release(request(), [1])
    assert len(read_releases(path)) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": b""}, "task id"),
        ({"repetition": -1}, "repetition >= 0"),
        ({"count": -1}, "count >= 0"),
        ({"sensitivity_squared": 0}, "sensitivity_squared >= 1"),
        ({"mechanism": "none"}, "got 'none'"),
        ({"accepted": (b"a", b"a")}, "count double"),
        ({"unit": Unit.LABELER}, "cap >= 1"),
        ({"cap": 1}, "cap >= 1"),
        ({"unit": Unit.RECORD, "cap": 1, "mechanism": "gaussian"}, "got record"),
        ({"unit": Unit.RECORD}, "expected a mechanism out of"),
        ({"rounds": 2}, "expected a mechanism out of"),
        ({"rounds": 0}, "rounds >= 1"),
    ],
)
def test_bad_requests_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        request(**changes)


def test_a_record_reads_as_it_was_written() -> None:
    for changes in ({}, {"unit": Unit.LABELER, "cap": 20}):
        release = Release(request(delta=Decimal("1E-20"), **changes), (1 << 90, -3), 1 << 80)
        assert decode(encode(release)) == release


def test_a_ledger_does_not_travel(tmp_path: Path) -> None:
    with ReleaseLedger(tmp_path / "ledger") as ledger, pytest.raises(TypeError, match="pickle"):
        pickle.dumps(ledger)


def test_a_ledger_keeps_its_name_and_one_in_its_place_has_another(tmp_path: Path) -> None:
    """A task about labels elsewhere is asked under this name, so that it is paid again where the ledger is new."""
    path, names = tmp_path / "ledger", []
    for _ in range(2):
        with ReleaseLedger(path) as ledger:
            names.append(ledger.identity)
    path.unlink()
    for place in (path, None, None):
        with ReleaseLedger(place) as ledger:
            names.append(ledger.identity)
    assert names[0] == names[1]
    assert len(set(names)) == 4
    assert {len(name) for name in names} == {16}


def test_a_fork_does_not_release(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    assert seen(worker("fork", path), status=7) == {}
    assert read_releases(path) == []


def test_files_that_are_no_ledger_are_refused_and_unchanged(tmp_path: Path) -> None:
    garbage, foreign, newer = tmp_path / "garbage", tmp_path / "foreign", tmp_path / "newer"
    garbage.write_bytes(b"not a database" * 100)
    for path, script in (
        (foreign, "CREATE TABLE labels (x)"),
        (newer, "PRAGMA user_version = 3; PRAGMA application_id = 0x48544355"),
    ):
        database = sqlite3.connect(path)
        database.executescript(script)
        database.close()
    for path in (garbage, foreign, newer):
        before = path.read_bytes()
        for use in (ReleaseLedger, read_releases):
            with pytest.raises(LedgerError):
                use(path)
        assert path.read_bytes() == before
    assert [is_release_ledger(path) for path in (garbage, foreign, newer)] == [False, False, True]


@pytest.mark.parametrize("path", ["missing/ledger", "."])
def test_a_ledger_that_cannot_be_written_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(LedgerError, match="can be read and written"):
        ReleaseLedger(tmp_path / path)
    with pytest.raises(LedgerError):
        read_releases(tmp_path / path)


def test_damage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        for repetition in range(40):
            ledger.release(request(repetition=repetition), [1, 2, 3])
    whole = path.read_bytes()
    place = whole.index(b'"values"') + 12
    flipped = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
    for damaged in (flipped, whole[: len(whole) // 2], whole[:-1000]):
        path.write_bytes(damaged)
        for use in (ReleaseLedger, read_releases):
            with pytest.raises(LedgerError):
                use(path)


def test_damage_under_an_open_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        ledger.release(request(), [1])
        other = sqlite3.connect(path)
        other.execute("UPDATE release SET record = replace(record, '\"count\": 2', '\"count\": 3')")
        other.commit()
        other.close()
        with pytest.raises(LedgerError, match="does not match its digest"):
            ledger.release(request(), [1])


def test_processes_that_ask_at_once_see_one_release(tmp_path: Path) -> None:
    path, tasks = tmp_path / "ledger", 40
    values = seen(*(worker("race", path, own, tasks) for own in (1, 2, 3)))
    assert set(values) == set(range(tasks))
    assert {number: {value} for number, value in recorded(path).items()} == values


def kill_and_compare(path: Path, kills: int) -> None:
    """Nothing is seen that is not recorded, and no task is seen with two values; then the ledger still works."""
    values = seen(worker("crash", path, kills, 11))
    kept = recorded(path)
    assert len(values) >= kills // 4, "expected some children to get as far as a new release"
    for number, different in values.items():
        assert different == {kept[number]}
    with ReleaseLedger(path) as ledger:
        assert ledger.release(request(), [1]).values


def test_kill_at_random_moments(tmp_path: Path) -> None:
    kill_and_compare(tmp_path / "ledger", 20)


@pytest.mark.slow
def test_kill_at_random_moments_many_times(tmp_path: Path) -> None:
    kill_and_compare(tmp_path / "ledger", 200)


def test_a_full_disk_releases_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    values = seen(worker("fill", path, 1 << 16))
    assert len(values) > 10
    assert {number: {value} for number, value in recorded(path).items()} == values


def test_a_torn_commit_is_undone_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        first = ledger.release(request(), [1])
    seen(worker("tear", path), status=-signal.SIGKILL)
    assert (tmp_path / "ledger-journal").stat().st_size > 0
    assert read_releases(path) == [first]
