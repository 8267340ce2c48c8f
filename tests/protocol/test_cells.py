"""A study's units: bounded in rows, and in numbers where records are sent as they are."""

from dataclasses import replace

import pytest

from protocol.laws import Law
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.runconfig import read
from protocol.study import Cell, Study, cells

STUDY = replace(read({}).study, repetitions=100)


def of_records(n: int, dimension: int, per_holder: int = 1) -> Study:
    problem = Problem(dimension, "records", False, None, kind="records", model="mean")
    law = RecordLaw(Law.parse("pareto(1.6)", "features"), per_holder=per_holder)
    return replace(STUDY, grid=replace(STUDY.grid, n=(n,)), problem=problem, records=law)


def test_cells_cover_all_repetitions_the_largest_n_first() -> None:
    asked = replace(STUDY, grid=replace(STUDY.grid, n=(1000, 10_000)))
    found = cells(asked)
    assert found[:2] == [Cell(10_000, 0, 26), Cell(10_000, 26, 26)] and found[-1] == Cell(1000, 0, 100)
    assert sum(cell.repetitions for cell in found) == 200
    assert cells(asked, block=60)[:2] == [Cell(10_000, 0, 60), Cell(10_000, 60, 40)]


@pytest.mark.parametrize(
    ("n", "dimension", "per_holder", "repetitions"),
    [(10_000, 1, 1, 26), (10_000, 16, 1, 26), (10_000, 20, 1, 20), (10_000, 500, 1, 1), (1000, 20, 50, 4)],
)
def test_cells_of_records_hold_four_million_numbers(n: int, dimension: int, per_holder: int, repetitions: int) -> None:
    assert cells(of_records(n, dimension, per_holder))[0] == Cell(n, 0, repetitions)
