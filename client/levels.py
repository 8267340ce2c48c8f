"""Which mechanisms of a menu each row's labeler may answer through: by level, before any label is looked at."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from client.choice import Choice
from client.policy import Policy
from client.sources import Facts, Holdings
from protocol.messages import Task
from protocol.terms import claim_of

NO_BOUND = (None,)
Levels = tuple[Sequence[Decimal | None], NDArray[np.int64]]  # levels (None: no bound), and which one is a row's


class LevelExceeded(Exception):
    """The task offers nothing that every labeler asked for allows."""


def allowed(
    task: Task,
    choices: Sequence[Choice],
    policy: Policy,
    source: Holdings,
    facts: Facts | None,
    rows: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether a row may be answered through a choice, shape (choices, rows); the same for all rows of a labeler.

    A choice is allowed where its claim is at most the labeler's level. It depends on task, policy and on whose a row
    is, never on a label. Raises LevelExceeded where a row may be answered through nothing.
    """
    levels, which = _levels(task, policy, source, facts, rows)
    if levels == NO_BOUND:
        return np.broadcast_to(np.True_, (len(choices), len(rows)))
    claims = [claim_of(task, choice.mechanism) for choice in choices]
    table = [[claim is None or level is None or claim <= level for level in levels] for claim in claims]
    found = np.array(table, dtype=np.bool_)[:, which]
    if not found.any(axis=0).all():
        raise LevelExceeded("expected a level that every labeler asked for allows")
    return found


def _levels(task: Task, policy: Policy, source: Holdings, facts: Facts | None, rows: NDArray[np.int64]) -> Levels:
    if source.synthetic and len(task.menu) > 1:
        asked = source.levels(task, rows)
        if asked is not None:
            bound = policy.max_epsilon
            return [level if bound is None else min(level, bound) for level in asked[0]], asked[1]
    if facts is None or not policy.levels:
        return (policy.max_epsilon,), np.broadcast_to(np.int64(0), len(rows))
    return [policy.level_of(name) for name in facts.names], facts.labelers
