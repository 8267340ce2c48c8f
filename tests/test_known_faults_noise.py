"""Faults of noise that users of comparable software met: its size, its place, its level, and what asks for none."""

import math
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.typing import NDArray
from scipy.stats import beta

from client.draws import AddressedDraws
from client.randomizer import randomize
from protocol import decimals
from protocol.channel import TOTAL
from protocol.grid import to_integers, truncate
from protocol.mechanisms.randomized_response import randomized_response
from protocol.numeric import numeric_channel
from protocol.privacy import Unit
from protocol.record_terms import CLIP, L2, LINF, TRUNCATE, Bounded, bounded, squared_sensitivity
from protocol.strict import StudyError
from protocol.study import cells
from server.mechanisms import CENTRAL
from server.mechanisms.rounds import ROUNDS
from server.release import ReleaseLedger
from server.release_record import ReleaseRequest
from studies.cli import main
from studies.in_process import run_cell
from studies.load import build

ONE = Decimal(1)
FIVE = Decimal("1e-5")
MULTIPLIER_ONE = Decimal("4.378")  # at delta = 1e-5 the noise multiplier is 1 to four digits
CENTRAL_MEAN = {"trust": "central", "estimator": "mean", "threshold": ONE, "norm": "l2"}
LOCAL_MEAN = {"trust": "local", "mechanism": "gaussian", "estimator": "mean", "threshold": ONE}


def estimates(arm: dict[str, Any], repetitions: int, dimension: int, law: str = "constant(0)") -> NDArray[np.float64]:
    """Means of 100 records that three clients hold, the whole way: shape (repetitions, dimension)."""
    content = {
        "study": {"name": "noise", "seed": 5, "repetitions": repetitions},
        "problem": {"kind": "records", "model": "mean", "dimension": dimension},
        "records": {"features": law},
        "grid": {"n": [100], "epsilon": [MULTIPLIER_ONE], "delta": [FIVE]},
        "arm": [arm],
    }
    loaded = build(content, Path())
    return np.array([one.theta for c in cells(loaded.study) for one in run_cell(loaded.study, loaded.theta, c, 3)])


@pytest.mark.parametrize(("neighbours", "stddev"), [("add-remove", 0.01), ("replace", 0.02)])
def test_noise_of_a_mean_of_zeros(neighbours: str, stddev: float) -> None:
    """100 zeros, C = 1, z = 1: z S / n, with S = C where a record is added, 2 C where it is replaced, and once.

    30,000 normals: 3 % are 7 sigma, 2e-12. Its square root or its square would be ten times or a tenth of it.
    """
    found = estimates({**CENTRAL_MEAN, "neighbours": neighbours}, 300, 100)
    assert np.std(found) == pytest.approx(stddev, rel=0.03)


def test_what_a_server_receives_has_the_claimed_noise_and_a_server_adds_none() -> None:
    """Of 100 zeros whose holders trust nobody: sigma / 10 in their mean. 4,000 normals at 7 sigma: 3e-12."""
    asked = {"epsilon": MULTIPLIER_ONE, "delta": FIVE, "threshold": ONE, "dimension": Decimal(20)}
    channel = numeric_channel("gaussian", asked)
    assert math.sqrt(channel.worst_mse / 20) == pytest.approx(2.0, rel=1e-3)  # z S, S = 2 C
    found = estimates(LOCAL_MEAN, 200, 20)
    assert np.std(found) == pytest.approx(0.2, rel=7 / math.sqrt(2 * 4000))


def test_without_a_claim_a_bounded_mean_has_no_noise() -> None:
    """3 clipped at 1, a hundred times: no bit differs."""
    clear = {"trust": "clear", "estimator": "mean", "threshold": ONE}
    assert (estimates(clear, 2, 3, "constant(3)") == 1.0).all()


def test_a_row_is_bounded_as_a_whole() -> None:
    """Two parts of length 1 in one row, C = 1: a length of 1 in all, not of sqrt 2."""
    row = np.array([[0.6, 0.8, 0.0, 1.0]])
    for shape, length in ((CLIP, 1.0), (TRUNCATE, 0.0)):
        found = bounded(row, Bounded(1.0, L2, shape))
        assert np.linalg.norm(found) == pytest.approx(length, abs=1e-11)
    assert np.allclose(bounded(row, Bounded(1.0, L2)), row / np.sqrt(2))


