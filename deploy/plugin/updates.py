"""An update of a model as one row of numbers: what both sides of a Flower app agree on."""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from protocol.numeric import numeric_channel
from protocol.numeric.channel import Floats, NumericChannel
from protocol.numeric.rules import usual_mechanism
from protocol.numeric.terms import MOST_DIMENSIONS

REPORT, CHANNEL, DIGEST = "report", "channel", "digest"
_HEADER = 1024  # bytes that an array of a report may have beside its numbers
Form = dict[str, tuple[int, ...]]  # the shape of each array of floating-point numbers, by key


def form_of(arrays: ArrayRecord) -> Form:
    """Keys and shapes of the arrays of floating-point numbers; others, such as counters, take no part.

    Raises ValueError where there is no number, or more than 2^20.
    """
    held = {key: array.numpy() for key, array in arrays.items()}
    form = {key: value.shape for key, value in held.items() if value.dtype.kind == "f"}
    if not 1 <= dimension_of(form) <= MOST_DIMENSIONS:
        raise ValueError(f"expected 1 to 2^20 floating-point numbers in the arrays, got {dimension_of(form)}")
    return form


def dimension_of(form: Form) -> int:
    """How many numbers there are."""
    return sum(int(np.prod(shape, dtype=object)) for shape in form.values())


def row_of(arrays: Mapping[str, Array], form: Form) -> Floats:
    """The numbers of all arrays of a form, one after the other, shape (d,).

    Raises ValueError for an array that is missing, has another shape, or has no floating-point numbers.
    """
    parts = []
    for key, shape in form.items():
        value = arrays[key].numpy() if key in arrays else None
        if value is None or value.shape != shape or value.dtype.kind != "f":
            raise ValueError(f"expected floating-point numbers of shape {shape} under {key!r}, got something else")
        parts.append(value.astype(np.float64).ravel())
    return np.concatenate(parts)


def added(arrays: ArrayRecord, row: Floats, form: Form) -> ArrayRecord:
    """The arrays plus a row (d,), each in its own type; arrays that are not of the form stay as they are."""
    found, place = dict(arrays.items()), 0
    for key, shape in form.items():
        before = arrays[key].numpy()
        part = row[place : place + before.size].reshape(shape)
        place += before.size
        with np.errstate(over="ignore", invalid="ignore"):  # numbers of a model that is lost already
            found[key] = Array((before.astype(np.float64) + part).astype(before.dtype))
    return ArrayRecord(found)


def retyped(arrays: ArrayRecord, before: ArrayRecord, form: Form) -> ArrayRecord:
    """Arrays in the types that they had before; those that are not of the form as they were: averages make them floats.

    Raises KeyError where one is missing.
    """
    found = {}
    for key, array in before.items():
        if key in form:
            with np.errstate(over="ignore"):
                array = Array(arrays[key].numpy().astype(array.numpy().dtype))
        found[key] = array
    return ArrayRecord(found)


@lru_cache(maxsize=16)
def channel_of(epsilon: Decimal, threshold: Decimal, dimension: int) -> NumericChannel:
    """The usual channel for secret coins of a row whose numbers are at most `threshold` in size.

    Guarantee: its level is at most epsilon, delta 0; unit: one row; neighbours: replace it.
    Raises ValueError for numbers out of range.
    """
    usual = usual_mechanism(dimension, epsilon, live=True)
    whole = {} if usual.coordinates is None else {"coordinates": Decimal(usual.coordinates)}
    return numeric_channel(
        usual.name, {"epsilon": epsilon, "threshold": threshold, "dimension": Decimal(dimension), **whole}
    )


def packed(report: Floats, channel: NumericChannel) -> RecordDict:
    """What a node sends: its report (d,), and the name of the channel that made it. Nothing else."""
    arrays = ArrayRecord({REPORT: Array(np.ascontiguousarray(report))})
    return RecordDict({REPORT: arrays, CHANNEL: ConfigRecord({DIGEST: channel.digest})})


def unpacked(content: RecordDict, channel: NumericChannel) -> Floats:
    """The report of a node, shape (d,).

    Raises ValueError unless it is a value that this channel can report, and nothing else; what is longer is not read.
    """
    if set(content) != {REPORT, CHANNEL} or set(content[REPORT]) != {REPORT}:
        raise ValueError("expected a report and the name of its channel, got other records")
    if dict(content[CHANNEL]) != {DIGEST: channel.digest}:
        raise ValueError("expected the channel of these parameters, got another one: do both sides say the same?")
    array = content[REPORT][REPORT]
    if not isinstance(array, Array) or len(array.data) > 8 * channel.dimension + _HEADER:
        raise ValueError("expected an array as long as the model, got another value")
    report = array.numpy()
    if report.dtype != np.float64 or report.shape != (channel.dimension,) or not channel.legal(report[None])[0]:
        raise ValueError("expected a value that the channel can report, got another one")
    return report
