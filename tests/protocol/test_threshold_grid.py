"""The public grid of thresholds: what it is, and what it refuses."""

from decimal import Decimal

import numpy as np
import pytest

from protocol.messages import Mechanism
from protocol.threshold_grid import ThresholdGrid
from server.mechanisms.threshold_choice import threshold_grid


def test_thresholds_are_those_that_choices_are_made_of() -> None:
    for ends in ((-10, 50), (-3, -3), (-1000, 23)):
        grid = ThresholdGrid(*ends)
        assert (grid.thresholds == threshold_grid(*ends)).all() and len(grid.thresholds) == grid.width
        assert (np.diff(grid.thresholds) > 0).all()


def test_a_mechanism_names_a_whole_grid_or_none() -> None:
    assert ThresholdGrid.of(Mechanism.of("gaussian", epsilon=Decimal(1))) is None
    assert ThresholdGrid.of(Mechanism.of("x", lowest=Decimal(-2), highest=Decimal(3))) == ThresholdGrid(-2, 3)
    for half in ({"lowest": Decimal(1)}, {"highest": Decimal(1)}, {"lowest": Decimal("0.5"), "highest": Decimal(1)}):
        with pytest.raises(ValueError, match="whole numbers lowest and highest"):
            ThresholdGrid.of(Mechanism.of("x", **half))


@pytest.mark.parametrize("ends", [(2, 1), (-1001, 0), (0, 1001), (-600, 600)])
def test_absurd_grids_are_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="expected -1000 <= lowest <= highest <= 1000 and at most 1024"):
        ThresholdGrid(*ends)
