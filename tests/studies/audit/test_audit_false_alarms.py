"""Sound mechanisms at exactly their level, audited a thousand times each: alarms are no more frequent than stated.

Coins are fixed. A rate of 0.1 is exceeded by chance, P(B >= 165) for B binomial of 1,000 and 0.1, with less than 1e-9.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from client.randomizer import randomize
from protocol.coins import uniform
from protocol.mechanisms.randomized_response import randomized_response
from studies.audit.canary import guessed
from studies.audit.coins import AuditCoins
from studies.audit.run import audit
from studies.audit.subject import Claim, Floats, Outputs, Subject

pytestmark = pytest.mark.slow
RUNS, ALPHA, MOST = 1000, 0.1, 164
LEVEL = Decimal(1)
TABLE = randomized_response(LEVEL)


def symbols(value: int, count: int, coins: AuditCoins) -> Floats:
    values = np.full(count, value, dtype=np.uint8)
    return randomize(values, TABLE, coins.draws(), range(count)).astype(np.float64)[:, None]


def words(value: int, count: int, coins: AuditCoins) -> Outputs:
    return [f"answer {symbol:g}" for symbol in symbols(value, count, coins)[:, 0]]


def two_sided(value: int, count: int, coins: AuditCoins) -> Floats:
    """Laplace noise of scale 1 on 0 or 1, rounded to a grid."""
    u = uniform(coins.words(count, 1)[:, 0]) - 0.5
    noise = -np.sign(u) * np.log1p(-2 * np.abs(u))
    found: Floats = np.rint((value + noise) * 64)[:, None] / 64
    return found


@pytest.mark.parametrize("draw", [symbols, words, two_sided])
def test_a_thousand_sound_audits(draw: Callable[[Any, int, AuditCoins], Outputs]) -> None:
    inputs = {"0": 0, "1": 1}
    subject = Subject("sound", Claim(LEVEL, Decimal(0), "label"), inputs, (("0", "1"),), "", draw=draw)
    alarms = sum(audit(subject, 256, 1 - ALPHA, seed).broken for seed in range(RUNS))
    assert alarms <= MOST


def test_a_thousand_sound_runs_of_canaries() -> None:
    alarms = 0
    for seed in range(RUNS):
        coins = AuditCoins(seed, "canaries")
        ends = coins.words(1, 400)[0] >= np.uint64(1 << 63)
        reports = randomize(ends.astype(np.uint8), TABLE, coins.draws(), range(400))
        alarms += guessed(ends, np.where(reports == 1, 1.0, -1.0), 0.0, ALPHA).epsilon > float(LEVEL)
    assert alarms <= MOST
