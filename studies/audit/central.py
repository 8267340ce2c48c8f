"""What a curator lets out: whole studies are played up to the release, which is then drawn again and again.

The task is the server's own, the exact sums come out of a client's bytes, and sensitivity and scale are what the
server's code makes of them: so that a mistake in any of them is one in the law.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context, Decimal
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from protocol.failure import RunFailed
from protocol.messages import Task
from protocol.privacy import Unit
from protocol.store import FeatureStore
from protocol.study import Cell
from server.accountant import composition
from server.choice_record import ChoiceRequest
from server.evidence import Server
from server.mechanisms.discrete_gaussian import sample_discrete_gaussian
from server.release import ReleaseLedger
from server.release_record import ReleaseRequest, in_real_units
from server.rounds import play
from studies.audit.coins import AuditCoins
from studies.audit.given import GivenLabels, GivenRecords
from studies.audit.subject import Claim, Floats, Subject, all_pairs
from studies.load import Loaded, build

SEED = 5  # of public features
DELTA = Decimal("1e-5")
ROWS = 8
PACE, WIDE_PACE = 0.2, 0.01  # noise in integers is slow, and so are choices among many
WIDE = 16
LABELS = {"all 0": (0,) * ROWS, "first 1": (1, *(0,) * (ROWS - 1)), "last 1": (*(0,) * (ROWS - 1), 1)}
NEAR = (("all 0", "first 1"), ("all 0", "last 1"))
FAR = 1e6  # beyond every threshold
ALIKE = np.tile([1.0, -1.0, 0.5], (ROWS, 1))
RECORDS = {
    "alike": ALIKE,
    "one at an end": np.vstack([ALIKE[1:], [[FAR, FAR, FAR]]]),
    "one at the other end": np.vstack([ALIKE[1:], [[-FAR, -FAR, -FAR]]]),
    "one missing": np.vstack([ALIKE[1:], [[0.0, 0.0, 0.0]]]),
}
_NOTE = "a study played up to the release, then the release's noise"
_LEDGER = "a study played up to the release, then server.release:ReleaseLedger in memory"


class Caught(Exception):
    """What would have been released."""

    def __init__(self, request: ReleaseRequest | ChoiceRequest, exact: list[int]) -> None:
        super().__init__("a release")
        self.request, self.exact = request, exact


class Catcher:
    """A curator that hands over what it is asked to release in place of releasing it."""

    name = b""

    def release(self, task: Task, request: ReleaseRequest, exact_sum: list[int]) -> NoReturn:
        """Raise `Caught`."""
        raise Caught(request, exact_sum)

    def choose(self, task: Task, request: ChoiceRequest, scores: list[int]) -> NoReturn:
        """Raise `Caught`."""
        raise Caught(request, scores)


@dataclass(frozen=True)
class Releasing:
    """A request, and what of the neighbour's differs in what is public of it: nothing, or a finding."""

    request: ReleaseRequest | ChoiceRequest
    exact: tuple[int, ...]


def of_labels(mechanism: str, epsilon: Decimal, delta: Decimal = DELTA, *, ledger: bool = False) -> Subject:
    """A mechanism of `server.mechanisms:CENTRAL` on sums of eight labels; with `ledger` every draw is committed."""
    arm = {"trust": "central", "mechanism": mechanism, "estimator": "mle"}
    problem = {"kind": "pairwise", "dimension": 4, "features": "gaussian", "sum_zero": True, "bound": Decimal(3)}
    loaded = study_of({**problem, "theta": [Decimal(0)] * 4}, arm, epsilon, delta)
    caught = {name: _caught(loaded, GivenLabels(values)) for name, values in LABELS.items()}
    found = subject_of(f"central/{mechanism}", Claim(epsilon, delta, "label"), caught, NEAR)
    if not ledger:
        return found
    return replace(found, name=f"{found.name}/ledger", note=_LEDGER, draw=_committed, pace=PACE / 5)


def of_releases(mechanism: str, epsilon: Decimal, releases: int = 2) -> Subject:
    """Several releases of one sum, each with its own noise, at what the accountant says that they come to."""
    part = Context(prec=28, rounding=ROUND_DOWN)
    one = of_labels(mechanism, part.divide(epsilon, releases), part.divide(DELTA, releases))
    held = one.inputs["all 0"]
    assert isinstance(held, Releasing) and isinstance(held.request, ReleaseRequest)
    with ReleaseLedger(None) as ledger:
        tasks = (replace(held.request, task=bytes([place])) for place in range(releases))
        total = composition([ledger.release(request, held.exact) for request in tasks], Unit.LABEL)
    assert total is not None and total.epsilon is not None and total.basic is not None

    def draw(held: Releasing, count: int, coins: AuditCoins) -> Floats:
        return np.hstack([drawn(held, count, coins) for _ in range(releases)])

    claim, note = Claim(total.epsilon, total.basic.delta or Decimal(0), "label"), "server.accountant:composition"
    return replace(one, name=f"central/{mechanism}/{releases} times", claim=claim, draw=draw, note=note)


