"""Choices in the curator's ledger: one for a (task, repetition), whatever crashes or is asked again, and exact laws."""

import dataclasses
import hashlib
import os
import signal
import sqlite3
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from protocol.coins import Address, Stream, words
from protocol.messages import Coins
from protocol.privacy import Unit
from server.accountant import composition
from server.choice_record import Choice, ChoiceRequest, decode_choice, encode_choice
from server.mechanisms.discrete_gaussian import calibrate
from server.mechanisms.exact_choices import HISTOGRAM, LOOKS, THRESHOLD
from server.mechanisms.selection_rounds import ONE_SHOT
from server.mechanisms.selections import SELECTIONS
from server.release import ReleaseLedger
from server.release_file import LedgerError, read_releases
from server.release_record import Release, ReleaseRequest, in_real_units
from server.simulated_choice import simulated_choice, words_wanted

FIVE = Decimal("1e-5")
SCORES = [3 << 22, -(9 << 22), 1 << 22, 0, 5 << 22]


def request(mechanism: str = ONE_SHOT, **changes: object) -> ChoiceRequest:
    pure = mechanism in LOOKS or SELECTIONS[mechanism].pure
    asked = ChoiceRequest(
        task=b"task",
        repetition=0,
        accepted=(b"two", b"one"),
        count=40,
        exponent=-20,
        moved=1 << 20,
        width=5,
        mechanism=mechanism,
        epsilon=Decimal(1),
        delta=None if pure else FIVE,
        unit=Unit.RECORD,
        sparsity=1 if mechanism in LOOKS else 2,
    )
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


