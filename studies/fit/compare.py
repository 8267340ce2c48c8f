"""Clear, central, distributed and local side by side: what each trust model costs on a file. Nothing is private."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from client.labels import Labels
from client.sources.choice_table import ChoiceTable
from client.sources.table import Table
from protocol.coins import Address, Stream, words
from protocol.counting import counted
from protocol.decimals import canonical
from protocol.messages import Ties
from protocol.privacy import Unit
from protocol.terms import TIE
from protocol.trust import Trust
from server.estimators.newton import EstimationError
from studies.fit.request import AUTO, BALL, SLACK, WAYS, Request
from studies.fit.round import Fit, fit
from studies.fit.show import SHARED, guarantee, places, scores
from studies.terminal import print_line, print_table
from studies.told import told

HELD_OUT = 5  # one in so many
TRUSTS = (Trust.CLEAR, Trust.CENTRAL, Trust.DISTRIBUTED, Trust.LOCAL)
NOT_PRIVATE = (
    "This is not private: it uses clear labels, also where it says what a claim would be, and shows how often held-out "
    "answers are guessed. It protects nobody and charges nothing."
)


@dataclass(frozen=True, eq=False)
class Row:
    """One trust model: its fit of all rows, and how it does on what it was not given.

    accuracy: share of held-out winners guessed by a fit of the rest, equal scores counting half, ties and missing
    winners left out; NaN where nothing is left. correlation: Spearman's, of item scores with those of the clear fit.
    """

    found: Fit
    accuracy: float
    correlation: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rows in the order of `TRUSTS`; `held_out` labels were kept from some fits, and `repeated` rows from all.

    A repeated row is about a label that an earlier row stands for.
    """

    rows: tuple[Row, ...]
    seed: int
    held_out: int
    by_labeler: bool
    repeated: int


def compare(request: Request, table: Table, by_labeler: bool) -> Comparison:
    """Fit the file under every trust model with addressed coins, on all labels, and on four fifths for the rest.

    A label counts once in all of them, by its first row: a claim does not count the others. Which labels are held out
    depends on the seed and on public facts only: those of whole labelers, or single ones. Clear fits have the ball of
    the others, so that separable parts of a file do not end it.
    Raises what `studies.fit.round.fit` raises.
    """
    seed = request.seed or 0
    repeated = len(table.pairs) - table.label_count
    table = replace(subset(table, table.first), public=True)
    held = held_out(table, seed, by_labeler)
    train, test = subset(table, ~held), subset(table, held)
    clear: NDArray[np.float64] | None = None
    rows = []
    for trust in TRUSTS:
        asked = asked_of(request, trust, seed)
        found = fit(asked, table)
        estimates = scores(found)
        clear = estimates if clear is None else clear
        rows.append(Row(found, accuracy(scores(fit(asked, train)), test), spearman(estimates, clear)))
    return Comparison(tuple(rows), seed, int(held.sum()), by_labeler, repeated)


def asked_of(request: Request, trust: Trust, seed: int) -> Request:
    """The request under one trust model, with public data and addressed coins."""
    clear, shares = trust is Trust.CLEAR, trust is Trust.DISTRIBUTED
    return replace(
        request,
        trust=trust,
        epsilon=None if clear else request.epsilon,
        delta=request.delta if trust in SLACK else None,
        estimator=request.estimator if trust is Trust.LOCAL else WAYS[trust][1][0],
        mechanism=request.mechanism if trust is Trust.LOCAL else "",
        public=True,
        seed=seed,
        ties=_ties(request.ties, trust),
        unit=Unit.LABEL if clear else request.unit,
        cap=0 if clear else request.cap,
        bound=BALL if request.bound == AUTO else request.bound,
        survivors=request.survivors if shares else None,
        honest=request.honest if shares else None,
    )


def _ties(asked: Ties, trust: Trust) -> Ties:
    """What has the same mean in each trust model: half a win each in place of coins in clear, and of what only local
    reports can do.
    """
    exact = asked is Ties.RANDOMIZED and trust is not Trust.LOCAL
    return Ties.HALF if exact or (asked is Ties.COIN and trust is Trust.CLEAR) else asked


