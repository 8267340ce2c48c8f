"""What estimators see of a sum that no single server or client knew without its noise."""

import math

import numpy as np
from numpy.typing import NDArray

from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Task
from protocol.noise.terms import Terms, terms_of
from protocol.terms import only_mechanism, row_exponent
from server.choice_designs import ChoiceDesigns
from server.choice_view import clear_view
from server.designs import Designs
from server.estimators.base import Evidence
from server.estimators.choice_base import ChoiceEvidence
from server.evidence import Heard, answered_rows

Floats = NDArray[np.float64]


def summed_evidence(heard: Heard, designs: Designs) -> Evidence:
    """Evidence of pairs: labels were summed on the task's coarse grid, and are explained by rows on a fine one."""
    terms, rows = terms_of(heard.task, only_mechanism(heard.task)), answered_rows(heard)
    place = (terms.radius, rows, None, heard.task.map)
    coarse, fine = designs.get(row_exponent(heard.task), *place), designs.get(_fine(heard.task, terms), *place)
    total, stddev = _sum(heard, designs.repetition, terms)
    half_sum = coarse.returned(total - 0.5 * coarse.total)
    return Evidence(
        *(fine.seen, fine.weights, None, half_sum, 1.0, 0.0, stddev, fine.features),
        noise_factor=fine.back,
        summed=coarse.seen,
    )


def summed_choices(heard: Heard, designs: ChoiceDesigns) -> ChoiceEvidence:
    """Evidence of top choices: the same."""
    terms, rows = terms_of(heard.task, only_mechanism(heard.task)), answered_rows(heard)
    coarse = designs.get(row_exponent(heard.task), terms.radius, rows)
    fine = designs.get(_fine(heard.task, terms), terms.radius, rows)
    total, stddev = _sum(heard, designs.repetition, terms)
    return ChoiceEvidence(fine.features, clear_view(), None, total, stddev, summed=coarse.blocks)


def _fine(task: Task, terms: Terms) -> int:
    """The grid of a central task about the same rows."""
    return exponent(task.n, row_bound(task.problem, terms.radius, task.map is not None))


def _sum(heard: Heard, repetition: int, terms: Terms) -> tuple[Floats, float]:
    """The noisy sum, and the standard deviation of its noise if all who answered added theirs, in real units."""
    sums = heard.collected.sums
    assert sums is not None
    variance = float(terms.shares.share * len(heard.collected.rows))
    assert heard.task.exponent is not None  # of sums: with half wins, a grid finer than that of rows
    scale: float = 2.0**heard.task.exponent
    return sums[repetition - heard.task.first_repetition], math.sqrt(variance) * scale
