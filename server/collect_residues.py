"""Integers modulo M, which a task of the distributed model brings: whether they fit it, and their sum."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Kind, Report, Task
from protocol.noise.record_terms import sum_width
from protocol.secure.masks import bits_of


def residue_width(task: Task) -> int:
    """How many residues a repetition has: a sum over rows, or over records."""
    return sum_width(task) if task.problem.kind == "records" else task.problem.reduced_dimension


def check_residues(task: Task, report: Report) -> None:
    """Raise ValueError unless a report holds one vector of residues modulo the task's M for each repetition."""
    payload, shape = report.payload, (task.repetitions, residue_width(task))
    if payload.kind is not Kind.RESIDUES or payload.bits != bits_of(task.modulus):
        raise ValueError(f"expected residues of {bits_of(task.modulus)} bits, got {payload.kind.name}, {payload.bits}")
    if payload.values.shape != shape or payload.counts is not None:
        raise ValueError(f"expected residues of shape {shape}, got {payload.values.shape}")


def residue_sum(task: Task, reports: Sequence[Report]) -> NDArray[np.uint64]:
    """The sum of all, modulo M."""
    total = np.zeros((task.repetitions, residue_width(task)), dtype=np.uint64)
    for report in reports:
        total += report.payload.values.astype(np.uint64, copy=False)
    return total & np.uint64(task.modulus - 1)
