"""The shared cache of public features."""

from decimal import Decimal

import numpy as np
import pytest

from protocol.features import reduced_rows, rounded
from protocol.problem import Problem
from protocol.store import FeatureStore

DRAWN = Problem(dimension=5, features="gaussian", sum_zero=True, bound=Decimal(3))
ITEMS = Problem(3, "items", True, None, np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32))


def test_rows_are_those_of_the_features_module() -> None:
    store = FeatureStore(seed=7)
    rows = reduced_rows(DRAWN, 7, 100, 2, 10, 60)
    assert (store.reduced(DRAWN, 100, 2, 10, 60) == rows).all()
    held, expected = store.rounded(DRAWN, 100, 2, 10, 60, -40, 1.5), rounded(rows, -40, 1.5)
    assert (held.rows == expected.rows).all()
    assert held.weights is not None
    assert expected.weights is not None
    assert (held.weights == expected.weights).all()
    assert store.rounded(DRAWN, 100, 2, 10, 60, -40, None).weights is None


def test_a_second_question_is_answered_from_memory_and_arrays_are_read_only() -> None:
    store = FeatureStore(seed=7)
    first = store.rounded(DRAWN, 100, 0, 0, 100, -40, 1.0)
    assert store.rounded(DRAWN, 100, 0, 0, 100, -40, 1.0) is first
    assert first.weights is not None
    for array in (first.rows, first.weights, store.reduced(DRAWN, 100, 0, 0, 100)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_the_budget_bounds_what_is_kept_and_the_oldest_goes_first() -> None:
    block = 50 * 4 * 8
    store = FeatureStore(seed=7, budget_bytes=2 * block)
    first, second = store.reduced(DRAWN, 100, 0, 0, 50), store.reduced(DRAWN, 100, 1, 0, 50)
    assert store.reduced(DRAWN, 100, 0, 0, 50) is first
    store.reduced(DRAWN, 100, 2, 0, 50)
    assert store.reduced(DRAWN, 100, 0, 0, 50) is first
    again = store.reduced(DRAWN, 100, 1, 0, 50)
    assert again is not second
    assert (again == second).all()
    large = FeatureStore(seed=7, budget_bytes=block - 1)
    assert large.reduced(DRAWN, 100, 0, 0, 50) is not large.reduced(DRAWN, 100, 0, 0, 50)


def test_given_features_need_no_seed_and_are_one_in_all_repetitions() -> None:
    store = FeatureStore(seed=None)
    assert store.reduced(ITEMS, 3, 0, 0, 3) is store.reduced(ITEMS, 3, 5, 0, 3)
    with pytest.raises(ValueError, match="expected a seed for drawn features"):
        store.reduced(DRAWN, 3, 0, 0, 3)


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (2, 2), (0, 4), (3, 1)])
def test_rows_outside_the_study_are_refused(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="expected rows 0 <= start < stop <= 3"):
        FeatureStore(seed=None).reduced(ITEMS, 3, 0, start, stop)