@pytest.mark.parametrize("low", [0.0, -5.0, 2.0])
def test_a_replaced_record_moves_a_sum_by_twice_the_bound_wherever_values_lie(low: float) -> None:
    """Values in [0, 5] are no reason for less noise: what counts is the bound, never an end of a range.

    In units of 2^-40: (2 * 5 * 2^40)^2, exactly.
    """
    power, how = -40, Bounded(5.0, LINF)
    ends = np.array([[-9.0], [low], [5.0], [9.0]])
    held = to_integers(truncate(bounded(ends, how), power), power)
    moves = [(int(a) - int(b)) ** 2 for a, b in product(held[:, 0], held[:, 0])]
    assert max(moves) == squared_sensitivity(how, power, 1) == (10 << 40) ** 2
    assert squared_sensitivity(how, power, 1, Unit.ADDED_RECORD) == (5 << 40) ** 2


@pytest.mark.parametrize("value", [0, 1])
def test_a_million_flips_at_epsilon_one(value: int) -> None:
    """1 / (1 + e) = 0.2689 to 0.0018: of 4,194,304 draws 8 sigma, 2e-15. The count is of all labels of one value.

    A bug that throws the coin again for a flip gives 0.0723.
    """
    channel, draws = randomized_response(ONE), 1 << 22
    assert channel.table[value][1 - value] / TOTAL == pytest.approx(1 / (1 + math.e), abs=1e-15)
    rows = np.arange(draws)
    symbols = randomize(np.full(draws, value, np.uint8), channel, AddressedDraws(3, draws, value), rows)
    assert np.mean(symbols != value) == pytest.approx(0.2689, abs=0.0018)


def test_counted_flips_prove_no_more_than_epsilon_one() -> None:
    """Clopper-Pearson: the level that 2^22 draws of each label prove, at a risk of 1e-9, is below 1 and above 0.99."""
    channel, draws, risk = randomized_response(ONE), 1 << 22, 1e-9
    ones = [
        int(randomize(np.full(draws, v, np.uint8), channel, AddressedDraws(4, draws, v), np.arange(draws)).sum())
        for v in (0, 1)
    ]
    least = beta.ppf(risk / 2, ones[1], draws - ones[1] + 1)
    most = beta.ppf(1 - risk / 2, ones[0] + 1, draws - ones[0])
    assert 0.99 < math.log(least / most) <= 1.0


def released(mechanism: str, epsilon: str, delta: str, unit: Unit, rounds: int = 1) -> tuple[float, int]:
    """(stddev of the noise that a curator draws / sensitivity, rounds): of integers, as its ledger keeps them."""
    moved = 1 << 80
    asked = ReleaseRequest(
        b"t", 0, (), 1, -40, moved, mechanism, Decimal(epsilon), Decimal(delta), unit, 0, rounds=rounds
    )
    with ReleaseLedger(None) as ledger:
        release = ledger.release(asked, [0, 0])
    return release.stddev / math.sqrt(moved), rounds


CLAIMS = [
    *(("gaussian-statistic", epsilon, "1e-5", Unit.LABEL, 1) for epsilon in ("0.5", "1", "5", "10", "20")),
    *((name, "1", "1e-6", Unit.LABEL, 1) for name in CENTRAL),
    *((name, "0.5", "1e-5", Unit.RECORD, rounds) for name in ROUNDS for rounds in (1, 10)),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: "-".join(map(str, claim)))
def test_drawn_noise_keeps_its_claim_by_another_s_count(claim: tuple[str, str, str, Unit, int]) -> None:
    """The profile at 60 digits of the deviation that is drawn."""
    multiplier, rounds = released(*claim)
    epsilon, delta = claim[1], claim[2]
    with mp.workdps(60):
        e, mu = mpf(epsilon), mp.sqrt(rounds) / mpf(multiplier)
        assert mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu) <= mpf(delta)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: "-".join(map(str, claim)))
