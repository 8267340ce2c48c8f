"""What canaries are put into: rows of numbers that holders randomise, and sums of gradients with a curator's noise."""

from collections.abc import Callable
from decimal import Decimal

import numpy as np

from client.vector_randomizer import randomize_vectors
from protocol.numeric import numeric_channel
from studies.audit.central import DELTA, FAR, Releasing, drawn, released_by
from studies.audit.coins import AuditCoins
from studies.audit.given import GivenRecords
from studies.audit.numbers import SHIFT
from studies.audit.subject import Claim, Coins, Floats, Subject

SIDES = {"one end": 1, "other end": -1}
PAIR = (("one end", "other end"),)
SUMS_PACE, MOST_SUMMED = 0.05, 1000
DIMENSION = 3


def of_vectors(name: str, epsilon: Decimal) -> Subject:
    """Rows at one of two opposite ends of the first axis, each randomised by its holder; a report's own score."""
    dimension = 1 if name in ("duchi", "piecewise", "hybrid", "laplace", "discrete-laplace") else DIMENSION
    asked = {"epsilon": epsilon, "threshold": Decimal(1), "dimension": Decimal(dimension)}
    channel = numeric_channel(name, asked | ({"delta": SHIFT} if name == "gaussian" else {}))

    def run(count: int, coins: AuditCoins) -> tuple[Coins, Floats]:
        ends = _ends(count, coins)
        values = np.zeros((count, dimension))
        values[:, 0] = np.where(ends, channel.bound, -channel.bound)
        return ends, randomize_vectors(values, channel, coins.draws(), np.arange(count))[:, 0]

    claim = Claim(epsilon, channel.delta, "record")
    return Subject(f"canary/{name}", claim, SIDES, PAIR, "client.vector_randomizer, one run", run=run)


def of_sums(epsilon: Decimal, release: Callable[[Releasing, int, AuditCoins], Floats] = drawn) -> Subject:
    """Records each at one of two opposite ends of an axis of its own, and one noisy sum of their clipped gradients."""
    claim, note = Claim(epsilon, DELTA, "record"), "a study played up to one release, then its noise"
    arm = {"mechanism": "gaussian", "estimator": "mean", "threshold": Decimal(1), "norm": "l2"}

    def run(count: int, coins: AuditCoins) -> tuple[Coins, Floats]:
        many = min(count, MOST_SUMMED)
        ends = _ends(many, coins)
        records = np.diag(np.where(ends, -FAR, FAR))  # a gradient is theta - x, at theta = 0
        return ends, release(released_by(arm, epsilon, GivenRecords(records)), 1, coins)[0]

    return Subject("canary/sums", claim, SIDES, PAIR, note, run=run, pace=SUMS_PACE)


def _ends(count: int, coins: AuditCoins) -> Coins:
    found: Coins = coins.words(1, count)[0] >= np.uint64(1 << 63)
    return found
