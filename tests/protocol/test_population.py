"""Who asks for which level: by an address, whatever the split, in the shares that were said."""

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from protocol.arms import MENU, Arm
from protocol.population import Population, levels_of
from protocol.problem import Problem
from protocol.runconfig import read, write
from protocol.strict import StudyError
from protocol.study import Grid, Study, describe
from protocol.study_file import parse
from protocol.trust import Trust

THREE = Population((Decimal("0.5"), Decimal(1), Decimal(4)), (Decimal("0.25"), Decimal("0.25"), Decimal("0.5")))
STUDY = Study(
    name="levels",
    seed=3,
    repetitions=2,
    problem=Problem(3, "gaussian", True, Decimal(3)),
    grid=Grid((100,), (), ()),
    arms=(Arm(Trust.LOCAL, MENU, "debiased"),),
    population=THREE,
)


def test_a_row_asks_for_one_level_however_rows_are_split() -> None:
    whole = levels_of(THREE, 7, 1000, 0, 1000)
    for cuts in ((0, 1000), (0, 1, 2, 3, 1000), (0, 333, 334, 998, 1000)):
        parts = [levels_of(THREE, 7, 1000, start, stop) for start, stop in pairwise(cuts)]
        assert np.array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(levels_of(THREE, 8, 1000, 0, 1000), whole)


def test_levels_have_their_shares() -> None:
    """Each count within 6 standard deviations: a false alarm has probability below 3 * 2e-9."""
    n = 40_000
    counts = np.bincount(levels_of(THREE, 7, n, 0, n), minlength=3)
    shares = np.array([0.25, 0.25, 0.5])
    assert (np.abs(counts - n * shares) < 6 * np.sqrt(n * shares * (1 - shares))).all()


@pytest.mark.parametrize(
    ("levels", "shares"),
    [
        (("1",), ("1",)),
        (("1", "2"), ("1",)),
        (("2", "1"), ("0.5", "0.5")),
        (("1", "1.0"), ("0.5", "0.5")),
        (("1", "2"), ("0.5", "0.4")),
        (("1", "2"), ("0", "1")),
        (("1", "2"), ("1.5", "-0.5")),
        (("1", "2"), ("0.1234567890123456", "0.8765432109876544")),
    ],
)
def test_a_population_has_to_be_one(levels: tuple[str, ...], shares: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Population(tuple(map(Decimal, levels)), tuple(map(Decimal, shares)))


def test_a_study_travels_with_its_population() -> None:
    assert read(write(STUDY)).study.fingerprint == STUDY.fingerprint
    assert describe(STUDY)["population"] == {"levels": ["0.5", "1", "4"], "shares": ["0.25", "0.25", "0.5"]}
    alone = replace(STUDY, population=None)
    assert "population" not in describe(alone)
    assert alone.fingerprint != STUDY.fingerprint


def content(**changes: Any) -> dict[str, Any]:
    tables: dict[str, Any] = {
        "study": {"name": "levels", "seed": 1, "repetitions": 1},
        "problem": {"kind": "pairwise", "dimension": 3, "features": "gaussian"},
        "grid": {"n": [10]},
        "arm": [{"trust": "local", "mechanism": MENU, "estimator": "rr-mle"}],
        "population": {"levels": [1, 2], "shares": [Decimal("0.5"), Decimal("0.5")]},
    }
    return tables | changes


def test_a_menu_needs_levels_and_an_estimator_that_weighs_them() -> None:
    assert parse(content()).population == Population((Decimal(1), Decimal(2)), (Decimal("0.5"), Decimal("0.5")))
    without = content()
    del without["population"]
    for bad, message in [
        (without, "population. expected the levels that the menu"),
        (content(population={"levels": [1, 2]}), "expected the key 'shares'"),
        (content(population={"levels": 1, "shares": [1]}), "population. expected 2..16 levels"),
        (content(population={"levels": [0, 1], "shares": [1, 0]}), "levels > 0"),
        (content(arm=[{"trust": "local", "mechanism": MENU, "estimator": "notebook-sgd"}]), "weighs reports by"),
        (content(arm=[{"trust": "local", "mechanism": MENU, "estimator": "debiased-trimmed-mean"}]), "weighs"),
        (content(arm=[{"trust": "local", "estimator": "debiased", "weights": "equal"}]), "whose levels differ"),
    ]:
        with pytest.raises(StudyError, match=message):
            parse(bad)