def test_drawn_noise_keeps_its_claim_by_google_s_count(
    claim: tuple[str, str, str, Unit, int], accountant: ModuleType
) -> None:
    multiplier, rounds = released(*claim)
    once = accountant.from_gaussian_mechanism(multiplier, value_discretization_interval=1e-4)
    counted = once.self_compose(rounds) if rounds > 1 else once
    assert counted.get_epsilon_for_delta(float(claim[2])) <= float(claim[1]) * (1 + 1e-3)  # theirs is rounded up


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_flips_keep_their_claim_by_another_s_count(epsilon: str, accountant: ModuleType) -> None:
    flip = randomized_response(Decimal(epsilon)).table[0][1]
    theirs = accountant.from_randomized_response(2 * flip / TOTAL, 2, value_discretization_interval=1e-6)
    assert theirs.get_epsilon_for_delta(0.0) == pytest.approx(float(epsilon), abs=2e-6)


@pytest.mark.slow
def test_low_bits_of_a_million_releases_tell_nothing() -> None:
    """Sums 0 and 1 reach every value of the last 8 bits, each as often: 2 * 2^8 counts at 7 sigma, 2e-9."""
    counts = []
    with ReleaseLedger(None) as ledger:
        for total in (0, 1):
            name = total.to_bytes(1, "big")
            asked = ReleaseRequest(name, 0, (), 1, -40, 1 << 40, "gaussian-statistic", ONE, FIVE, Unit.LABEL, 0)
            values = [
                value
                for i in range(1000)
                for value in ledger.release(replace(asked, repetition=i), [total] * 1000).values
            ]
            counts.append(np.bincount([value % 256 for value in values], minlength=256))
    expected = 1_000_000 / 256
    assert np.abs(np.array(counts) - expected).max() < 7 * math.sqrt(expected)


@pytest.mark.parametrize("value", [0, 0.0, math.inf, math.nan, "", None, "0", "0.0", "None", "nan", True, -1])
def test_no_level_is_defined_by_what_is_no_level(value: Any) -> None:
    """Zero never means "no privacy", and nothing that is false stands for a default."""
    with pytest.raises(ValueError, match="expected epsilon"):
        decimals.epsilon(value)
    with pytest.raises((ValueError, TypeError)):
        randomized_response(value)
    with pytest.raises((ValueError, TypeError)):
        CENTRAL["gaussian-statistic"].noise_multiplier(value, FIVE)


@pytest.mark.parametrize("value", ["0", "2", "1", "nan", "-1"])
def test_no_delta_is_defined_by_what_is_no_probability(value: str) -> None:
    with pytest.raises(ValueError, match="delta"):
        CENTRAL["gaussian-statistic"].noise_multiplier(ONE, Decimal(value))


@pytest.mark.parametrize("value", [0, 0.0, Decimal(0), Decimal("NaN"), "", "None"])
def test_no_study_has_a_level_that_is_none(value: Any) -> None:
    content = {
        "study": {"name": "none", "seed": 1, "repetitions": 1},
        "problem": {"kind": "pairwise", "dimension": 2, "features": "sphere", "theta": [Decimal(1), Decimal(0)]},
        "grid": {"n": [10], "epsilon": [value]},
        "arm": [{"trust": "local", "mechanism": "randomized-response", "estimator": "debiased"}],
    }
    with pytest.raises(StudyError, match="epsilon"):
        build(content, Path())


@pytest.mark.parametrize("flag", ["--epsilon", "--delta", "--bound"])
@pytest.mark.parametrize("value", ["0", "0.0", "", "None", "inf", "nan"])
def test_no_flag_has_a_level_that_is_none(flag: str, value: str, tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("labeler,item_a,item_b,winner\nr1,x,y,x\n", encoding="utf-8")
    good = {"--trust": "central", "--epsilon": "1", "--delta": "1e-5", "--bound": "1", "--state": str(tmp_path / "s")}
    assert main(["fit", str(votes), *(f"{name}={text}" for name, text in (good | {flag: value}).items())]) == 2
    assert not (tmp_path / "s").exists()