def summed(**changes: object) -> ReleaseRequest:
    asked = ReleaseRequest(b"sum", 0, (b"one",), 40, -40, 1 << 60, "gaussian", Decimal(1), FIVE, Unit.RECORD, 0)
    return dataclasses.replace(asked, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", [*LOOKS, *SELECTIONS])
def test_a_second_call_returns_the_first_choice(tmp_path: Path, mechanism: str) -> None:
    path, asked = tmp_path / "ledger", request(mechanism)
    with ReleaseLedger(path) as ledger:
        first = ledger.choose(asked, SCORES)
    with ReleaseLedger(path) as ledger:
        assert ledger.choose(request(mechanism, accepted=(b"three",), count=9), [0] * 5) == first
        ledger.choose(request(mechanism, repetition=1), SCORES)
    stored = read_releases(path)
    assert stored[0] == first == decode_choice(encode_choice(first)) and len(stored) == 2
    assert (first.request.accepted, first.request.count, first.coins) == ((b"one", b"two"), 40, Coins.OS)
    assert len(in_real_units(first)) == (0 if mechanism == THRESHOLD else len(first.places))


def test_a_key_is_a_sum_or_a_choice_and_has_one_request() -> None:
    others: list[dict[str, object]] = [
        {"moved": 1 << 21},
        {"epsilon": Decimal(2)},
        {"sparsity": 1},
        {"rounds": 2},
        {"share": Decimal("0.4")},
        {"exponent": -21},
        {"unit": Unit.HOLDER},
        {"mechanism": "peeling-zcdp"},
    ]
    with ReleaseLedger(None) as ledger:
        ledger.choose(request(), SCORES)
        ledger.release(summed(), [1, 2])
        for changes in others:
            with pytest.raises(LedgerError, match="got others"):
                ledger.choose(request(**changes), SCORES)  # type: ignore[arg-type]
        with pytest.raises(LedgerError, match="got others"):
            ledger.choose(request(width=6), [*SCORES, 0])
        with pytest.raises(LedgerError, match="got others"):
            ledger.release(summed(task=b"task"), [1, 2])
        with pytest.raises(LedgerError, match="got others"):
            ledger.choose(request(task=b"sum"), SCORES)
        with pytest.raises(ValueError, match="expected 5 scores"):
            ledger.choose(request(repetition=1), SCORES[:4])
        with pytest.raises(TypeError, match="integers in units of the grid"):
            ledger.choose(request(repetition=1), [1.5] * 5)  # type: ignore[list-item]
        decay = Decimal("0.693147")
        ledger.choose(request(THRESHOLD, task=b"weighted", decay=decay), SCORES)
        with pytest.raises(LedgerError, match="got others"):
            ledger.choose(request(THRESHOLD, task=b"weighted"), SCORES)


def test_scores_are_never_on_disk(tmp_path: Path) -> None:
    path, secret = tmp_path / "ledger", 987654321987
    with ReleaseLedger(path) as ledger:
        for repetition, mechanism in enumerate([*LOOKS, *SELECTIONS]):
            ledger.choose(request(mechanism, repetition=repetition), [secret, 1, 2, 3, -secret])
    assert str(secret).encode() not in path.read_bytes()


def test_a_choice_that_was_seen_survives_a_kill(tmp_path: Path) -> None:
    """Children choose for ever and tell what they saw; what any of them saw is what the ledger has."""
    path, seen = tmp_path / "ledger", dict[int, set[str]]()
    for _ in range(6):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with ReleaseLedger(path) as ledger:
                    for number in range(1 << 20):
                        choice = ledger.choose(request(task=number.to_bytes(4, "big")), SCORES)
                        os.write(writing, f"{number} {encode_choice(choice)}\n".encode())
            finally:
                os._exit(1)
        os.close(writing)
        told = b""
        while told.count(b"\n") < 4:
            told += os.read(reading, 1 << 16)
        os.kill(child, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        while more := os.read(reading, 1 << 16):
            told += more
        os.close(reading)
        for line in told.decode().splitlines():
            number, choice = line.split(" ", 1)
            if choice.endswith("}"):  # written whole
                seen.setdefault(int(number), set()).add(choice)
    stored = {int.from_bytes(one.request.task, "big"): one for one in read_releases(path)}
    assert len(seen) >= 4 and set(seen) <= set(stored)
    for number, told_of in seen.items():
        choice = stored[number]
        assert isinstance(choice, Choice) and told_of == {encode_choice(choice)}


@pytest.mark.parametrize("change", ['"places": [', '"moved": 1048576', '"mechanism": "gumbel'])
def test_a_tampered_choice_is_named(tmp_path: Path, change: str) -> None:
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        ledger.choose(request(), SCORES)
    whole = path.read_bytes()
    place = whole.index(change.encode()) + len(change) - 1
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for use in (ReleaseLedger, read_releases):
        with pytest.raises(LedgerError, match="does not match its digest"):
            use(path)


def test_a_record_that_no_choice_can_have_made_is_refused() -> None:
    choice = Choice(request(), (4, 1), (7, -3))
    text = encode_choice(choice)
    for old, new in (
        ("[4, 1]", "[4, 4]"),
        ("[4, 1]", "[4, 5]"),
        ("[4, 1]", "[4]"),
        ("[4, 1]", "[4, 1, 1]"),
        ("[4, 1]", "[4, 1.0]"),
        ("[7, -3]", "[7, -3.5]"),
        ("[7, -3]", "[7]"),
        ('"sparsity": 2', '"sparsity": 0'),
        ('"epsilon": "1"', '"epsilon": "0"'),
        ('"delta": "0.00001"', '"delta": null'),
        ('"unit": "RECORD"', '"unit": "ADDED_RECORD"'),
        ('"width": 5', '"width": 1'),
        ('"mechanism": "gumbel-gaussian"', '"mechanism": "gaussian"'),
    ):
        assert old in text
        with pytest.raises((ValueError, LookupError)):
            decode_choice(text.replace(old, new))


def test_a_level_that_is_no_number_stops_the_curator_as_damage_does(tmp_path: Path) -> None:
    """Also where the digest fits, as it does for whoever writes the file on purpose."""
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        text = encode_choice(ledger.choose(request(), SCORES)).replace('"epsilon": "1"', '"epsilon": "one"')
    with sqlite3.connect(path) as database:
        digest = hashlib.sha256(text.encode()).digest()
        database.execute("UPDATE release SET record = ?, digest = ?", (text, digest))
    database.close()
    for use in (ReleaseLedger, read_releases):
        with pytest.raises(LedgerError, match="does not read"):
            use(path)


def test_a_curator_that_was_made_before_choices_refuses_them(tmp_path: Path) -> None:
    """It reads a record as a sum's, and stops: nothing is released by who does not know what was."""
    from server.release_record import decode

    with pytest.raises((ValueError, LookupError)):
        decode(encode_choice(Choice(request(), (4, 1), (7, -3))))
    path = tmp_path / "ledger"
    with ReleaseLedger(path) as ledger:
        ledger.choose(request(), SCORES)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM release").fetchone() == (1,)


@pytest.mark.parametrize("mechanism", [*LOOKS, *SELECTIONS])
def test_exact_and_simulated_choices_follow_one_law(mechanism: str) -> None:
    """600 choices each of the place chosen first, or of the first bin's sign: 7 joint standard errors, 3e-12 each
    (the live half has the system's coins, which are not seeded)."""
    asked, runs = request(mechanism), 600
    scores = [1 << 20, -(2 << 20), 3 << 20, 0, 2 << 20]
    counted = np.zeros((2, 5))
    coins = words(Address(5, Stream.CURATOR), 0, runs * words_wanted(asked)).reshape(runs, -1)
    with ReleaseLedger(None) as ledger:
        for run, row in enumerate(coins):
            live = ledger.choose(dataclasses.replace(asked, repetition=run), scores)
            simulated = simulated_choice(asked, scores, row)
            for side, choice in enumerate((live, simulated)):
                first = int(choice.values[0] > scores[0]) if mechanism == HISTOGRAM else choice.places[0]
                counted[side, first] += 1
    mean = counted.sum(axis=0) / (2 * runs)
    assert (np.abs(counted[0] - counted[1]) <= 7 * np.sqrt(2 * runs * mean * (1 - mean)) + 1e-9).all()


def test_claims_of_choices_are_counted() -> None:
    """Ten rounds of selections are one claim; sums are counted as Gaussian noise beside them."""
    places, values = (0, 1), (0, 0)
    rounds = [Choice(request(rounds=10, task=bytes([t + 1])), places, values) for t in range(10)]
    look = Choice(request(THRESHOLD, epsilon=Decimal("0.4")), (3,), ())
    alone = composition([*rounds, look], Unit.RECORD)
    assert alone is not None and alone.basic is not None
    assert (alone.basic.epsilon, alone.basic.delta) == (Decimal("1.4"), FIVE)
    assert (alone.epsilon, alone.mu) == (Decimal("1.4"), 0)
    asked = summed()
    stddev = calibrate(asked.epsilon, FIVE, asked.sensitivity_squared, 2, asked.noise_multiplier)
    sums = [Release(dataclasses.replace(asked, task=bytes([t])), (0, 0), stddev) for t in (1, 2, 3, 4)]
    before, after = composition(sums, Unit.RECORD), composition([*sums, *rounds, look], Unit.RECORD)
    assert before is not None and after is not None and before.epsilon is not None and after.epsilon is not None
    assert after.epsilon == before.epsilon + Decimal("1.4") < Decimal(4)
    assert after.basic is not None and after.basic.epsilon == Decimal("5.4")
    assert composition([look], Unit.LABEL) is None
    assert composition([dataclasses.replace(look, request=request(THRESHOLD, unit=Unit.HOLDER))], Unit.RECORD)
