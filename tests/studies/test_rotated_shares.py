"""Records that are turned before they are summed under masks: the same means, with fewer bits a number."""

import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.gradients import gradients
from client.record_choice import execute, understand_records
from client.residues import noise_of
from client.rows import answerable
from client.statistics import contributions
from protocol.messages import Task
from protocol.noise.record_terms import terms_of_records
from protocol.noise.rotation import coordinate_bound, restored, signs_of
from protocol.record_terms import L2, Bounded, squared_sensitivity
from protocol.strict import StudyError
from protocol.study import Cell
from protocol.trust import Trust
from server.evidence import Heard
from server.listening import listen
from server.record_rounds import opening
from studies.in_process import InProcess, in_process, run_cell
from studies.load import Loaded, build

FILE = """
study = { name = "turned", seed = 11, repetitions = 2 }
problem = { kind = "records", model = "mean", dimension = DIMENSION, bound = 4 }
records = { features = "student-t(3) + 1", tail = 1, moment = 4 }
grid = { n = [ROWS], epsilon = [1.0], delta = [1e-5] }
arm = [ARMS]
"""
MEAN = '{ trust = "distributed", estimator = "mean", norm = "l2", rotate = "hadamard" }'
PLAIN = MEAN.replace("hadamard", "none")
DESCENT = MEAN.replace('"mean"', '"descent", rounds = 2')


def loaded_of(*arms: str, dimension: int = 5, n: int = 120) -> Loaded:
    text = FILE.replace("DIMENSION", str(dimension)).replace("ROWS", str(n)).replace("ARMS", ", ".join(arms))
    return build(tomllib.loads(text, parse_float=Decimal), Path())


def heard_of(loaded: Loaded, clients: int = 3) -> tuple[InProcess, Task, Heard]:
    room = in_process(loaded.study, loaded.theta, clients)
    (task,) = opening(loaded.study, Cell(loaded.study.grid.n[0], 0, 2), room.server)
    return room, task, listen([task], room.replies)[task]


def test_the_same_bits_whoever_holds_the_rows() -> None:
    loaded = loaded_of(DESCENT)
    found = [list(run_cell(loaded.study, loaded.theta, Cell(120, 0, 2), clients)) for clients in (1, 2)]
    assert [one.theta.tobytes() for one in found[0]] == [one.theta.tobytes() for one in found[1]]
    assert all(one.theta.shape == (5,) and np.abs(one.theta - 1).max() < 2 for one in found[0])


def test_what_is_opened_is_the_turned_sum_and_comes_back() -> None:
    """Of eight numbers for five: less its noise and turned back it is the sum of the bounded records.

    Each row's rounding is off by less than a unit a number, and by as much as a row that got too long is shortened: at
    most 16 units here. Turning keeps lengths.
    """
    room, task, heard = heard_of(loaded_of(MEAN))
    terms = terms_of_records(task, task.menu[0])
    assert terms.how.rotate and terms.shares.dimension == 8 and heard.collected.sums is not None
    assert heard.collected.sums.shape == (2, 8)
    for repetition in range(2):
        exact, noise = np.zeros(5), np.zeros(8)
        for node in room.nodes:
            rows = answerable(task, node.source)
            records = node.source.records(task, repetition, rows)  # type: ignore[union-attr]
            exact += contributions(task, terms.how, gradients("mean", records, np.zeros(5), None), rows).sum(axis=0)
            noise += noise_of(terms.shares, rows, node.draws(task, repetition))
        sums = heard.collected.sums[repetition] - noise * 2.0**terms.power
        back = restored(sums[None], signs_of(task, repetition), 5)[0]
        assert np.linalg.norm(back - exact) < 120 * (8**0.5 + 16) * 2.0**terms.power
        assert np.linalg.norm(exact) > 10 * np.linalg.norm(back - exact)


def test_sums_of_long_vectors_need_fewer_bits() -> None:
    """At d = 1,000 two bits of 24 a number, for 24 numbers more; the noise is as large, and its claim the same."""
    loaded = loaded_of(PLAIN, MEAN, dimension=1000, n=3000)
    room = in_process(loaded.study, loaded.theta, 1)
    plain, turned = opening(loaded.study, Cell(3000, 0, 2), room.server)
    assert (plain.modulus, turned.modulus) == (1 << 24, 1 << 22)
    both = [terms_of_records(task, task.menu[0]) for task in (plain, turned)]
    assert [terms.shares.dimension for terms in both] == [1000, 1024]
    assert both[0].power == both[1].power
    assert float(both[1].shares.variance / both[0].shares.variance) == pytest.approx(1, rel=1e-3)
    longest = 3000 * coordinate_bound(both[1].how.threshold / 2.0 ** both[1].power, 1000)
    assert turned.modulus / 2 > longest + 8 * float(both[1].shares.variance) ** 0.5


def test_one_row_moves_a_turned_sum_no_farther() -> None:
    """Privacy relies on no sign: the bound of lengths is kept in whole numbers."""
    _, task, _ = heard_of(loaded_of(MEAN), 1)
    terms = terms_of_records(task, task.menu[0])
    assert terms.longest is not None and terms.sensitivity_squared >= 4 * terms.longest
    assert terms.sensitivity_squared >= squared_sensitivity(Bounded(terms.how.threshold, L2), terms.power, 8)


def test_only_lengths_turn_and_only_under_masks() -> None:
    with pytest.raises(StudyError, match="norm = 'l2' beside rotate"):
        loaded_of(MEAN.replace('norm = "l2", ', ""))
    with pytest.raises(StudyError, match="rotate"):
        loaded_of(MEAN.replace("distributed", "central"))
    _, task, _ = heard_of(loaded_of(MEAN), 1)
    parameters = dict(task.menu[0].parameters)
    for wrong in ({"rotate": Decimal(2)}, {"rotate": Decimal(0)}, {"l2": None}):
        values = {name: value for name, value in (parameters | wrong).items() if value is not None}
        menu = (type(task.menu[0]).of(task.menu[0].name, **values),)
        with pytest.raises(ValueError, match="rotate"):
            terms_of_records(replace(task, menu=menu), menu[0])
    central = replace(task, trust=Trust.CENTRAL, modulus=0)
    menu = (
        type(task.menu[0]).of(
            "gaussian", **{k: parameters[k] for k in ("epsilon", "delta", "threshold", "l2")}, rotate=Decimal(1)
        ),
    )
    understand_records(replace(central, menu=menu))
    with pytest.raises(Exception, match="expected parameters out of"):
        execute(replace(central, menu=menu))
