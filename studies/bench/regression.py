"""The regression check: ratios of this run against those of a recorded one, since seconds of two machines differ."""

from collections.abc import Sequence

from protocol.strict import StudyError
from studies.bench.row import OURS, Row

MARGIN = 2.0


def fallen(now: Sequence[Row], recorded: Sequence[Row], margin: float = MARGIN) -> list[str]:
    """What fell: ratios to a peer, or shares of a limit, below the recorded ones divided by `margin`, in words.

    Sides that one of the two runs lacks are not compared. Raises StudyError where a figure has two forms.
    """
    before = {(row.figure, row.side): row for row in recorded}
    words = []
    for row in now:
        old = before.get((row.figure, row.side))
        if old is None or row.role == OURS:
            continue
        if old.small != row.small:
            raise StudyError(f"expected {row.figure} in one form, got the small and the whole one: see --small")
        if row.ratio < old.ratio / margin:
            words.append(
                f"{row.figure}, {row.role} {row.side}: expected a ratio of at least {old.ratio:.3g} / {margin:g}, "
                f"got {row.ratio:.3g}"
            )
    return words


def compared(now: Sequence[Row], recorded: Sequence[Row]) -> int:
    """How many ratios both runs have."""
    before = {(row.figure, row.side) for row in recorded}
    return sum(row.role != OURS and (row.figure, row.side) in before for row in now)
