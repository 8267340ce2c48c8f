"""How often the audit calls what is sound broken: `python -m studies.audit.false_alarms`, the table of docs/AUDIT.md.

Each run is a whole audit with coins of its own: a search, an event, fresh draws, a verdict. Made here are mechanisms at
exactly their level, whose best event is found easily, so that a limit that is too small would show; beside them runs
whatever the registry has, which is at its level too.
"""

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

import numpy as np

from client.randomizer import randomize
from protocol.coins import normal, uniform
from protocol.mechanisms.randomized_response import randomized_response
from server.mechanisms.gaussian import analytic_noise_multiplier
from studies.audit.bound import largest_chance
from studies.audit.coins import AuditCoins
from studies.audit.run import EXACT, Finding, audit
from studies.audit.subject import Claim, Coins, Floats, Outputs, Subject
from studies.audit.subjects import SUBJECTS, build

RUNS, DRAWS, CONFIDENCES = 1000, 256, ("0.9", "0.999")
SURE = 1e-3  # that the limit of a rate is too small
LEVEL, DELTA = Decimal(1), Decimal("0.01")
TABLE = randomized_response(LEVEL)
SLOW = ("central/gaussian-statistic/ledger", "node/file", "objective/", "records/threshold", "records/histogram")
LEAKING = ("selection/peeling-pure", "selection/permute-and-flip")  # by the last bits of doubles: docs/AUDIT.md, 2
INPUTS = {"0": 0, "1": 1}
PAIR = (("0", "1"),)


@dataclass(frozen=True)
class Alarms:
    """How many of `runs` sound audits were called broken, and a `limit` of that rate, too small with chance `SURE`."""

    subject: str
    runs: int
    alarms: int
    stated: float
    limit: float
    cpu: float


def symbols(value: int, count: int, coins: AuditCoins) -> Floats:
    """Randomised response, by the border."""
    values = np.full(count, value, dtype=np.uint8)
    return randomize(values, TABLE, coins.draws(), range(count)).astype(np.float64)[:, None]


def words(value: int, count: int, coins: AuditCoins) -> Outputs:
    """The same as text."""
    return [f"answer {symbol:g}" for symbol in symbols(value, count, coins)[:, 0]]


def two_sided(value: int, count: int, coins: AuditCoins) -> Floats:
    """Laplace noise of scale 1 on 0 or 1, rounded to a grid."""
    u = uniform(coins.words(count, 1)[:, 0]) - 0.5
    noise = -np.sign(u) * np.log1p(-2 * np.abs(u))
    found: Floats = np.rint((value + noise) * 64)[:, None] / 64
    return found


def bell(value: int, count: int, coins: AuditCoins) -> Floats:
    """Gaussian noise at exactly its (epsilon, delta), on a grid."""
    noise = analytic_noise_multiplier(LEVEL, DELTA) * normal(coins.words(count, 1)[:, 0])
    found: Floats = np.rint((value + noise) * 64)[:, None] / 64
    return found


def canaries(count: int, coins: AuditCoins) -> tuple[Coins, Floats]:
    """Labels of fair coins in one run, each with its randomised answer."""
    ends = coins.words(1, count)[0] >= np.uint64(1 << 63)
    return ends, np.where(randomize(ends.astype(np.uint8), TABLE, coins.draws(), range(count)) == 1, 1.0, -1.0)


def _drawn(name: str, draw: Callable[[int, int, AuditCoins], Outputs], delta: Decimal = Decimal(0)) -> Subject:
    return Subject(name, Claim(LEVEL, delta, "label"), INPUTS, PAIR, "", draw=draw)


MADE: Mapping[str, Callable[[], Subject]] = {
    "randomised response": lambda: _drawn("randomised response", symbols),
    "randomised response as text": lambda: _drawn("randomised response as text", words),
    "rounded Laplace noise": lambda: _drawn("rounded Laplace noise", two_sided),
    "rounded Gaussian noise": lambda: _drawn("rounded Gaussian noise", bell, DELTA),
    "the same as normal laws": lambda: replace(MADE["rounded Gaussian noise"](), normal=True),
    "canaries in one run": lambda: Subject(
        "canaries in one run", Claim(LEVEL, Decimal(0), "label"), INPUTS, PAIR, "", run=canaries
    ),
}


def alarms(name: str, audits: Sequence[Callable[[int], Finding]], runs: int, stated: float) -> Alarms:
    """So many runs, each of the next of some audits, given a seed."""
    start = time.process_time()
    broken = sum(audits[run % len(audits)](run).broken for run in range(runs))
    limit = float(largest_chance(np.array([float(broken)]), np.array([float(runs)]), SURE)[0])
    return Alarms(name, runs, broken, stated, limit, time.process_time() - start)


def of_made(name: str, runs: int, draws: int, confidence: float) -> Alarms:
    """Runs of a mechanism that is made here."""
    subject = MADE[name]()
    return alarms(name, [lambda seed: audit(subject, draws, confidence, seed)], runs, 1 - confidence)


def of_registry(runs: int, draws: int, confidence: float) -> Alarms:
    """Runs of all that the registry has and is sampled, in turn, but for what is slow or known to leak."""
    names = [name for name in SUBJECTS if not name.startswith((*SLOW, *LEAKING))]
    subjects = [subject for name in names if (subject := build(name, LEVEL)).laws is None]
    audits = [partial(_audited, subject, draws, confidence) for subject in subjects]
    return alarms(f"{len(subjects)} of the registry", audits, runs, 1 - confidence)


def _audited(subject: Subject, draws: int, confidence: float, seed: int) -> Finding:
    found = audit(subject, math.ceil(draws / subject.pace), confidence, seed)
    assert found.way != EXACT
    return found


def as_markdown(found: Sequence[Alarms]) -> str:
    """The table of docs/AUDIT.md."""
    lines = ["| sound | runs | stated | alarms | rate at most | CPU, s |", "|---|---:|---:|---:|---:|---:|"]
    for one in found:
        cells = (one.subject, one.runs, f"{one.stated:.3g}", one.alarms, f"{one.limit:.4f}", f"{one.cpu:.0f}")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How often the audit calls what is sound broken.")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"audits of each kind ({RUNS})")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"of an audit ({DRAWS})")
    parser.add_argument("--registry", action="store_true", help="also of the registry: minutes")
    args = parser.parse_args()
    found = [of_made(name, args.runs, args.draws, float(confidence)) for confidence in CONFIDENCES for name in MADE]
    if args.registry:
        found += [of_registry(args.runs, args.draws, float(confidence)) for confidence in CONFIDENCES]
    print(as_markdown(found))


if __name__ == "__main__":
    main()
