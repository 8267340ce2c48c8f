"""From collected reports about top choices to what an estimator sees of one repetition."""

import numpy as np
from numpy.typing import NDArray

from protocol.choice_law import PAIR, choice_law
from protocol.choice_pairs import public_pairs
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Task
from protocol.terms import only_mechanism, row_exponent
from protocol.trust import Trust
from server.choice_designs import ChoiceDesign, ChoiceDesigns
from server.choice_view import clear_view, view
from server.estimators.choice_base import ChoiceEvidence
from server.evidence import Heard, Server, answered_rows, released_sum

Marks = NDArray[np.uint8]


def choice_evidence(server: Server, heard: Heard, designs: ChoiceDesigns) -> ChoiceEvidence:
    """Evidence of the repetition that `designs` belongs to; in the central model this commits the noisy sum first."""
    task, rows = heard.task, answered_rows(heard)
    if task.trust is Trust.CENTRAL:
        radius = only_mechanism(task).get("radius")
        design = designs.get(row_exponent(task), None if radius is None else float(radius), rows)
        squared = designs.sensitivity_squared(task, design)
        total, stddev = released_sum(server, heard, designs.repetition, squared)
        return ChoiceEvidence(design.features, clear_view(), None, total, stddev)
    design = designs.get(exponent(task.n, row_bound(task.problem, None)), None, rows)
    assert heard.collected.symbols is not None
    symbols = heard.collected.symbols[designs.repetition - task.first_repetition]
    marked = _marks(task, designs.repetition, symbols, design, heard.collected.rows)
    asked = clear_view() if task.trust is Trust.CLEAR else view(choice_law(task, only_mechanism(task)))
    return ChoiceEvidence(design.features, asked, marked)


def _marks(
    task: Task, repetition: int, symbols: NDArray[np.uint8], design: ChoiceDesign, rows: NDArray[np.int64]
) -> Marks:
    """Twice what each report says of each choice, (rows, K): 2 for it, 0 against it, 1 neither."""
    if symbols.ndim == 2:  # a set: bits
        return np.ascontiguousarray(2 * symbols)
    count, most = design.blocks.shape[:2]
    if task.trust is Trust.LOCAL and only_mechanism(task).name == PAIR:
        marks, every = np.ones((count, most), dtype=np.uint8), np.arange(count)
        pairs = public_pairs(task, repetition, rows, design.sizes)
        marks[every, pairs[every, symbols]] = 2
        marks[every, pairs[every, 1 - symbols]] = 0
        return marks
    return np.where(np.arange(most) == symbols[:, None], 2, 0).astype(np.uint8)
