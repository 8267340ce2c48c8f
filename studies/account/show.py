"""An account on a terminal, and as JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from protocol.counting import counted
from protocol.decimals import canonical
from protocol.study import Study
from studies.account.asked import Claim
from studies.terminal import print_entries, print_line, small

COLUMNS = {  # of `studies.account.figures.Figures`
    "exact": "exact",
    "zcdp": "zCDP",
    "zcdp_simple": "zCDP simple",
    "renyi": "Rényi",
    "numerical": "PLD",
    "basic": "basic",
    "advanced": "advanced",
    "printed": "printed",
}
ABOVE, NONE = ">1000", "-"


def show(study: Study, claims: Sequence[Claim]) -> None:
    """For each arm its guarantee in words, and a table of its levels."""
    print_line(f"{study.name}: what one row pays, of {counted(min(study.grid.n), 'row', ',')}")
    for arm in study.arms:
        own = [claim for claim in claims if claim.arm == arm]
        print_line("")
        print_line(f"{arm.name}: {'no claim' if not own else _who(own[0])}")
        if own:
            rows = [_row(claim) for claim in own]
            used = [name for name in rows[0] if any(row[name] != NONE for row in rows)]
            print_entries(used, [[row[name] for name in used] for row in rows], [])


def as_json(study: Study, claims: Sequence[Claim]) -> dict[str, Any]:
    """The same as plain values: levels as numbers, null where a way does not apply, ">1000" above 1000."""
    return {
        "study": study.name,
        "n": min(study.grid.n),
        "arms": [
            {
                "arm": arm.name,
                "trust": arm.trust_name,
                "mechanism": arm.mechanism,
                "estimator": arm.estimator,
                "levels": [_level(claim) for claim in own],
            }
            for arm, own in ((arm, list(own)) for arm, own in groupby(claims, key=lambda claim: claim.arm))
        ],
    }


def _level(claim: Claim) -> dict[str, Any]:
    stated = claim.guarantee
    return {
        "guarantee": str(stated),
        "epsilon": canonical(stated.epsilon),
        "delta": canonical(stated.delta),
        "unit": stated.unit.label,
        "neighbours": stated.neighbours,
        "tasks": claim.asked,
        "releases": len(claim.releases),
        "noise multiplier": claim.releases[0].multiplier,
        "level of a release": claim.releases[0].pure,
        "figures at delta": None if claim.delta is None else canonical(claim.delta),
        "figures": {
            name: ABOVE if value is not None and math.isinf(value) else value
            for name, value in asdict(claim.figures).items()
        },
    }


def _who(claim: Claim) -> str:
    return f"per {claim.guarantee.unit.label}; neighbours: {claim.guarantee.neighbours}"


def _row(claim: Claim) -> dict[str, str]:
    """Cells by their column; a column without any is not shown."""
    first, stated = claim.releases[0], claim.guarantee
    pure = not stated.delta and claim.delta is not None
    return {
        "epsilon": canonical(stated.epsilon),
        "delta": f"0, told at {small(claim.delta)}" if pure else small(stated.delta),
        "releases": f"{len(claim.releases)} of {claim.asked}",
        "multiplier": _rounded(first.multiplier),
        "level": _rounded(first.pure),
        **{title: _rounded(getattr(claim.figures, name)) for name, title in COLUMNS.items()},
    }


def _rounded(level: float | None) -> str:
    """Four digits, rounded up."""
    if level is None:
        return NONE
    if math.isinf(level):
        return ABOVE
    digits = 3 - math.floor(math.log10(level))
    return f"{math.ceil(level * 10**digits * (1 - 1e-12)) / 10**digits:.4g}"
