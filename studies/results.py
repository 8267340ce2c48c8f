"""The results file: one row per (n, epsilon, delta, arm, repetition), in one order, with one schema, no times in it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from protocol.arms import Arm
from protocol.decimals import canonical
from protocol.strict import StudyError
from protocol.study import Cell, Study
from studies.files import write_atomically
from studies.score import Score, Scorer

if TYPE_CHECKING:  # the round loop loads compiled kernels, which a reader of results does without
    from server.outcome import Outcome

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64(), nullable=False),
        pa.field("epsilon", pa.float64()),
        pa.field("delta", pa.float64()),
        pa.field("trust", pa.string(), nullable=False),
        pa.field("mechanism", pa.string(), nullable=False),
        pa.field("estimator", pa.string(), nullable=False),
        pa.field("arm", pa.string(), nullable=False),
        pa.field("repetition", pa.int64(), nullable=False),
        pa.field("error_l2", pa.float64(), nullable=False),
        pa.field("error_sigma", pa.float64(), nullable=False),
        pa.field("excess_log_loss", pa.float64()),
        pa.field("accuracy", pa.float64()),
        pa.field("excess_risk", pa.float64()),
        pa.field("hit_boundary", pa.bool_(), nullable=False),
        pa.field("theta", pa.list_(pa.float64()), nullable=False),
        pa.field("ci_low", pa.list_(pa.float64())),
        pa.field("ci_high", pa.list_(pa.float64())),
        pa.field("claimed_epsilon", pa.float64()),
        pa.field("claimed_delta", pa.float64()),
        pa.field("computed_epsilon", pa.float64()),
        pa.field("unit", pa.string()),
        pa.field("neighbours", pa.string()),
        pa.field("coins", pa.string()),
        pa.field("warnings", pa.list_(pa.string()), nullable=False),
        pa.field("levels", pa.list_(pa.string()), nullable=False),
        pa.field("study_fingerprint", pa.string(), nullable=False),
        pa.field("runtime", pa.string(), nullable=False),
    ]
)
METRICS = {  # by kind of problem
    "pairwise": ("error_l2", "error_sigma", "excess_log_loss", "accuracy"),
    "choice": ("error_l2", "error_sigma", "excess_log_loss", "accuracy"),
    "records": ("error_l2", "error_sigma", "excess_risk"),
}


def tabulate(
    study: Study, scorer: Scorer, cell: Cell, outcomes: Iterable["Outcome"], runtime: str = "in-process"
) -> pa.Table:
    """The table of one cell's outcomes, scored. Raises ValueError unless every repetition has the same rows.

    `runtime` says where the outcomes come from: "in-process", "simulation" or "deployment".
    """
    where = {"study_fingerprint": study.fingerprint.hex(), "runtime": runtime}
    covariance = {
        repetition: scorer.covariance(cell.n, repetition)
        for repetition in range(cell.first_repetition, cell.first_repetition + cell.repetitions)
    }
    rows = [_row(outcome, scorer.score(outcome.theta, covariance[outcome.repetition])) | where for outcome in outcomes]
    counts = np.bincount([row["repetition"] - cell.first_repetition for row in rows], minlength=cell.repetitions)
    if not rows or (counts != counts[0]).any():
        raise ValueError(f"expected one set of rows for each of {cell.repetitions} repetitions, got counts {counts}")
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def merge(parts: Sequence[pa.Table], arms: Sequence[Arm]) -> pa.Table:
    """All parts in the one order of the results file: n, epsilon and delta (nulls first), arm of the study, repetition.

    Raises ValueError for two rows of one key.
    """
    table = pa.concat_tables(parts).combine_chunks()
    order = {arm.name: index for index, arm in enumerate(arms)}
    keys = (
        table["repetition"].to_numpy(),
        np.array([order[name] for name in table["arm"].to_pylist()]),
        _nulls_first(table["delta"]),
        _nulls_first(table["epsilon"]),
        table["n"].to_numpy(),
    )
    rank = np.lexsort(keys)
    repeated = np.ones(max(0, len(rank) - 1), dtype=bool)
    for key in keys:
        repeated &= np.diff(key[rank]) == 0
    if repeated.any():
        row = int(rank[int(np.argmax(repeated))])
        raise ValueError(f"expected one row per (n, epsilon, delta, arm, repetition), got two of row {row}")
    return table.take(pa.array(rank)).combine_chunks()


def write(table: pa.Table, path: Path) -> None:
    """Write a table atomically; equal tables give equal bytes."""
    write_atomically(path, lambda draft: pq.write_table(table, draft, compression="zstd", row_group_size=1 << 16))


def read(path: Path) -> pa.Table:
    """Read a results file or a part of one; raises StudyError where it is not such a file."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise StudyError(f"{path}: expected a results file, {error}") from None
    if not table.schema.equals(SCHEMA):
        raise StudyError(f"{path}: expected the columns {SCHEMA.names}, got {table.schema.names}")
    return table


def _nulls_first(column: pa.ChunkedArray) -> Any:
    return column.fill_null(-1.0).to_numpy()


def _row(outcome: "Outcome", score: Score) -> dict[str, Any]:
    claim = outcome.claim
    return {
        "n": outcome.n,
        "epsilon": _number(outcome.epsilon),
        "delta": _number(outcome.delta),
        "trust": outcome.arm.trust_name,
        "mechanism": outcome.arm.mechanism,
        "estimator": outcome.arm.estimator,
        "arm": outcome.arm.name,
        "repetition": outcome.repetition,
        "error_l2": score.error_l2,
        "error_sigma": score.error_sigma,
        "excess_log_loss": score.excess_log_loss,
        "accuracy": score.accuracy,
        "excess_risk": score.excess_risk,
        "hit_boundary": outcome.hit_boundary,
        "theta": outcome.theta.tolist(),
        "ci_low": _list(outcome.ci_low),
        "ci_high": _list(outcome.ci_high),
        "claimed_epsilon": None if claim is None else float(claim.epsilon),
        "claimed_delta": None if claim is None else float(claim.delta),
        "computed_epsilon": _number(outcome.computed_epsilon),
        "unit": None if claim is None else claim.unit.label,
        "neighbours": None if claim is None else claim.neighbours,
        "coins": outcome.coins,
        "warnings": list(outcome.warnings),
        "levels": [f"{canonical(level)}: {count}" for level, count in outcome.levels],
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _list(values: Any) -> list[float] | None:
    return None if values is None else [float(value) for value in values]
