"""Reports about records: each checked against what was asked, values against what the mechanism can say."""

import numpy as np
from numpy.typing import NDArray

from protocol.grid import to_integers
from protocol.messages import Kind, Mechanism, Report, Task
from protocol.record_terms import L2, LARGEST, ROWS, Bounded, channel_of, width
from protocol.threshold_grid import ThresholdGrid
from protocol.trust import Trust


def payload_kind(task: Task, mechanism: Mechanism) -> Kind:
    """What a report of the task holds: sums for a curator that does not ask for rows, else values of rows."""
    sums = task.trust is Trust.CENTRAL and Bounded.of(mechanism).kind != ROWS
    return Kind.EXACT_SUMS if sums else Kind.ROWS


def table_of(task: Task, mechanism: Mechanism) -> bytes:
    """The hash that a report has to name: of its channel under a local claim."""
    return channel_of(mechanism).digest if task.trust is Trust.LOCAL else b""


def check_records(task: Task, report: Report, rows: NDArray[np.int64]) -> None:
    """Raise ValueError for a payload that the task's mechanism cannot have made.

    Of a local report every row has to be in its mechanism's output set; of a curator's rows within their bound.
    """
    payload, expected = report.payload, payload_kind(task, report.mechanism)
    if payload.kind is not expected:
        raise ValueError(f"expected a payload of kind {expected.name}, got {payload.kind.name}")
    shape = (task.repetitions, 1 if expected is Kind.EXACT_SUMS else len(rows), width(task))
    if payload.values.shape != shape or payload.values.dtype != np.float64:
        raise ValueError(f"expected float64 values of shape {shape}, got {payload.values.shape}")
    if not (np.abs(payload.values) <= LARGEST).all():
        raise ValueError("expected finite values of at most 2^480, got NaN, inf or larger ones")
    values = payload.values.astype(np.float64, copy=False)
    if task.trust is Trust.LOCAL:
        channel = channel_of(report.mechanism)
        legal = channel.legal(values.reshape(-1, shape[2]))
        if not legal.all():
            raise ValueError(f"{int((~legal).sum())} values outside the output set of {report.mechanism.name}")
    elif task.trust is Trust.CENTRAL:
        _check_bounded(task, report, values, len(rows))


def _check_bounded(task: Task, report: Report, values: NDArray[np.float64], count: int) -> None:
    how, payload = Bounded.of(report.mechanism), report.payload
    if ThresholdGrid.of(report.mechanism) is not None:
        _check_counts(values, count)
    gradients, beyond = (values[:, :, :-1], values[:, :, -1]) if how.counted else (values, np.zeros(1))
    if not ((beyond >= 0) & (beyond <= count * how.counted)).all():
        raise ValueError(f"a count of contributions beyond their bound that {count} rows cannot have")
    size = np.sqrt((gradients * gradients).sum(axis=2)) if how.norm == L2 else np.abs(gradients)
    if payload.kind is Kind.ROWS:
        if (size > how.threshold * (1 + 2.0**-40)).any():
            raise ValueError("values beyond their bound")
        return
    assert task.exponent is not None and payload.counts is not None
    if payload.counts.tolist() != [count]:
        raise ValueError(f"expected a sum over {count} rows, got {payload.counts.tolist()}")
    to_integers(values, task.exponent)
    if (size > count * how.threshold * (1 + 2.0**-40)).any():
        raise ValueError(f"a sum larger than {count} rows can have")


def _check_counts(values: NDArray[np.float64], count: int) -> None:
    """Counts of rows above increasing thresholds: whole numbers of rows, none larger than the one before."""
    if not ((values >= 0) & (values <= count) & (values == np.floor(values))).all() or (np.diff(values) > 0).any():
        raise ValueError(f"expected numbers of rows out of {count} that fall as thresholds grow")
