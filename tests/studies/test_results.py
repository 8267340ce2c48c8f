"""The results file: one schema, one order, the same bytes; and what summaries say about it."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from protocol.arms import Arm
from protocol.strict import StudyError
from protocol.trust import Trust
from studies import results
from studies.load import load
from studies.summary import Moments, Setting, paired, summarise

CLEAR, LOCAL = Arm(Trust.CLEAR, "none", "mle"), Arm(Trust.LOCAL, "randomized-response", "debiased")
RNG = np.random.default_rng(17)


def row(n: int, arm: Arm, repetition: int, error: float, epsilon: float | None = None, **changes: object) -> dict:
    return {
        "n": n,
        "epsilon": epsilon,
        "delta": None if epsilon is None else 1e-5,
        "trust": arm.trust_name,
        "mechanism": arm.mechanism,
        "estimator": arm.estimator,
        "arm": arm.name,
        "repetition": repetition,
        "error_l2": error,
        "error_sigma": error,
        "excess_log_loss": error,
        "accuracy": 0.5,
        "hit_boundary": error > 1,
        "theta": [error, -error],
        "warnings": [],
        "study_fingerprint": "00",
        "runtime": "in-process",
        **changes,
    }


def table(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=results.SCHEMA)


def shuffled(rows: list[dict]) -> list[pa.Table]:
    order = RNG.permutation(len(rows))
    return [table([rows[i] for i in part]) for part in np.array_split(order, 4)]


def some_rows() -> list[dict]:
    rows = [row(n, CLEAR, r, RNG.random()) for n in (100, 30) for r in range(5)]
    return rows + [row(n, LOCAL, r, RNG.random(), e) for n in (30, 100) for e in (2.0, 0.5) for r in range(5)]


def test_one_order_whatever_the_parts(tmp_path: Path) -> None:
    rows = some_rows()
    merged = [results.merge(shuffled(rows), (LOCAL, CLEAR)) for _ in range(3)]
    for index, one in enumerate(merged):
        results.write(one, tmp_path / f"{index}.parquet")
    assert len({(tmp_path / f"{index}.parquet").read_bytes() for index in range(3)}) == 1
    keys = list(zip(*(merged[0][name].to_pylist() for name in ("n", "epsilon", "arm", "repetition")), strict=True))
    assert keys == sorted(keys, key=lambda key: (key[0], key[1] or 0, key[2] != LOCAL.name, key[3]))
    assert keys[0] == (30, None, CLEAR.name, 0)


def test_two_rows_of_one_key_are_an_error() -> None:
    rows = some_rows()
    with pytest.raises(ValueError, match="got two"):
        results.merge([table(rows), table(rows[:1])], (LOCAL, CLEAR))


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"not parquet")
    results.pq.write_table(pa.table({"n": [1]}), tmp_path / "b.parquet")
    with pytest.raises(StudyError, match="results file"):
        results.read(tmp_path / "a.parquet")
    with pytest.raises(StudyError, match="expected the columns"):
        results.read(tmp_path / "b.parquet")
    with pytest.raises(StudyError, match="results file"):
        results.read(tmp_path / "c.parquet")


def test_a_run_has_every_row_once(finished: Path, study_path: Path) -> None:
    loaded, found = load(study_path), results.read(finished / "results.parquet")
    claims = [arm for arm in loaded.study.arms if arm.trust in (Trust.LOCAL, Trust.CENTRAL)]
    assert len(found) == 2 * 20 * (2 * len(claims) + len(loaded.study.arms) - len(claims))
    frame = found.to_pandas()
    clear = frame[frame.trust.isin(["clear", "none"])]
    private = frame[frame.trust.isin(["local", "central"])]
    assert clear[["epsilon", "delta", "claimed_epsilon", "claimed_delta", "unit"]].isna().all().all()
    assert (private.claimed_epsilon == private.epsilon).all()
    assert (private[private.trust == "central"].claimed_delta == 1e-5).all()
    assert (private[private.trust == "local"].claimed_delta == 0).all()
    local = private[private.trust == "local"]
    assert ((local.computed_epsilon <= local.epsilon) & (local.computed_epsilon > 0.99 * local.epsilon)).all()
    assert set(private.unit) == {"label"}
    assert set(private.neighbours) == {"replace one label"}
    assert set(private.coins) == {"addressed"}
    assert set(frame.study_fingerprint) == {loaded.study.fingerprint.hex()}
    zero = frame[frame.estimator == "zero"]
    np.testing.assert_allclose(zero.error_l2, np.linalg.norm(loaded.theta), rtol=1e-15)
    gaps = np.stack(frame.theta) - loaded.theta
    np.testing.assert_allclose(frame.error_l2, np.linalg.norm(gaps, axis=1), rtol=1e-12, atol=1e-15)


def test_pandas_polars_and_duckdb_open_the_file(finished: Path) -> None:
    path = finished / "results.parquet"
    left, right, third = pd.read_parquet(path), pl.read_parquet(path), duckdb.read_parquet(str(path))
    assert list(left.columns) == right.columns == third.columns == results.SCHEMA.names
    assert len(left) == right.height
    assert left.error_l2.tolist() == right["error_l2"].to_list()
    assert left.error_l2.tolist() == [value for (value,) in third.project("error_l2").fetchall()]


def test_moments_are_those_of_a_t_interval() -> None:
    values = RNG.normal(size=37)
    found = Moments.of(values)
    low, high = stats.t.interval(0.95, 36, loc=values.mean(), scale=stats.sem(values))
    assert (found.count, found.mean, found.se) == pytest.approx((37, values.mean(), stats.sem(values)))
    assert (found.low, found.high) == pytest.approx((low, high))
    turned = Moments.of(-values)
    assert found.reversed() == turned
    assert np.isnan(Moments.of(values[:1]).se)


def test_summaries() -> None:
    errors = [0.5, 0.75, 1.5, 2.0, 0.25]
    intervals = [([-1.0, 0.5], [1.0, 2.0]), ([0.1, 0.0], [1.0, 2.0]), (None, None), (None, None), (None, None)]
    rows = [
        row(10, LOCAL, r, error, 1.0, ci_low=low, ci_high=high)
        for r, (error, (low, high)) in enumerate(zip(errors, intervals, strict=True))
    ]
    (found,) = summarise(table(rows), "error_l2", np.array([0.0, 1.0]))
    assert (found.setting, found.arm) == (Setting(10, 1.0, 1e-5), LOCAL.name)
    assert (found.lower_quartile, found.median, found.upper_quartile) == (0.5, 0.75, 1.5)
    assert (found.boundary_rate, found.coverage) == (0.4, 0.75)
    (bare,) = summarise(table([row(10, LOCAL, 0, 1.0, 1.0)]), "error_l2", np.zeros(2))
    assert bare.coverage is None


def test_differences_are_paired_by_repetition() -> None:
    other = Arm(Trust.LOCAL, "randomized-response", "naive")
    rows = [row(10, CLEAR, r, float(r)) for r in (1, 2, 3)]
    rows += [row(10, LOCAL, r, r + 1.0, e) for e in (1.0, 2.0) for r in (1, 2, 3)]
    rows += [row(10, other, r, r + 1.5, 2.0) for r in (2, 3, 4)]
    merged = results.merge([table(rows)], (CLEAR, LOCAL, other))
    found = {(one.setting, one.left, one.right): one.moments for one in paired(merged)}
    assert len(found) == 4
    first = found[Setting(10, 1.0, 1e-5), CLEAR.name, LOCAL.name]
    assert (first.count, first.mean, first.se) == (3, -1.0, 0.0)
    last = found[Setting(10, 2.0, 1e-5), LOCAL.name, other.name]
    assert (last.count, last.mean, last.se) == (2, -0.5, 0.0)