def held_out(table: Table, seed: int, by_labeler: bool, one_in: int = HELD_OUT) -> NDArray[np.bool_]:
    """Whether a row is held out: about one in `one_in` labelers or labels, never all nor none, from addressed words.

    Raises EstimationError where there is nothing to split.
    """
    if by_labeler:
        units = table.owners
    else:
        _, units = np.unique(table.identities.array(), return_inverse=True)
    count = int(units.max()) + 1
    if count < 2:
        raise EstimationError(
            f"expected at least two {'labelers' if by_labeler else 'labels'} to hold one out, got {count}"
        )
    drawn = words(Address(seed, Stream.COHORT, count), 0, count)
    chosen = np.zeros(count, dtype=np.bool_)
    chosen[np.argsort(drawn, kind="stable")[: max(1, count // one_in)]] = True
    held: NDArray[np.bool_] = chosen[units]
    return held


def subset(table: Table, kept: NDArray[np.bool_]) -> Table:
    """Some rows of a file as a file of its own, about the same items: of each label all rows, or its first."""
    places = np.flatnonzero(kept)
    return replace(
        table,
        rows_held=np.arange(len(places)),
        pairs=table.pairs[places],
        owners=table.owners[places],
        values=Labels(table.values.reveal()[places]),
        missing=Labels(table.missing.reveal()[places]),
        identities=table.identities.at(places),
        first=table.first[places],
    )


def accuracy(estimates: NDArray[np.float64], test: Table) -> float:
    """Share of winners whom the scores prefer; of several equal scores each counts its part. NaN without a winner."""
    values = test.values.reveal()
    if isinstance(test, ChoiceTable):
        known = test.missing.reveal() == 0
        held = np.where(test.pairs >= 0, estimates[test.pairs], -np.inf)[known]
        best = held == held.max(axis=1, keepdims=True)
        hit = best[np.arange(len(held)), values[known]] / best.sum(axis=1)
        return float(hit.mean()) if known.any() else math.nan
    known = (values != TIE) & (test.missing.reveal() == 0)
    margin = estimates[test.pairs[known, 1]] - estimates[test.pairs[known, 0]]
    signs = np.where(values[known] == 1, 1.0, -1.0)
    return float((0.5 + 0.5 * np.sign(margin * signs)).mean()) if known.any() else math.nan


def spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Correlation of ranks, ties in the middle; NaN where all scores of one side are equal."""
    ranks = [_ranks(one), _ranks(other)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return math.nan
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks: NDArray[np.float64] = middle[place]
    return ranks


def show_comparison(found: Comparison) -> None:
    """Print scores side by side, what they are worth, and that none of it is private."""
    _print_not_private()
    estimates: list[NDArray[np.float64]] = [scores(row.found) for row in found.rows]
    table = found.rows[0].found.table
    ranks = [places(values) for values in estimates]
    order = sorted(range(len(table.items)), key=lambda item: (ranks[0][item], table.items[item]))
    cells = [
        (table.items[item], *(f"{v[item]:+.3f} ({p[item]})" for v, p in zip(estimates, ranks, strict=True)))
        for item in order
    ]
    print_table(("item", *(f"{trust.label} (rank)" for trust in TRUSTS)), cells, left=["item"])
    if any(len(np.unique(each)) < len(each) for each in ranks):
        print_line(SHARED)
    what = "labelers" if found.by_labeler else "labels"
    lines = [
        (row.found.request.trust.label, _number(row.accuracy), _number(row.correlation), guarantee(row.found))
        for row in found.rows
    ]
    print_table(("trust", "accuracy", "rank correlation", "guarantee"), lines, left=["trust", "guarantee"])
    print_line(
        f"accuracy: winners guessed in {counted(found.held_out, 'held-out label')} of one in {HELD_OUT} {what}; rank "
        f"correlation: Spearman's, with clear. Coins and split: seed {found.seed}."
    )
    if found.repeated:
        print_line(f"A label counts once, by its first row. Left out: {counted(found.repeated, 'row')}.")
    for said in told((row.found.warnings for row in found.rows), "fits"):
        print_line(said, style="yellow")
    _print_not_private()


def comparison_as_json(found: Comparison) -> str:
    """What `show_comparison` shows, as JSON that says so."""
    table = found.rows[0].found.table
    request = found.rows[-1].found.request
    content = {
        "private": False,
        "note": NOT_PRIVATE,
        "epsilon": None if request.epsilon is None else canonical(request.epsilon),
        "unit": request.unit.label,
        "seed": found.seed,
        "held_out_labels": found.held_out,
        "repeated_rows": found.repeated,
        "held_out_by": "labelers" if found.by_labeler else "labels",
        "items": list(table.items),
        "trust": {
            row.found.request.trust.label: {
                "scores": scores(row.found).tolist(),
                "held_out_accuracy": None if math.isnan(row.accuracy) else row.accuracy,
                "rank_correlation": None if math.isnan(row.correlation) else row.correlation,
                "guarantee": guarantee(row.found),
                "warnings": list(row.found.warnings),
            }
            for row in found.rows
        },
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _print_not_private() -> None:
    print_line(NOT_PRIVATE, style="yellow")


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
