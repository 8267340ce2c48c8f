"""Outcomes as lines: every field and every bit comes back, from a file's line and from a log."""

from dataclasses import fields
from decimal import Decimal
from random import Random

import numpy as np
import pytest

from protocol.privacy import Guarantee, Unit
from protocol.runconfig import read
from protocol.study import Cell, Study
from server.outcome import Outcome
from server.outcome_record import LONGEST_LINE, Lines, RecordError, cell_name, decode, encode, log_lines, parse_cell
from studies.in_process import run_cell

THETA = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
CELL = Cell(1000, 0, 2)


@pytest.fixture(scope="module")
def study() -> Study:
    return read({}).study


@pytest.fixture(scope="module")
def found(study: Study) -> list[Outcome]:
    return list(run_cell(study, THETA, CELL))


def plain(outcome: Outcome) -> list[str]:
    """All fields, arrays by their bits and decimals by their digits."""
    values = [getattr(outcome, item.name) for item in fields(outcome)]
    return [value.tobytes().hex() if isinstance(value, np.ndarray) else repr(value) for value in values]


def test_every_arm_comes_back_bit_for_bit(study: Study, found: list[Outcome]) -> None:
    assert {outcome.arm for outcome in found} == set(study.arms)
    for outcome in found:
        line = encode(outcome, study)
        assert "\n" not in line
        assert plain(decode(line, study)) == plain(outcome)


def test_odd_values_come_back(study: Study) -> None:
    odd = np.array([-0.0, 5e-324, np.inf, -1e308, 0.1])
    claim = Guarantee(Decimal("2.50"), Decimal("1E-5"), Unit.LABELER)
    warnings = ("two\nlines", "é")
    outcome = Outcome(
        study.arms[3], 9, 8, Decimal("2.50"), Decimal("1E-5"), odd, odd, None, True, claim, Decimal("2.4999"), "os",
        warnings,
    )  # fmt: skip
    assert plain(decode(encode(outcome, study), study)) == plain(outcome)


@pytest.mark.parametrize("line", ["", "{}", "[]", "7", "null", '{"arm": 0}', "halftruth"])
def test_a_line_that_is_no_outcome_is_refused(study: Study, line: str) -> None:
    with pytest.raises(RecordError, match="expected an outcome"):
        decode(line, study)


def test_a_cell_has_a_name() -> None:
    assert parse_cell(cell_name(Cell(1, 2, 3))) == Cell(1, 2, 3)
    for name in ("cell-1-2", "cell-1-2-3-4", "cell-a-2-3", "../cell-1-2-3", "cell-1-2-3\n"):
        with pytest.raises(RecordError):
            parse_cell(name)


def test_a_log_gives_back_the_records_in_any_order_and_twice(study: Study, found: list[Outcome]) -> None:
    records = [encode(outcome, study) for outcome in found]
    lines = list(log_lines(CELL, records))
    assert len(lines) > 1 and all(len(line) <= LONGEST_LINE for line in lines)
    noisy = [f"\x1b[92mINFO \x1b[0m:      {line}" for line in lines + lines] + ["INFO : something else"]
    Random(1).shuffle(noisy)
    reader = Lines()
    got = [item for item in map(reader.feed, noisy) if item is not None]
    assert got == [(CELL, records)]
    assert not reader.done and reader.failed is None


def test_a_log_says_how_the_run_ended() -> None:
    reader = Lines()
    reader.feed("INFO :      halftruth-done")
    assert reader.done
    reader = Lines()
    reader.feed("\x1b[92mINFO \x1b[0m:      halftruth-failed expected 3 clients, got 2\n")
    assert reader.failed == "expected 3 clients, got 2"
    reader.feed("halftruth-done")
    assert not reader.done


@pytest.mark.parametrize("before", ["RoundFailed: mechanism ", "ERROR :   ", "INFO :      halftruth-failed mechanism "])
def test_words_of_a_client_inside_a_line_deliver_nothing(before: str) -> None:
    reader = Lines()
    for line in (*log_lines(CELL, ["forged"]), "halftruth-done"):
        assert reader.feed(before + line) is None
    assert not reader.done


@pytest.mark.parametrize("rest", ["", "cell-1-2-3", "cell-1-2-3 1/1", "nowhere 1/1 AAAA", "cell-1-2-3 1/1 AAAA"])
def test_a_damaged_log_is_an_error(rest: str) -> None:
    with pytest.raises(RecordError):
        Lines().feed(f"halftruth-outcome {rest}")
