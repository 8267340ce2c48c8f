"""Small forms of all figures: their sides compute the same, which is how kernels meet their oracles, and they run."""

import json
import re

import pytest

from studies.bench.figure import Prepared, Side
from studies.bench.figures import FIGURES
from studies.bench.measure import measure
from studies.bench.row import LIMIT, OURS, PEER

LONG = {"figure1", "second-run"}  # several processes that run studies: left to `make check-slow`


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in FIGURES])
def test_small_form_agrees_and_runs(name: str) -> None:
    figure = FIGURES[name]
    rows = measure(figure, 1, small=True)
    assert [row.role for row in rows].count(OURS) == 1 and rows[0].role == OURS
    assert {row.role for row in rows[1:]} <= {PEER, LIMIT}
    assert len({row.side for row in rows}) == len(rows), "a side's name finds it in a recorded run"
    assert all(row.value > 0 and row.least <= row.value <= row.most and row.ratio > 0 for row in rows)
    json.dumps([row.unit for row in rows])


def test_names_are_words_that_a_shell_takes() -> None:
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in FIGURES)
    assert all(figure.what and "\n" not in figure.what for figure in FIGURES.values())


def test_what_a_figure_shows() -> None:
    side = Side("nothing", lambda: None)
    rate = Prepared(side, (), 3e6, "M labels/s", lambda: None)
    assert rate.figure(2.0) == 1.5
    assert Prepared(side, (), 3e6, "clients/s", lambda: None).figure(2.0) == 1.5e6
    assert Prepared(side, (), 3e6, "s", lambda: None).figure(2.0) == 2.0
