"""How long the rest of a run takes, from when its units were finished."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from protocol.study import Cell
from studies.parts import part_path, weight


def left(
    units: Sequence[Cell],
    finished: Mapping[Cell, float],
    begin: float,
    now: float,
    sessions: Sequence[Mapping[str, Any]],
) -> float | None:
    """Seconds until all `units` are finished; None where nothing says how fast they are.

    With w a unit's weight, r = sum of w over the units `finished` since `begin` (their times in seconds since 1970) /
    (last of them - begin), and what is left is sum of w over the others / r, less the time since the last. Where none
    is, r is that of earlier `sessions` of study.json.
    """
    rest = sum(weight(cell) for cell in units if cell not in finished)
    if not rest:
        return 0.0
    since = {cell: at for cell, at in finished.items() if at > begin}
    if since:
        last = max(since.values())
        took, work = last - begin, sum(map(weight, since))
    else:
        last = max(now, begin)
        took, work = _before(finished, sessions)
    return max(0.0, rest * took / work - max(0.0, now - last)) if work and took > 0 else None


def _before(finished: Mapping[Cell, float], sessions: Sequence[Mapping[str, Any]]) -> tuple[float, int]:
    """Seconds and work of earlier sessions."""
    weights = {part_path(Path(), cell).stem: weight(cell) for cell in finished}
    took = sum(float(session["seconds"]) for session in sessions)
    return took, sum(weights.get(name, 0) for session in sessions for name in session["unit_seconds"])
