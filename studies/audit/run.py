"""One audit: what is found of a subject, how sure that is, and what would have been found."""

import math
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from studies.audit.bound import ceiling, delta_bound, normal_bound, normal_would_find, would_find
from studies.audit.canary import SHARES, epsilon_of_guesses, guessed, guesses_would_find
from studies.audit.coins import AuditCoins
from studies.audit.exact import Ratio, largest_ratio
from studies.audit.search import FEWEST, search
from studies.audit.subject import Claim, Subject

EXACT, SAMPLED, ONE_RUN = "exact", "sampled", "one run"
MOST_TOLD = 4  # outputs of an event


@dataclass(frozen=True)
class Finding:
    """A lower bound `found` on the epsilon of a subject at its claim's delta, and how it was come by.

    `way` "exact": the supremum over all events, for the inputs tried; nothing is uncertain. "sampled": at least `found`
    with `confidence`, by an event that had `hits` of `draws` under one input and `others` under its neighbour.
    `detects`: the least epsilon that would have been found, in the easiest case with probability 0.99; `ceiling`: what
    no sample of this size could exceed. `delta` bounds the delta at the claimed epsilon. `broken`: the claim is false.
    `asked`: the level that was asked for, of which a claim may be a part. `normal`: the same bound where noise is known
    to be Gaussian, which needs no rare outputs; it refutes as well.
    """

    subject: str
    claim: Claim
    way: str
    found: float
    broken: bool
    inputs: tuple[str, str]
    event: str
    confidence: float
    delta: float
    detects: float
    ceiling: float
    draws: int
    hits: int
    others: int
    note: str
    asked: Decimal | None = None
    normal: float | None = None
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def verdict(self) -> str:
        """What it comes to, in words that promise no more than was done."""
        if self.broken:
            return "BROKEN"
        if self.way == EXACT:
            return "holds for these inputs"
        if self.ceiling <= float(self.claim.epsilon):
            return "too few draws to refute"
        return f"not refuted; {self.detects:.3g} would be" if math.isfinite(self.detects) else "not refuted"


def audit(subject: Subject, draws: int, confidence: float, seed: int) -> Finding:
    """Audit one subject: by its exact laws where it has them, else by draws.

    A sound subject is `broken` with probability at most 1 - confidence. Raises ValueError for numbers out of range, and
    what the subject's own code raises.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"expected 0 < confidence < 1, got {confidence}")
    wall, cpu = time.perf_counter(), time.process_time()
    if subject.laws is not None:
        made = _exactly(subject)
    else:
        made = (_sampled if subject.draw is not None else _one_run)(subject, draws, confidence, seed)
    return replace(made, asked=subject.asked, seconds=time.perf_counter() - wall, cpu=time.process_time() - cpu)


def _exactly(subject: Subject) -> Finding:
    assert subject.laws is not None
    laws, limit = subject.laws(), Fraction(subject.claim.delta)
    best: tuple[float, Ratio, str, str] | None = None
    broken = False
    for pair in subject.pairs:
        for more, less in (pair, pair[::-1]):
            found = largest_ratio(laws[more], laws[less], limit)
            broken |= found.exceeds(subject.claim.epsilon)
            if best is None or found.epsilon > best[0]:
                best = found.epsilon, found, more, less
    assert best is not None
    epsilon, ratio, more, less = best
    told = ", ".join(map(_told, ratio.event[:MOST_TOLD])) + (", ..." if len(ratio.event) > MOST_TOLD else "")
    return Finding(
        subject=subject.name,
        claim=subject.claim,
        way=EXACT,
        found=epsilon,
        broken=broken,
        inputs=(more, less),
        event=f"output in {{{told}}}",
        confidence=1.0,
        delta=0.0,
        detects=float(subject.claim.epsilon),
        ceiling=math.inf,
        draws=0,
        hits=0,
        others=0,
        note=subject.note,
    )


def _sampled(subject: Subject, draws: int, confidence: float, seed: int) -> Finding:
    epsilon, delta, alpha = float(subject.claim.epsilon), float(subject.claim.delta), 1 - confidence
    size = max(2 * FEWEST, int(draws * subject.pace))
    found = search(subject, size, alpha, AuditCoins(seed, subject.name))
    normal = normal_bound(found.hits, found.others, size, delta, alpha) if subject.normal else None
    detects = (would_find if normal is None else normal_would_find)(size, epsilon, delta, alpha)
    return Finding(
        subject=subject.name,
        claim=subject.claim,
        way=SAMPLED,
        found=found.epsilon,
        broken=max(found.epsilon, normal or 0.0) > epsilon,
        inputs=(found.more, found.less),
        event=found.event,
        confidence=confidence,
        delta=delta_bound(found.hits, found.others, size, epsilon, alpha),
        detects=detects,
        ceiling=math.inf if subject.normal else ceiling(size, delta, alpha),
        draws=size,
        hits=found.hits,
        others=found.others,
        note=subject.note,
        normal=normal,
    )


def _one_run(subject: Subject, draws: int, confidence: float, seed: int) -> Finding:
    """By canaries; `draws` counts them, `hits` right guesses, `others` wrong ones."""
    assert subject.run is not None
    epsilon, delta, alpha = float(subject.claim.epsilon), float(subject.claim.delta), 1 - confidence
    coins, scores = subject.run(max(1, int(draws * subject.pace)), AuditCoins(seed, subject.name))
    found = guessed(coins, scores, delta, alpha)
    more, less = subject.pairs[0]
    return Finding(
        subject=subject.name,
        claim=subject.claim,
        way=ONE_RUN,
        found=found.epsilon,
        broken=found.epsilon > epsilon,
        inputs=(more, less),
        event=f"{found.guesses} guesses about {found.canaries} canaries",
        confidence=confidence,
        delta=0.0,
        detects=guesses_would_find(len(coins), epsilon, delta, alpha),
        ceiling=epsilon_of_guesses(len(coins), len(coins), len(coins), delta, alpha / len(SHARES)),
        draws=len(coins),
        hits=found.right,
        others=found.guesses - found.right,
        note=subject.note,
    )


def _told(output: object) -> str:
    if not isinstance(output, bytes):
        return str(output)
    return output.hex() if len(output) <= 8 else f"{output[:6].hex()}... ({len(output)} bytes)"
