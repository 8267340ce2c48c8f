"""Words of a look at a ledger: what its claims are about, which rounds, and one line a run."""

from collections.abc import Iterable, Sequence
from typing import Any

from protocol.privacy import Unit

# What is counted, and whom it belongs to, by the units of a ledger's claims; of a holder's, what it has is not counted.
NAMES = (
    (frozenset({Unit.LABEL, Unit.LABELER}), ("label", "labeler")),
    (frozenset({Unit.HOLDER}), (None, "holder")),
    (frozenset({Unit.RECORD, Unit.HOLDER}), ("record", "holder")),
)


def names_of(units: Iterable[Unit]) -> tuple[str | None, str]:
    """What a ledger counts, and whose it is: rows of an owner where it has claims of both kinds."""
    used = frozenset(units)
    found = next((names for known, names in NAMES if used <= known), None)
    return found or ("row", "owner")


def spans(numbers: Sequence[int]) -> str | None:
    """Rising numbers in few words; None for none.

    >>> spans([0, 1, 2, 3, 7, 9, 10])
    '0 to 3, 7, 9 to 10'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join(" to ".join(map(str, span)) for span in found) or None


def by_run(releases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line a run: releases of T rounds that follow each other and differ in what a round may, at most T of them."""
    runs: list[list[dict[str, Any]]] = []
    for one in releases:
        same = runs and all(one[key] == runs[-1][0][key] for key in ("mechanism", "epsilon", "delta", "unit", "rounds"))
        if same and one["rounds"] and len(runs[-1]) < one["rounds"]:
            runs[-1].append(one)
        else:
            runs.append([one])
    return [
        run[0] | {"rounds": f"{len(run)} of {run[0]['rounds']}"} if run[0]["rounds"] is not None else run[0]
        for run in runs
    ]
