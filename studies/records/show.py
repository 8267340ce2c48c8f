"""An estimate from records on their holder's terminal: coefficients, the guarantee, what was charged."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np

from protocol.counting import counted
from protocol.decimals import canonical
from protocol.messages import Coins
from protocol.trust import SIGHT, Trust
from protocol.warned import spoken
from studies.fit.state import LEDGER
from studies.records.heavy import contributions
from studies.records.play import Estimated
from studies.records.request import Request
from studies.terminal import print_line, print_table, printable, rounded_up


def show(found: Estimated) -> None:
    """Print what was estimated. What bounds did to records is told of clear runs alone: it depends on records."""
    names, outcome = found.facts.names, found.outcome
    print_table(("feature", "estimate"), zip(names, map(_number, outcome.theta), strict=True), left=["feature"])
    for text in filter(None, (facts(found), found.accuracy, guarantee(found), cost(found), *clear_notes(found))):
        print_line(printable(text))
    for warning in found.warnings:
        print_line(spoken(printable(warning)), style="yellow")


def as_json(found: Estimated) -> str:
    """Everything that `show` shows, as JSON."""
    outcome, request, table = found.outcome, found.request, found.table
    claim = outcome.claim
    content = {
        "trust": request.trust.label,
        "model": found.facts.model,
        "mechanism": outcome.arm.mechanism,
        "estimator": outcome.arm.estimator,
        "options": {name: canonical(v) if isinstance(v, Decimal) else v for name, v in outcome.arm.options},
        "claimed_epsilon": None if claim is None else float(claim.epsilon),
        "claimed_delta": None if claim is None else float(claim.delta),
        "unit": None if claim is None else claim.unit.label,
        "neighbours": None if claim is None else claim.neighbours,
        "coins": outcome.coins,
        "guarantee": guarantee(found),
        "accuracy": found.accuracy,
        "rows": found.facts.rows,
        "dropped": None if table is None else table.dropped,
        "charged_rows": found.charged if request.budgeted else 0,
        "state": str(request.state) if request.budgeted and table is not None else None,
        "hit_boundary": outcome.hit_boundary,
        "warnings": list(found.warnings),
        "notes": list(clear_notes(found)),
        "estimate": dict(zip(found.facts.names, map(float, outcome.theta), strict=True)),
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def facts(found: Estimated) -> str:
    """Public counts, and how the estimate was made."""
    about = found.facts
    return f"{counted(about.rows, about.unit.label)}; model {about.model}; {found.outcome.arm.name}"


def guarantee(found: Estimated) -> str:
    """The claim with its level, unit, neighbours and coins; or that there is none."""
    outcome = found.outcome
    if outcome.claim is None:
        return f"Guarantee: none. The server sees {_seen(found.request)}."
    claim = replace(outcome.claim, epsilon=Decimal(rounded_up(outcome.claim.epsilon)))
    if outcome.coins == Coins.ADDRESSED.label:
        instead = "With the system's coins" if found.request.live else "This noise can only be simulated; it would be"
        return f"Guarantee: none, coins are addressed. {instead}: {claim}"
    return f"Guarantee: {claim}, over all rounds; coins: {outcome.coins}"


def _seen(request: Request) -> str:
    return "gradients of every record" if request.trust is Trust.CLEAR else SIGHT[request.trust].server


def cost(found: Estimated) -> str:
    """What this run added to the ledger."""
    request = found.request
    if not request.budgeted:
        return "Nothing is charged or kept."
    if found.charged is None:
        return "What was paid is in the ledgers of the nodes."
    ledger = request.state / LEDGER
    if not found.charged:
        return f"Nothing charged: these answers were paid for before. Ledger: {ledger}"
    often = found.charged > found.facts.rows
    rounds = ", some of them in several rounds, which add up to the claim" if often else ""
    return f"Charged: {counted(found.charged, found.facts.unit.label)}{rounds}. Ledger: {ledger}"


def clear_notes(found: Estimated) -> tuple[str, ...]:
    """Of a clear run: what a threshold would cut."""
    threshold = found.request.threshold
    if found.request.trust is not Trust.CLEAR or found.table is None or threshold is None:
        return ()
    each = contributions(found.table, found.outcome.theta)
    beyond = int((np.abs(each) > float(threshold)).any(axis=1).sum())
    cut = counted(beyond, found.table.columns.unit.label)
    return (f"For you alone: a threshold of {canonical(threshold)} would cut {cut}",)


def _number(value: float) -> str:
    return f"{value + 0.0:+.6g}"  # no -0
