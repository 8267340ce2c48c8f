"""Bytes in a message's content: one value or one array, and nothing beside it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.parcel import RECORD, VALUE, parcel_of

RAW = b"\x00bundle\xff"


def array(values: Any) -> SimpleNamespace:
    return SimpleNamespace(numpy=lambda: values)


def raising() -> None:
    raise TypeError("secret")


@given(st.binary(max_size=99))
def test_a_value_and_an_array_carry_the_same_bytes(raw: bytes) -> None:
    assert parcel_of({RECORD: {VALUE: raw}}) == raw
    assert parcel_of({RECORD: {VALUE: array(np.frombuffer(raw, np.uint8))}}) == raw


@pytest.mark.parametrize(
    "content",
    [
        {},
        {RECORD: {}},
        {RECORD: {VALUE: RAW, "more": RAW}},
        {RECORD: {VALUE: RAW}, "more": {}},
        {"another": {VALUE: RAW}},
        {RECORD: {"another": RAW}},
        {RECORD: {VALUE: "text"}},
        {RECORD: {VALUE: bytearray(RAW)}},
        {RECORD: {VALUE: [RAW]}},
        {RECORD: {VALUE: 7}},
        {RECORD: RAW},
        {RECORD: {VALUE: array(np.zeros(3))}},
        {RECORD: {VALUE: array(np.zeros((1, 1), np.uint8))}},
        {RECORD: {VALUE: array(None)}},
        {RECORD: {VALUE: SimpleNamespace(numpy=raising)}},
        None,
    ],
)
def test_anything_else_is_none(content: Any) -> None:
    with pytest.raises(ValueError, match="expected one value, or one array of bytes") as found:
        parcel_of(content)
    assert "secret" not in str(found.value)