def of_records(name: str, arm: Mapping[str, Any], epsilon: Decimal) -> Subject:
    """An arm of a study about eight records of three numbers, at its first release and that one's claim."""
    caught = {key: released_by(arm, epsilon, GivenRecords(values)) for key, values in RECORDS.items()}
    first = caught["alike"].request
    claim = Claim(first.epsilon, first.delta or Decimal(0), "record")  # a choice of a threshold has a part of the whole
    found = subject_of(f"records/{name}", claim, caught, all_pairs(RECORDS))
    return replace(found, pace=WIDE_PACE) if len(caught["alike"].exact) > WIDE else found


def released_by(arm: Mapping[str, Any], epsilon: Decimal, source: GivenRecords) -> Releasing:
    """The first release of a study of one arm about these records."""
    rows, dimension = source.features.shape
    problem = {"kind": "records", "model": "mean", "dimension": dimension}
    return _caught(study_of(problem, {"trust": "central", **arm}, epsilon, DELTA, rows), source, rows)


def study_of(
    problem: Mapping[str, Any], arm: Mapping[str, Any], epsilon: Decimal, delta: Decimal, rows: int = ROWS
) -> Loaded:
    """A study of one arm about so many rows, at one claim."""
    head = {"study": {"name": "audit", "seed": SEED, "repetitions": 1}, "problem": dict(problem), "arm": [dict(arm)]}
    if problem["kind"] == "records":
        head["records"] = {"features": "normal(1)", "tail": Decimal(1), "moment": Decimal(1)}
    return build({**head, "grid": {"n": [rows], "epsilon": [epsilon], "delta": [delta]}}, Path())


def _caught(loaded: Loaded, source: GivenLabels | GivenRecords, rows: int = ROWS) -> Releasing:
    """What a study asks its curator to release first, where clients hold these labels or records."""
    features = FeatureStore(SEED)
    node = Node(source, Policy.simulation(), MemoryLedger(), "addressed", features, seed=SEED)
    server = Server(features, SEED, Catcher())
    try:
        list(play(loaded.study, Cell(rows, 0, 1), lambda tasks: [answer(raw, node) for raw in tasks], server))
    except Caught as caught:
        return Releasing(caught.request, tuple(caught.exact))
    raise RunFailed(f"expected {loaded.study.arms[0].name} to release something, got nothing")


def subject_of(name: str, claim: Claim, caught: Mapping[str, Releasing], pairs: tuple[tuple[str, str], ...]) -> Subject:
    """Releases of neighbours; what is public of them has to be the same, but for the names of reports."""
    public = {replace(one.request, accepted=()) for one in caught.values()}
    if len(public) != 1:
        raise RunFailed(f"{name}: BROKEN: neighbours differ in what is public of a release: {public}")
    sums = all(isinstance(one.request, ReleaseRequest) for one in caught.values())
    return Subject(name, claim, caught, pairs, _NOTE, draw=drawn, pace=PACE, normal=sums)


def drawn(held: Releasing, count: int, coins: AuditCoins) -> Floats:
    """Released values, or places and values: noise of the scale that the ledger used, by the sampler that it uses."""
    request, exact = held.request, held.exact
    if isinstance(request, ReleaseRequest):
        with ReleaseLedger(None) as ledger:
            stddev = ledger.release(request, exact).stddev
        noise = sample_discrete_gaussian(stddev**2, count * len(exact), coins.randbits)
        sums = [value + z for value, z in zip(exact * count, noise, strict=True)]
        return np.array(sums, dtype=np.float64).reshape(count, -1) * 2.0**request.exponent
    chosen = (request.chooser.choose(exact, coins.randbits) for _ in range(count))
    return np.array([(*places, *(value * 2.0**request.exponent for value in values)) for places, values in chosen])


def _committed(held: Releasing, count: int, coins: AuditCoins) -> Floats:
    """The same as a ledger commits it, with the system's coins: one a repetition."""
    assert isinstance(held.request, ReleaseRequest)
    with ReleaseLedger(None) as ledger:
        asked = (replace(held.request, repetition=repetition) for repetition in range(count))
        return np.array([in_real_units(ledger.release(request, held.exact)) for request in asked])
