"""What estimators of arrays share: names for a ledger, and a guarantee in words."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from protocol.decimals import canonical
from protocol.privacy import NEIGHBOURS, Unit
from protocol.trust import Trust


def checked_ids(ids: ArrayLike | None, rows: int, state: str | Path | None, random_state: Any) -> list[str]:
    """Names of rows, by place where none are given. Raises ValueError for ids that do not go with a ledger's folder."""
    if (ids is None) != (state is None):
        raise ValueError("expected ids exactly where a state folder keeps their ledger")
    if state is not None and random_state is not None:
        raise ValueError("expected no random_state beside a state folder: coins with addresses are not charged")
    names = [str(place) for place in range(rows)] if ids is None else [str(name) for name in np.asarray(ids).tolist()]
    if len(names) != rows:
        raise ValueError(f"expected {rows} ids, one a row, got {len(names)}")
    if len(set(names)) < len(names):
        raise ValueError(f"expected {len(names)} different ids, one a row, got {len(set(names))}")
    return names


def claim(trust: Trust, epsilon: Decimal | None, delta: Decimal | None, seeded: bool, unit: Unit) -> str:
    """A guarantee in words, or that there is none.

    >>> claim(Trust.LOCAL, Decimal(1), None, False, Unit.LABEL)
    'local, epsilon = 1; unit: label; neighbours: replace one label'
    """
    if epsilon is None:
        return "no guarantee: what is private was read as it is"
    if seeded:
        return "no guarantee: coins with addresses protect nobody"
    slack = "" if delta is None else f", delta = {canonical(delta)}"
    return f"{trust.label}, epsilon = {canonical(epsilon)}{slack}; unit: {unit.label}; neighbours: {NEIGHBOURS[unit]}"
