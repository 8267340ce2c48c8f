"""Files of records: numbers by column, missing values, holders, row numbers, and errors that say where."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.sources import ProblemUnknown
from client.sources.numbers import Scales, numbers
from client.sources.reading import SourceError, read_records
from client.sources.record_columns import DROP, ZERO, RecordColumns
from client.sources.record_table import RecordTable, read_record_table, record_identity
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.strict import StudyError
from protocol.trust import Trust

LOSSES = 'id,state,age,loss\nc1,WA,30,1.5\nc2,OR,41,2e3\nc3,WA,,-0.25\nc4,"OR ",55,.5\n'
MEAN = RecordColumns(("loss",), "mean", id="id")
SCALES = Scales({"age": Decimal(40)}, {"age": Decimal(10)})
LINEAR = RecordColumns(
    ("age",), "linear", response="loss", id="id", missing=DROP, intercept=True, holder="state", scales=SCALES
)


def read(folder: Path, text: str, columns: RecordColumns, public: bool = False) -> RecordTable:
    path = folder / "records.csv"
    path.write_text(text, encoding="utf-8")
    return read_record_table(path, public, columns)


def places(table: RecordTable, *names: str) -> list[int]:
    """Rows of records or holders, by name: rows stand in the order of hashes."""
    return [table.identities.index(record_identity(table.columns.unit, name)) for name in names]


def values(table: RecordTable, *names: str) -> list[Any]:
    """What rows hold: those of some names, or all."""
    chosen = places(table, *names) if names else slice(None)
    return [None if part is None else part[chosen].tolist() for part in table.held.reveal()]


def task(unit: Unit = Unit.RECORD, model: str = "mean", dimension: int = 1, trust: Trust = Trust.CLEAR) -> Task:
    problem = Problem(dimension, "records", False, None, kind="records", model=model)
    return Task(bytes(32), trust, unit, problem, (Mechanism("none"),), 4, None, None, 0, 1)


def test_a_mean_of_one_column(tmp_path: Path) -> None:
    table = read(tmp_path, LOSSES, MEAN)
    assert values(table, "c1", "c2", "c3", "c4") == [[[[1.5]], [[2000.0]], [[-0.25]], [[0.5]]], None, None]
    assert (table.lasting, table.dropped, table.labelers) == (True, 0, ("c1", "c2", "c3", "c4"))
    rows = np.array(places(table, "c2", "c4"))
    facts = table.facts(rows)
    assert facts is not None
    assert list(facts.identities) == [record_identity(Unit.RECORD, "c2"), record_identity(Unit.RECORD, "c4")]
    assert [facts.names[owner] for owner in facts.labelers] == ["c2", "c4"]
    x, y, counts = table.records(task(), 0, rows).reveal()
    assert (x.tolist(), y, counts) == ([[[2000.0]], [[0.5]]], None, None)
    assert table.rows(replace(task(), n=3)).count == 3
    assert "2000" not in repr(table)
    assert "c1" not in repr(table)


def test_a_model_with_a_response_scales_and_an_intercept(tmp_path: Path) -> None:
    table = read(tmp_path, LOSSES, LINEAR)
    found = values(table, "c1", "c2", "c4")
    assert found == [[[[-1.0, 1.0]], [[0.1, 1.0]], [[1.5, 1.0]]], [[1.5], [2000.0], [0.5]], None]
    assert (table.dropped, table.columns.names) == (1, ("age", "intercept"))
    owners = table.owners[places(table, "c1", "c2", "c4")]
    assert [table.labelers[owner] for owner in owners] == ["WA", "OR", "OR"]
    zero = read(tmp_path, LOSSES, replace(LINEAR, missing=ZERO))
    assert values(zero, "c3")[0] == [[[0.0, 1.0]]]


def test_a_row_may_be_a_holder_with_all_its_records(tmp_path: Path) -> None:
    table = read(tmp_path, LOSSES, replace(LINEAR, missing=ZERO, unit=Unit.HOLDER, id=None))
    assert values(table, "WA", "OR") == [
        [[[-1.0, 1.0], [0.0, 1.0]], [[0.1, 1.0], [1.5, 1.0]]],
        [[1.5, -0.25], [2000.0, 0.5]],
        [2, 2],
    ]
    assert len(table.identities) == 2
    assert table.lasting
    assert record_identity(Unit.HOLDER, "WA") != record_identity(Unit.RECORD, "WA")
    short = read(tmp_path, LOSSES, replace(LINEAR, unit=Unit.HOLDER, id=None))
    assert values(short, "WA", "OR")[2] == [1, 2]
    assert values(short, "WA")[0] == [[[-1.0, 1.0], [0.0, 0.0]]]


def test_text_becomes_an_indicator(tmp_path: Path) -> None:
    columns = RecordColumns(("age",), "logistic", response="state=OR", id="id", missing=ZERO)
    assert values(read(tmp_path, LOSSES, columns), "c1", "c2", "c3", "c4")[1] == [[0.0], [1.0], [0.0], [1.0]]
    odd = read(tmp_path, "state=OR\n7\n", RecordColumns(("state=OR",), "mean"))
    assert values(odd)[0] == [[[7.0]]]  # a column of that very name


@pytest.mark.parametrize("columns", [MEAN, replace(LINEAR, missing=ZERO, unit=Unit.HOLDER)], ids=["record", "holder"])
def test_rows_do_not_depend_on_the_order_of_lines(tmp_path: Path, columns: RecordColumns) -> None:
    """A file sorted by what it holds would tell ranks by row numbers, and one record would move all others."""
    lines = LOSSES.splitlines()
    one = read(tmp_path, LOSSES, columns)
    other = read(tmp_path, "\n".join([lines[0], *lines[:0:-1]]), columns)
    assert one.identities == other.identities
    assert list(one.identities) == sorted(one.identities)
    if columns is MEAN:
        assert values(one) == values(other)


def test_rows_of_a_public_file_without_ids_keep_the_order_of_lines(tmp_path: Path) -> None:
    table = read(tmp_path, LOSSES, RecordColumns(("loss",), "mean"), public=True)
    assert values(table)[0] == [[[1.5]], [[2000.0]], [[-0.25]], [[0.5]]]


def test_row_numbers_of_a_column_are_kept(tmp_path: Path) -> None:
    text = "row,who,x\n3,a,1\n3,a,2\n7,b,5\n"
    holders = RecordColumns(("x",), "mean", unit=Unit.HOLDER, holder="who", row="row")
    table = read(tmp_path, text, holders)
    assert table.rows_held.tolist() == [3, 7]
    assert table.records(task(), 0, np.array([7])).reveal()[0].tolist() == [[[5.0], [0.0]]]
    assert table.rows(replace(task(), n=7)).numbers().tolist() == [3]
    with pytest.raises(SourceError, match=r"line 3, column row: expected a row number above the one before, got '3'"):
        read(tmp_path, text, RecordColumns(("x",), "mean", row="row"))
    with pytest.raises(SourceError, match=r"line 3, column row: expected one row number for all records of a holder"):
        read(tmp_path, text.replace("3,a,2", "4,a,2"), holders)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('"1,234"', r"without separators of thousands, got '1,234'"),
        ("1'234.5", r"without separators of thousands"),
        ("1_000", r"without separators of thousands"),
        ('"12,34,567"', r"without separators of thousands, got"),
        ("1.234.567", r"without separators of thousands, got"),
        ("1\u2019234", r"without separators of thousands, got"),
        ('"1.234,5"', r"without separators of thousands and with a decimal point, got"),
        ('"$1,234.50"', r"without a currency, a percent sign or brackets, got"),
        ("12 %", r"without a currency, a percent sign or brackets, got"),
        ("(7)", r"without a currency, a percent sign or brackets, got"),
        ('"1,5"', r"with a decimal point, got '1,5'"),
        ("NaN", r"or an empty cell where it is missing, got 'NaN'"),
        ("NA", r"or an empty cell where it is missing, got 'NA'"),
        ("-inf", r"that is finite, got '-inf'"),
        ("1e400", r"of at most 1e\+100 in size: scale it, got '1e400'"),
        ("1e101", r"of at most 1e\+100 in size"),
        ("0x1F", r", got '0x1F'"),
        ("\u0661\u0662", r", got"),
        ("$5", r", got '\$5'"),
        ("9" * 300, r"got '9{40}\.\.\.'"),
    ],
)
def test_a_cell_that_is_no_plain_number_is_named(tmp_path: Path, cell: str, said: str) -> None:
    with pytest.raises(SourceError, match=r"records\.csv, line 3, column x: expected a number.*" + said):
        read(tmp_path, f"x\n1\n{cell}\n", RecordColumns(("x",), "mean"))


@given(st.lists(st.floats(-1e100, 1e100), min_size=1))
def test_plain_numbers_come_back_exactly(tmp_path_factory: pytest.TempPathFactory, written: list[float]) -> None:
    path = tmp_path_factory.mktemp("plain") / "x.csv"
    path.write_text("x\n" + "\n".join(map(repr, written)) + "\n", encoding="utf-8")
    assert numbers(read_records(path), "x").tolist() == written


def test_missing_values_are_refused_unless_said_otherwise(tmp_path: Path) -> None:
    strict = replace(LINEAR, missing="refuse")
    with pytest.raises(SourceError, match=r'line 4, column age: expected a number, got an empty cell: .*"drop-public"'):
        read(tmp_path, LOSSES, strict)
    text = LOSSES.replace("2e3", "")
    with pytest.raises(SourceError, match=r"line 3, column loss: expected a response, got an empty cell"):
        read(tmp_path, text, replace(LINEAR, missing=ZERO))
    assert read(tmp_path, text, LINEAR).dropped == 2
    with pytest.raises(SourceError, match="expected at least one record without missing values"):
        read(tmp_path, "id,state,age,loss\na,b,,1\n", LINEAR)


def test_ids_and_holders_are_never_missing_and_ids_differ(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"line 3, column id: expected a name, got an empty cell"):
        read(tmp_path, LOSSES.replace("c2", ""), MEAN)
    with pytest.raises(SourceError, match=r"line 4, column id: expected different ids, got 'c1' again"):
        read(tmp_path, LOSSES.replace("c3", "c1"), MEAN)
    with pytest.raises(SourceError, match=r"header: expected one column 'los', found the columns id, state, age, loss"):
        read(tmp_path, LOSSES, replace(MEAN, features=("los",)))
    with pytest.raises(SourceError, match=r"column loss: expected 0 or 1, got 1.5: or say loss=TEXT"):
        read(tmp_path, LOSSES, RecordColumns(("age",), "logistic", response="loss", missing=ZERO))


def test_numbers_of_parquet_are_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "x": [0.1, 1e-300], "k": pa.array([2**60 + 1, 3])}), path)
    table = read_record_table(path, False, RecordColumns(("x", "k"), "mean", id="id"))
    assert values(table)[0] == [[[0.1, float(2**60 + 1)]], [[1e-300, 3.0]]]
    pq.write_table(pa.table({"x": pa.array([1.0, None, float("nan")])}), path)
    with pytest.raises(SourceError, match=r"row 3, column x: expected a number or an empty cell"):
        read_record_table(path, False, RecordColumns(("x",), "mean", missing=DROP))
    pq.write_table(pa.table({"x": [1.0]}), path)
    with pytest.raises(SourceError, match=r"field x: expected text, whole numbers"):
        read_record_table(path, False, RecordColumns(("x",), "mean", id="x"))  # floats are no names


def test_only_tasks_about_these_records_are_answered(tmp_path: Path) -> None:
    table = read(tmp_path, LOSSES, MEAN)
    table.check(task())
    table.check(task(trust=Trust.LOCAL))
    for wrong in (task(Unit.HOLDER), task(model="linear"), task(dimension=2)):
        with pytest.raises(ProblemUnknown):
            table.check(wrong)
    nameless = read(tmp_path, LOSSES, replace(MEAN, id=None))
    nameless.check(task())
    with pytest.raises(ProblemUnknown, match="without ids"):
        nameless.check(task(trust=Trust.LOCAL))
    read(tmp_path, LOSSES, replace(MEAN, id=None), public=True).check(task(trust=Trust.LOCAL))


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "median"},
        {"features": ()},
        {"features": ("loss", "loss")},
        {"response": "age"},
        {"intercept": True},
        {"unit": Unit.HOLDER},
        {"unit": Unit.LABEL},
        {"missing": "guess"},
        {"scales": Scales({"age": Decimal(1)})},
        {"scales": Scales(scale={"loss": Decimal(0)})},
        {"scales": Scales({"loss": Decimal("NaN")})},
    ],
)
def test_columns_that_do_not_fit_together_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match="expected"):
        replace(MEAN, **changes)
