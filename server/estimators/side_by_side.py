"""Descents about the same rows in one pass: arms of a repetition differ in what was reported, not in the features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.terms import TIE
from server.estimators.base import Estimate, Options
from server.estimators.sgd import first_step, last_iterate
from server.estimators.workspace import Workspace
from server.kernels import Array
from server.kernels_lanes import descend_lanes
from server.kernels_vector import WIDTH

_BLOCK = 2048  # rows whose reports are brought side by side at a time
assert TIE == 2

Arm = tuple[Workspace, Options]


def together(asked: Sequence[tuple[str, Any, Options]]) -> dict[int, Estimate]:
    """Estimates of those among (estimator, what it sees, options) that share a pass, by their place in `asked`.

    These are last iterates of sgd and debiased-sgd in one ball, about rows that are the same array. Each has the bits
    that its estimator gives it alone. Raises what that raises.
    """
    passes: dict[tuple[int, float], list[int]] = {}
    for place, (name, seen, options) in enumerate(asked):
        if _descends(name, seen, options):
            passes.setdefault((id(seen.evidence.rows), options.bound), []).append(place)
    found: dict[int, Estimate] = {}
    for shared in passes.values():
        for first in range(0, len(shared), WIDTH):
            places = shared[first : first + WIDTH]
            if len(places) > 1:
                found |= dict(zip(places, side_by_side([asked[place][1:] for place in places]), strict=True))
    return found


def _descends(name: str, seen: Any, options: Options) -> bool:
    """Whether an estimate is the last iterate of one channel's reports; what else is wrong, its estimator says."""
    if name not in ("sgd", "debiased-sgd") or options.averaging != "last" or not isinstance(seen, Workspace):
        return False
    known = seen.evidence
    return known.symbols is not None and known.weights is None and (name != "sgd" or known.contrast == 1.0)


def side_by_side(arms: Sequence[Arm]) -> list[Estimate]:
    """`debiased_sgd` with the last iterate of at most WIDTH arms about the same rows, in the same ball."""
    rows, bound = arms[0][0].evidence.rows, arms[0][1].bound
    channels = np.repeat([[1.0], [0.0], [np.inf]], WIDTH, axis=1)  # a lane without an arm takes steps of length 0
    for lane, (known, options) in enumerate(arms):
        channels[:, lane] = known.contrast, known.flip, first_step(known, options) * known.contrast
    u, doubled = np.zeros((rows.shape[1], WIDTH)), np.zeros((_BLOCK, WIDTH), dtype=np.uint8)
    reports = [_twice(known) for known, _ in arms]
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        for lane, own in enumerate(reports):
            doubled[: len(part), lane] = own[start : start + _BLOCK]
        descend_lanes(part, doubled[: len(part)], channels, bound, float(start), u)
    found: list[Array] = list(np.ascontiguousarray(u.T))
    return [last_iterate(own, options) for own, (_, options) in zip(found, arms, strict=False)]


def _twice(known: Workspace) -> NDArray[np.uint8]:
    """2 y of every report: 0, 2, and 1 for a tie."""
    symbols = known.evidence.symbols
    assert symbols is not None
    one, both = np.uint8(1), np.uint8(3)
    return (symbols << one) & both | symbols >> one
