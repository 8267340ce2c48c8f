"""Lies that are planted, of many kinds, and how soon the audit finds each: `python -m studies.audit.planted`.

Exact ones leave nothing to chance. Sampled ones are found with probability above 1 - 1e-6 at these draws; the excess is
large enough for the system's coins as well.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.ledger import DiskLedger
from protocol.channel import TOTAL, DiscreteChannel
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.messages import Runs, Task
from protocol.numeric import numeric_channel
from protocol.numeric.coordinates import Coordinates
from protocol.numeric.discrete_laplace import discrete_laplace
from protocol.numeric.duchi import Duchi
from protocol.numeric.duchi_cube import DuchiCube
from protocol.numeric.gaussian_noise import GaussianNoise
from protocol.numeric.laplace import Laplace
from protocol.numeric.piecewise import Piecewise
from protocol.numeric.priv_unit import PrivUnit
from protocol.numeric.unary import Unary
from protocol.terms import TIE
from server.choice_record import ChoiceRequest
from server.release_record import ReleaseRequest
from studies.audit import central, client
from studies.audit.canaries import of_sums
from studies.audit.coins import AuditCoins
from studies.audit.given import GivenDraws, GivenLabels
from studies.audit.labels import of_table
from studies.audit.numbers import of_channel
from studies.audit.run import Finding, audit
from studies.audit.simulated import of_selection
from studies.audit.subject import Floats, Subject
from studies.audit.tasks import of_tasks

ONE = Decimal(1)
EXACT, _LOG_2 = Context(prec=80), Decimal(2).ln()
DRAWS = {"the last bits of doubles": 20_000, "a tenth less Gaussian noise": 60_000}


# Tables


def _flipping(count: int) -> DiscreteChannel:
    return DiscreteChannel(((TOTAL - count, count), (count, TOTAL - count)))


def _rounded_down() -> Subject:
    exact = EXACT.divide(Decimal(TOTAL), 1 + EXACT.exp(ONE)).to_integral_value(rounding=ROUND_FLOOR)
    return of_table("planted", ONE, _flipping(int(exact)))


def _kept_twice() -> Subject:
    return of_table("planted", ONE, _flipping(randomized_response(ONE).table[0][1] ** 2 // TOTAL))


def _one_value_more_honest() -> Subject:
    first, *others = k_randomized_response(ONE, 4).table
    return of_table(
        "planted", ONE, DiscreteChannel(((first[0] + 3, first[1] - 1, first[2] - 1, first[3] - 1), *others))
    )


def _a_tie_is_an_answer_of_its_own() -> Subject:
    table = randomized_response(ONE).table
    return of_table("planted", ONE, DiscreteChannel((*table, (TOTAL - table[0][1] // 2, table[0][1] // 2))))


def few_bits_of_the_coin() -> Subject:
    """Only the top 16 bits are compared, with thresholds cut down to them."""
    flip = randomized_response(ONE).table[0][1] >> 47 << 47
    return of_table("planted", ONE, _flipping(flip))


# Numbers


def _number(name: str, dimension: int = 1, epsilon: Decimal = ONE, **more: Decimal) -> Any:
    given = {"epsilon": epsilon, "threshold": ONE, "dimension": Decimal(dimension), **more}
    return numeric_channel(name, given)


def _of_scalar(name: str, change: Callable[[Any], Any]) -> Subject:
    channel = _number(name)
    assert isinstance(channel, Coordinates)
    return of_channel("planted", ONE, replace(channel, scalar=change(channel.scalar)))


def _leans_more(law: Duchi) -> Duchi:
    return Duchi(law.lean + (1 << 10))


def _hits_more(law: Piecewise) -> Piecewise:
    return replace(law, hit=law.hit + (1 << 40))


def cube_as_first_printed() -> Subject:
    """Even dimension, ties in both halves: the level is log(e + 1)."""
    channel = _number("duchi-cube", 2)
    assert isinstance(channel, DuchiCube)
    return of_channel("planted", ONE, replace(channel, hit=int(TOTAL * 0.7310585786)))


def _of_noise(share: float) -> Subject:
    channel = _number("gaussian", 2, Decimal(4), delta=Decimal("1e-5"))
    assert isinstance(channel, GaussianNoise)
    return of_channel("planted", Decimal(4), replace(channel, stddev=channel.stddev * share))


def _a_wrong_cap() -> Subject:
    channel = _number("priv-unit", 3)
    assert isinstance(channel, PrivUnit)
    return of_channel("planted", ONE, replace(channel, hit=channel.hit + (TOTAL - channel.hit) // 2))


def _votes_too_loud() -> Subject:
    channel = _number("unary", 2)
    assert isinstance(channel, Unary)
    return of_channel("planted", ONE, replace(channel, other=channel.other - 1))


# Clients


@dataclass(frozen=True)
class _WithoutTies(GivenLabels):
    """Rows with a tie are not sent."""

    def rows(self, task: Task) -> Runs:
        return Runs.of([row for row in range(task.n) if self.values[row] != TIE])


@dataclass(frozen=True)
class _FailingForTies(GivenLabels):
    """A tie is an error."""

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        if TIE in self.values:
            raise ValueError("expected no ties")
        return super().labels(task, repetition, rows)


def _of_source(kind: type[GivenLabels]) -> Subject:
    subject = client.of_client("ties", ONE)
    planted = {name: kind(source.values) for name, source in subject.inputs.items()}
    return client.of_sources("planted", ONE, planted)


class Shared(GivenDraws):
    """One coin for all rows."""

    def _first(self, rows: Any) -> NDArray[np.uint64]:
        return np.repeat(self.words[:1, 0], len(rows))


def _one_coin_for_all_rows() -> Subject:
    sound = client.of_client("labels", ONE)
    return client.of_sources("planted", ONE, sound.inputs, Shared)


class Forgetting(DiskLedger):
    """A ledger that is made anew each time it is opened."""

    def __init__(self, path: Path, timeout: float = 60.0, start: bool = True) -> None:
        path.unlink(missing_ok=True)
        super().__init__(path, timeout)


# Curators


def _of_release(change: Callable[[central.Releasing], central.Releasing], name: str = "gaussian") -> Subject:
    subject = central.of_records(name, ARMS[name], Decimal(4))
    return replace(subject, inputs={key: change(held) for key, held in subject.inputs.items()}, pace=1.0)


ARMS: dict[str, dict[str, Any]] = {
    "gaussian": {"mechanism": "gaussian", "estimator": "mean", "threshold": ONE},
    "peeling-pure": {
        "mechanism": "peeling-pure",
        "estimator": "hard-thresholding",
        "sparsity": ONE,
        "rounds": ONE,
        "step": ONE,
        "threshold": ONE,
    },
}


def sensitivity_of_one_coordinate(held: central.Releasing) -> central.Releasing:
    """A release with a twelfth of its squared sensitivity."""
    assert isinstance(held.request, ReleaseRequest)
    return replace(held, request=replace(held.request, sensitivity_squared=held.request.sensitivity_squared // 12))


def _not_clipped(held: central.Releasing) -> central.Releasing:
    return replace(held, exact=tuple(4 * value for value in held.exact))


def _moved_less(held: central.Releasing) -> central.Releasing:
    assert isinstance(held.request, ChoiceRequest)
    return replace(held, request=replace(held.request, moved=max(1, held.request.moved // 4)))


def _values_without_noise() -> Subject:
    subject = central.of_records("peeling-pure", ARMS["peeling-pure"], ONE)

    def draw(held: central.Releasing, count: int, coins: AuditCoins) -> Floats:
        assert isinstance(held.request, ChoiceRequest)
        chooser = replace(held.request.chooser, value_scale=1)
        each = (chooser.choose(held.exact, coins.randbits) for _ in range(count))
        return np.array([(*places, *values) for places, values in each], dtype=np.float64)

    return replace(subject, draw=draw)


def _sums_without_noise() -> Subject:
    def plain(held: central.Releasing, count: int, coins: AuditCoins) -> Floats:
        return np.array([held.exact] * count, dtype=np.float64)

    return replace(of_sums(ONE, plain), pace=1.0)


def _one_sided(law: Laplace) -> Laplace:
    class Positive(Laplace):
        def report(self, t: Floats, words: NDArray[np.uint64]) -> Floats:
            return t + np.abs(super().report(t, words) - t)

    return Positive(law.scale)


BUGS: dict[str, Callable[[], Subject]] = {
    "a threshold is rounded down": _rounded_down,
    "a label is kept with p + (1 - p) p": _kept_twice,
    "the table is that of 2 epsilon": lambda: of_table("planted", ONE, randomized_response(2 * ONE)),
    "one value is more honest by three coins": _one_value_more_honest,
    "a tie is an answer of its own": _a_tie_is_an_answer_of_its_own,
    "a third value shares the flips of two": lambda: of_table("planted", ONE, k_randomized_response(ONE + _LOG_2, 3)),
    "16 bits of the coin": few_bits_of_the_coin,
    "a lean of a few coins more": lambda: _of_scalar("duchi", _leans_more),
    "a window that is hit too often": lambda: _of_scalar("piecewise", _hits_more),
    "discrete noise of another level": lambda: _of_scalar(
        "discrete-laplace", lambda _: discrete_laplace(Decimal("1.01"))
    ),
    "Laplace noise of sensitivity 1, not 2": lambda: _of_scalar("laplace", lambda law: Laplace(law.scale / 2)),
    "Laplace noise on one side": lambda: _of_scalar("laplace", _one_sided),
    "the cube as first printed": cube_as_first_printed,
    "a quarter of the Gaussian noise": lambda: _of_noise(0.25),
    "a tenth less Gaussian noise": lambda: _of_noise(0.9),
    "a cap that is hit too often": _a_wrong_cap,
    "a vote that is louder by one coin": _votes_too_loud,
    "rows with ties are not sent": lambda: _of_source(_WithoutTies),
    "a tie is refused": lambda: _of_source(_FailingForTies),
    "one coin for all rows": _one_coin_for_all_rows,
    "a ledger that forgets": lambda: of_tasks(ONE, Forgetting),
    "the sensitivity of one coordinate": lambda: _of_release(sensitivity_of_one_coordinate),
    "records are not clipped": lambda: _of_release(_not_clipped),
    "scores move further than they may": lambda: _of_release(_moved_less, "peeling-pure"),
    "values without noise": _values_without_noise,
    "the last bits of doubles": lambda: replace(of_selection("peeling-pure", ONE), reals=False),
    "sums without noise, in one run": _sums_without_noise,
}


def caught(bug: str) -> tuple[Finding, float]:
    """What the audit finds of a lie, and the CPU seconds that it took, the making of the subject among them."""
    start = time.process_time()
    confidence = 0.999 if "one run" in bug else 1 - 1e-9  # m delta hides what is surer
    found = audit(BUGS[bug](), DRAWS.get(bug, 8000), confidence, seed=2)
    return found, time.process_time() - start


def _excess(least: float) -> str:
    return f"1 + {least - 1:.1g}" if least > 1 else "1, and less than 1e-15 more"


def main() -> None:
    """Print the table of docs/AUDIT.md."""
    print("| planted | by | claimed ε | found | draws | CPU, s |\n|---|---|---:|---:|---:|---:|")
    for bug in BUGS:
        found, seconds = caught(bug)
        least = max(found.found, found.normal or 0.0)
        told = "infinite" if least == float("inf") else f"{least:.4f}" if least > 1.00005 else _excess(least)
        verdict = "" if found.broken else " NOT FOUND"
        cells = (bug, found.way, found.claim.epsilon, told + verdict, found.draws or "-", f"{seconds:.1f}")
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
