"""Selections over rounds: no formula claims more than its cost shows, and one round is the selection itself."""

from decimal import Decimal

import numpy as np
import pytest

from server.mechanisms.selection_rounds import ONE_SHOT, Rounds, shared_rounds
from server.mechanisms.selections import SELECTIONS
from server.mechanisms.top_k import one_shot_cost
from server.mechanisms.zcdp import epsilon_of, rho_of, zcdp_delta_bound

DELTA = Decimal("1e-5")
NAMES = sorted(SELECTIONS)


def made(name: str, epsilon: str, sparsity: int, rounds: int = 1) -> Rounds:
    return shared_rounds(name, Decimal(epsilon), None if SELECTIONS[name].pure else DELTA, sparsity, rounds)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("rounds", [1, 2, 5, 20])
def test_all_rounds_together_keep_the_claim(name: str, epsilon: str, rounds: int) -> None:
    for sparsity in (1, 8):
        found, level = made(name, epsilon, sparsity, rounds), float(epsilon)
        if SELECTIONS[name].pure:
            assert 0.999 * level <= found.cost.pure <= level
        else:
            assert min(found.cost.pure, epsilon_of(found.cost.rho, DELTA)) <= level
        if name in (ONE_SHOT, "peeling-zcdp"):
            assert found.cost.rho == pytest.approx(rho_of(Decimal(epsilon), DELTA), rel=1e-9)
            assert zcdp_delta_bound(found.cost.rho, level) <= float(DELTA)


@pytest.mark.parametrize("name", NAMES)
def test_one_round_is_the_selection_and_more_need_more_noise(name: str) -> None:
    alone = made(name, "1", 5)
    assert alone.scale == pytest.approx(SELECTIONS[name].noise_scale(Decimal(1), DELTA, 5), rel=1e-12)
    scales = [made(name, "1", 5, rounds).scale for rounds in (1, 2, 5, 20)]
    assert scales == sorted(scales) and scales[0] < scales[1]


def test_one_shot_noise_against_peeling() -> None:
    """Of eight coordinates at (1, 1e-5): 3.36 times less, and sqrt(5/2) times less than Laplace at the same rho."""
    printed, laplace, gumbel = (made(name, "1", 8) for name in ("peeling-paper", "peeling-zcdp", ONE_SHOT))
    assert printed.scale / gumbel.scale == pytest.approx(3.355, abs=0.001)
    assert laplace.scale / gumbel.scale == pytest.approx(2.5**0.5, rel=1e-9)


@pytest.mark.parametrize("share", ["0.25", "0.75"])
def test_a_share_of_rho_for_the_choice(share: str) -> None:
    found = shared_rounds(ONE_SHOT, Decimal(1), DELTA, 8, 5, Decimal(share))
    assert found.cost.rho <= rho_of(Decimal(1), DELTA) * (1 + 1e-12)
    whole = one_shot_cost(8, found.scale, found.value_scale).rho
    of_choice = 8 / (2 * found.scale**2)
    assert of_choice / whole == pytest.approx(float(share), rel=1e-9)


def test_a_round_is_the_registered_selection() -> None:
    vector, drawn = np.linspace(-3, 2, 12), np.random.Generator(np.random.Philox(2))
    for name in NAMES:
        found = made(name, "1", 3)
        words = drawn.integers(0, 1 << 64, size=(found.word_rows, 12), dtype=np.uint64)
        here, there = found.select(vector, 0.01, words), SELECTIONS[name].select(vector, 3, found.scale * 0.01, words)
        assert here.support.tolist() == there.support.tolist()
        assert here.values == pytest.approx(there.values, rel=1e-12)


def test_zero_noise_keeps_signed_values(heavy_oracle: object) -> None:
    assert callable(heavy_oracle)
    vector = np.array([0.5, -3.0, 2.0, 0.0, -2.5])
    for name in NAMES:
        quiet = Rounds(name, 2, 1, 0.0, 0.0)
        words = np.full((quiet.word_rows, 5), 1 << 40, dtype=np.uint64)
        found = quiet.select(vector, 1.0, words)
        assert found.vector(5).sum() == heavy_oracle("peel zero noise")
        assert sorted(found.support.tolist()) == [1, 4]


def test_refusals() -> None:
    for name, delta, share, match in (
        ("peeling-pure", DELTA, None, "no delta"),
        ("peeling-zcdp", None, None, "a delta"),
        ("peeling-zcdp", DELTA, Decimal("0.5"), "no share"),
        ("nothing", DELTA, None, "out of"),
        (ONE_SHOT, DELTA, Decimal(1), "share in"),
    ):
        with pytest.raises(ValueError, match=match):
            shared_rounds(name, Decimal(1), delta, 3, 1, share)
    with pytest.raises(ValueError, match="keep"):
        shared_rounds("peeling-cai", Decimal(20), Decimal("0.01"), 500)
