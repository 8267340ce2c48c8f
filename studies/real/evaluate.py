"""One way to scores of real items, and how well they guess the answers of people who were kept out."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from client.sources.choice_table import ChoiceTable
from client.sources.table import Table
from protocol.messages import Ties
from protocol.privacy import Unit
from protocol.terms import TIE, share
from protocol.trust import Trust
from studies.fit.compare import HELD_OUT, accuracy, held_out, subset
from studies.fit.request import BALL, SLACK, Request
from studies.fit.round import fit
from studies.fit.show import scores
from studies.real.ways import Way

DELTA = Decimal("1e-5")


@dataclass(frozen=True)
class Claim:
    """A level, and what it protects: a label (for rankings, all labels of one), or a labeler with a cap."""

    epsilon: Decimal
    delta: Decimal = DELTA
    unit: Unit = Unit.LABEL
    cap: int = 0


@dataclass(frozen=True)
class Guessed:
    """Of held-out answers: the share guessed, and the mean of -log of the probability that was given to them.

    `warnings`: what may mislead of the fit that guessed.
    """

    accuracy: float
    log_loss: float
    warnings: tuple[str, ...] = ()


def request_of(way: Way, claim: Claim, table: Table, seed: int, comparisons: int = 0) -> Request:
    """A fit with public data and addressed coins, on a ball, ties as fair coins (half a win each in clear).

    Where a ranking answers several `comparisons`, they share the claim for a label.
    """
    clear, choices = way.trust is Trust.CLEAR, isinstance(table, ChoiceTable)
    epsilon = claim.epsilon
    if comparisons > 1 and claim.unit is Unit.LABEL:
        epsilon = share(epsilon, comparisons)
    return Request(
        path=table.path,
        trust=way.trust,
        epsilon=None if clear else epsilon,
        delta=claim.delta if way.trust in SLACK else None,
        bound=BALL,
        estimator=way.estimator,
        state=Path(),
        public=True,
        seed=seed,
        ties=Ties.NONE if choices else Ties.HALF if clear else Ties.COIN,
        unit=Unit.LABEL if clear else claim.unit,
        cap=0 if clear else claim.cap,
        kind="choice" if choices else "pairwise",
        comparisons=comparisons,
        options=way.options,
        mechanism=way.mechanism,
    )


def split(table: Table, seed: int, by_labeler: bool = True, one_in: int = HELD_OUT) -> tuple[Table, Table]:
    """The answers of four in five labelers, and those of the rest; a label counts once, by its first row."""
    table = subset(table, table.first)
    held = held_out(table, seed, by_labeler, one_in)
    return subset(table, ~held), subset(table, held)


def guessed(way: Way, claim: Claim, seed: int, train: Table, test: Table, comparisons: int = 0) -> Guessed:
    """Fit one part, and guess the other."""
    fitted = fit(request_of(way, claim, train, seed, comparisons), train)
    estimates = scores(fitted)
    return Guessed(accuracy(estimates, test), log_loss(estimates, test), fitted.warnings)


def log_loss(estimates: NDArray[np.float64], test: Table) -> float:
    """Mean of -log P(answer) by the scores, ties and missing answers left out; log 2 is guessing between two."""
    values = test.values.reveal()
    known = (test.missing.reveal() == 0) & (isinstance(test, ChoiceTable) | (values != TIE))
    held = np.where(test.pairs >= 0, estimates[test.pairs], -np.inf)[known]
    if not known.any():
        return math.nan
    return float((logsumexp(held, axis=1) - held[np.arange(len(held)), values[known]]).mean())


def mean(values: Sequence[float]) -> str:
    """Mean and its standard error."""
    return f"{statistics.fmean(values):.3f} ± {statistics.stdev(values) / math.sqrt(len(values)):.3f}"


def line(cells: Iterable[str], found: Sequence[Guessed]) -> str:
    """A line of a Markdown table."""
    means = [mean([one.accuracy for one in found]), mean([one.log_loss for one in found])]
    return "| " + " | ".join((*cells, *means)) + " |"
