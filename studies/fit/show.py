"""A fit on the holder's terminal. Names of items are shown here and nowhere else."""

import json
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from protocol.counting import counted
from protocol.messages import Coins, Ties
from protocol.privacy import Unit
from protocol.trust import SIGHT, Trust
from protocol.warned import spoken
from server.outcome import asked_rows, flipped
from studies.fit.round import Fit
from studies.terminal import print_line, print_table, rounded_up

SAME = 1e-9  # far below what a table shows, far above where solvers stop
SHARED = "Items of one rank have equal scores; the next rank counts them."


@dataclass(frozen=True)
class Line:
    """One item of a ranking; low and high are None where no interval is valid. Equal estimates share a rank."""

    rank: int
    item: str
    estimate: float
    low: float | None
    high: float | None
    comparisons: int


def ranking(found: Fit) -> list[Line]:
    """Items by falling estimate; comparisons are those that were asked for, whatever their answers."""
    outcome, table, estimates = found.outcome, found.table, scores(found)
    assert found.task.rows is not None
    asked = table.pairs[found.task.rows.numbers()]
    comparisons = np.bincount(asked[asked >= 0], minlength=len(table.items))
    ranks = places(estimates).tolist()
    order = sorted(range(len(table.items)), key=lambda item: (ranks[item], table.items[item]))
    # An item that is described by features has no interval of its own: that of its score needs all covariances.
    low, high = (None, None) if table.features is not None else (outcome.ci_low, outcome.ci_high)
    return [
        Line(
            rank=ranks[item],
            item=table.items[item],
            estimate=float(estimates[item]),
            low=None if low is None else float(low[item]),
            high=None if high is None else float(high[item]),
            comparisons=int(comparisons[item]),
        )
        for item in order
    ]


