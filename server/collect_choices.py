"""Symbols about top choices, checked against what was asked: each is one of its own row's choices, or a set of them."""

import numpy as np
from numpy.typing import NDArray

from protocol.choice_features import row_sizes
from protocol.choice_law import ONE, SUBSET, choice_law
from protocol.messages import Report, Task
from protocol.trust import RANDOMIZED


def check_choices(task: Task, report: Report, rows: NDArray[np.int64], outcomes: int) -> None:
    """Raise ValueError for symbols of another shape or width, beyond a row's choices, or sets of another size."""
    values, local = report.payload.values, task.trust in RANDOMIZED
    sets = local and report.mechanism.name == SUBSET
    shape = (task.repetitions, len(rows), *([task.problem.choices] if sets else []))
    if values.shape != shape or (report.payload.outcomes == 2) != (outcomes == 2):
        raise ValueError(f"expected symbols of shape {shape}, {outcomes} of them, got {values.shape}")
    sizes = row_sizes(task.problem, 0, task.n)[rows]
    if sets:
        law = choice_law(task, report.mechanism)
        members = np.zeros(max(law.sizes) + 1, dtype=np.int64)
        members[list(law.sizes)] = [law.subsets(size).subset for size in law.sizes]
        beyond = np.arange(task.problem.choices) >= sizes[:, None]
        if (values * beyond).any() or (values.sum(axis=2, dtype=np.int64) != members[sizes]).any():
            raise ValueError("expected sets of the size that was asked for, of the choices of their rows")
        return
    limit = sizes if not local or report.mechanism.name == ONE else np.full(len(rows), 2)
    if (values >= limit).any():
        raise ValueError("expected symbols below the number of choices of their rows")
