"""Raw labels do not slip out of their wrapper."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import client
from client.labels import Labels

HIDDEN = Labels(np.array([1, 0, 1], dtype=np.uint8))


def test_printing_hides_the_content() -> None:
    for text in (repr(HIDDEN), str(HIDDEN), f"{HIDDEN}", f"{[HIDDEN]}"):
        assert "Labels(3 rows, content hidden)" in text


def test_pickling_and_copying_are_refused() -> None:
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="labels stay in the process"):
            act(HIDDEN)


def test_nothing_but_reveal_gives_values() -> None:
    with pytest.raises(TypeError):
        list(HIDDEN)  # type: ignore[call-overload]
    assert np.asarray(HIDDEN).dtype == object
    assert not hasattr(HIDDEN, "__dict__")
    assert HIDDEN.reveal().tolist() == [1, 0, 1]
    assert len(HIDDEN) == 3


def test_values_are_a_read_only_copy() -> None:
    given = np.array([1, 1], dtype=np.uint8)
    labels = Labels(given)
    given[0] = 0
    assert labels.reveal().tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        labels.reveal()[0] = 0


def test_few_places_look_at_labels() -> None:
    """A new one is a decision: it is written here."""
    package = Path(client.__file__ or "").parent
    found = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if ".reveal()" in path.read_text()}
    tables = {"sources/choice_table.py", "sources/record_table.py", "sources/table.py"}
    assert found == {"choice_payloads.py", "gradient_sums.py", "gradients.py", "payloads.py", "rows.py", *tables}


@pytest.mark.parametrize("values", [np.array([1, 0]), np.zeros((2, 2), dtype=np.uint8), np.array([0.5])])
def test_other_arrays_are_refused(values: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected uint8 labels of one axis"):
        Labels(values)
