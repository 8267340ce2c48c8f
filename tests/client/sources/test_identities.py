"""Names of labels in one block: a sequence like another, also of names that end with zeros."""

import hashlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.sources.identities import SIZE, Identities

NAMES = st.sampled_from([bytes(SIZE), bytes(31) + b"\1", b"\1" + bytes(31), b"\xff" * SIZE, b"\x7f" + bytes(31)])


@given(st.lists(NAMES, max_size=12), st.data())
def test_a_block_is_the_sequence_of_its_names(names: list[bytes], data: st.DataObject) -> None:
    found = Identities.of(iter(names))
    assert list(found) == names == [found[place] for place in range(len(found))]
    assert list(reversed(found)) == names[::-1]
    start, stop = (data.draw(st.integers(-13, 13)) for _ in range(2))
    assert list(found[start:stop]) == names[start:stop]
    assert found[start:stop] == Identities.of(names[start:stop])
    assert found.first().tolist() == [name not in names[:place] for place, name in enumerate(names)]
    order = np.argsort(found.array(), kind="stable")
    assert list(found.at(order)) == sorted(names)
    with pytest.raises(IndexError):
        found[len(names)]


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match="expected names of 32 bytes"):
        Identities(bytes(33))


def test_a_name_takes_its_bytes_and_no_more() -> None:
    tracemalloc.start()
    try:
        found = Identities.of(hashlib.sha256(row.to_bytes(4)).digest() for row in range(10_000))
        assert tracemalloc.get_traced_memory()[0] < 33 * len(found)
    finally:
        tracemalloc.stop()