def places(estimates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Ranks, 1 for the highest score; equal scores share the better one, and the next lower score counts them: 1, 1, 3.

    Scores are equal that no solver tells apart.
    """
    order = np.argsort(-estimates, kind="stable")
    lower = np.append(True, -np.diff(estimates[order]) > SAME)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.maximum.accumulate(np.where(lower, np.arange(1, len(order) + 1), 1))
    return found


def scores(found: Fit) -> NDArray[np.float64]:
    """The estimate of each item: its own, or phi . theta where items are described by features."""
    theta, features = found.outcome.theta, found.table.features
    return theta if features is None else features @ theta


def coefficients(found: Fit) -> list[dict[str, object]]:
    """What a unit of each feature adds to a score, with its interval; nothing where items have a score each."""
    outcome, table = found.outcome, found.table
    if table.features is None:
        return []
    low, high = outcome.ci_low, outcome.ci_high
    return [
        {
            "feature": name,
            "estimate": float(outcome.theta[place]),
            "low": None if low is None else float(low[place]),
            "high": None if high is None else float(high[place]),
        }
        for place, name in enumerate(table.feature_names)
    ]


def show(found: Fit) -> None:
    """Print the ranking, the guarantee, and what the labels paid."""
    columns, lines = ("rank", "item", "estimate", "95 % interval", "comparisons"), ranking(found)
    print_table(columns, map(_cells, lines), left=["item"])
    if len({line.rank for line in lines}) < len(lines):
        print_line(SHARED)
    if weights := coefficients(found):
        cells = [
            (line["feature"], f"{line['estimate']:+.4g}", _interval(line["low"], line["high"])) for line in weights
        ]
        print_table(("feature", "estimate", "95 % interval"), cells, left=["feature"])
    for text in (facts(found), guarantee(found), *found.notes, cost(found)):
        print_line(text)
    for warning in found.warnings:
        print_line(spoken(warning), style="yellow")


def facts(found: Fit) -> str:
    """Counts of the file, all public, and how the estimate was made."""
    table, outcome = found.table, found.outcome
    ball = "no ball" if found.bound is None else f"ball of radius {float(found.bound):.4g}"
    capped, often = "", flipped(found.task)
    if found.request.cap:
        assert found.task.rows is not None
        capped = f", of which {found.task.rows.count} count: at most {found.request.cap} of each labeler"
    return (
        f"{counted(len(table.pairs), 'row')}, {counted(table.label_count, 'label')} of "
        f"{counted(len(table.labelers), 'labeler')}{capped}; "
        f"{outcome.arm.name}, {ball}{often and f'; {often}'}"
    )


def guarantee(found: Fit) -> str:
    """The claim with its level, unit, neighbours and coins; or that there is none."""
    outcome = found.outcome
    if outcome.claim is None:
        return f"Guarantee: none. The server sees {SIGHT[found.request.trust].server}."
    # A share of epsilon has forty digits; what is said has twelve, and is no less.
    claim = replace(outcome.claim, epsilon=Decimal(rounded_up(outcome.claim.epsilon)))
    if outcome.coins == Coins.ADDRESSED.label:
        return f"Guarantee: none, coins are addressed. With the system's coins: {claim}{_public_ties(found)}"
    parts = [f"Guarantee: {claim}{_public_ties(found)}"]
    if outcome.computed_epsilon is not None:
        parts.append(f"level of the executed table: {rounded_up(outcome.computed_epsilon)}")
    parts.append(f"coins: {outcome.coins}")
    return "; ".join([*parts, *_counted_on(found)])


def _counted_on(found: Fit) -> list[str]:
    """What a claim by noise in shares relies on."""
    if (honest := _share(found, "honest")) is None:
        return []
    return [f"its noise counts on {honest} of {asked_rows(found.task)} rows whose shares of it nobody else knows"]


def _share(found: Fit, name: str) -> int | None:
    """How many rows a sum under masks counts on; None in other trust models."""
    rows = found.task.menu[0].get(name)
    return None if found.request.trust is not Trust.DISTRIBUTED or rows is None else int(rows)


def _public_ties(found: Fit) -> str:
    """What neighbours have in common where ties are left out, which the claim by itself does not say."""
    return ", both with the same ties, which are public" if found.request.ties is Ties.DROP else ""


def cost(found: Fit) -> str:
    """What this run added to the ledger."""
    request = found.request
    if not request.budgeted:
        return "Nothing is charged or kept."
    if found.charged is None:
        return (
            "What labels paid is in the ledgers of their nodes; a label that paid before answers the same for nothing."
        )
    ledger = request.state / "ledger.sqlite"
    if not found.charged:
        return f"Nothing charged: the labels paid for these answers before. Ledger: {ledger}"
    level = _level(request.epsilon, request.delta)
    each = f"each labeler at most {level}" if request.unit is Unit.LABELER else f"{level} each"
    return f"Charged: {counted(found.charged, 'label')}, {each}. Ledger: {ledger}"


def as_json(found: Fit) -> str:
    """Everything that `show` shows, as JSON."""
    outcome, table, request = found.outcome, found.table, found.request
    claim = outcome.claim
    content = {
        "trust": request.trust.label,
        "mechanism": outcome.arm.mechanism,
        "estimator": outcome.arm.estimator,
        "bound": None if found.bound is None else float(found.bound),
        "claimed_epsilon": None if claim is None else float(claim.epsilon),
        "claimed_delta": None if claim is None else float(claim.delta),
        "computed_epsilon": None if outcome.computed_epsilon is None else float(outcome.computed_epsilon),
        "unit": None if claim is None else claim.unit.label,
        "neighbours": None if claim is None else claim.neighbours + _public_ties(found),
        "coins": outcome.coins,
        "guarantee": guarantee(found),
        "least_rows": _share(found, "least"),
        "honest_rows": _share(found, "honest"),
        "rows": len(table.pairs),
        "labels": table.label_count,
        "labelers": len(table.labelers),
        "charged_labels": found.charged if request.budgeted else 0,
        "state": str(request.state) if request.budgeted and found.charged is not None else None,
        "hit_boundary": outcome.hit_boundary,
        "warnings": list(found.warnings),
        "notes": list(found.notes),
        "ties": request.ties.name.lower(),
        "cap": request.cap or None,
        "coefficients": coefficients(found),
        "ranking": [vars(line) for line in ranking(found)],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _cells(line: Line) -> tuple[object, ...]:
    return line.rank, line.item, f"{line.estimate:+.3f}", _interval(line.low, line.high), line.comparisons


def _interval(low: object, high: object) -> str:
    return "-" if low is None else f"{low:+.3f} .. {high:+.3f}"


def _level(epsilon: Decimal | None, delta: Decimal | None) -> str:
    assert epsilon is not None
    text = f"epsilon = {rounded_up(epsilon)}"
    return text if delta is None else f"{text}, delta = {delta.normalize()}"
