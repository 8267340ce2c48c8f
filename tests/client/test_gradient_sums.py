"""Exact sums of bounded gradients: blocks and compiled loops have the bits of one pass of numpy over all rows."""

import subprocess
import sys
from decimal import Decimal
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from client import gradient_sums as sums
from client import kernels_gradients
from client.compiled import PAYS
from client.gradients import GRADIENTS, gradients
from client.records import Records
from client.statistics import contributions
from protocol.grid import truncate
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import CLIP, L2, LINF, TRUNCATE, Bounded, sum_exponent
from protocol.trust import Trust

Floats = NDArray[np.float64]
DIMENSION = 5
SHAPES = [(norm, shape) for norm in (LINF, L2) for shape in (CLIP, TRUNCATE)]


def task(model: str, how: Bounded, n: int, **more: Decimal) -> Task:
    problem = Problem(DIMENSION, "records", sum_zero=False, bound=None, kind="records", model=model)
    mechanism = Mechanism.of("gaussian", epsilon=Decimal(1), threshold=Decimal(how.threshold), **more)
    asked = Task(bytes(32), Trust.CENTRAL, Unit.RECORD, problem, (mechanism,), n, Decimal(1), Decimal("1e-5"), 0, 1)
    return Task(
        **{**{name: getattr(asked, name) for name in asked.__dataclass_fields__}, "exponent": sum_exponent(asked, how)}
    )


def records(rows: int, most: int = 1, strange: bool = False) -> Records:
    random = np.random.default_rng(rows)
    x, y = random.standard_t(2, (rows, most, DIMENSION)), random.integers(0, 2, (rows, most)).astype(float)
    if strange:
        places = random.integers(0, rows, 40)
        x[places, 0, places % DIMENSION] = np.resize([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324], 40)
    return Records(x, y, None if most == 1 else random.integers(1, most + 1, rows))


def at_once(asked: Task, how: Bounded, held: Records, point: Floats, centre: Floats | None) -> Floats:
    """The definition."""
    found = gradients(asked.problem.model, held, point, centre)
    values = contributions(asked, how, found, np.arange(len(held)))
    assert asked.exponent is not None
    return truncate(values, asked.exponent).sum(axis=0) + 0.0


def both(monkeypatch: pytest.MonkeyPatch, asked: Task, how: Bounded, held: Records, centre: Floats | None) -> None:
    point, rows = np.linspace(-1, 1, DIMENSION), np.arange(len(held))
    expected = at_once(asked, how, held, point, centre)
    assert np.isfinite(expected).all() and (expected.any() or len(held) < 10)
    for fast in (kernels_gradients, None):

        def kernels(numbers: int, fast: ModuleType | None = fast) -> ModuleType | None:
            return fast

        monkeypatch.setattr(sums, "_kernels", kernels)
        found = sums.gradient_sums(asked, how, held, point, centre, rows)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("model", sorted(GRADIENTS))
@pytest.mark.parametrize(("norm", "shape"), SHAPES)
@pytest.mark.parametrize("n", [3, 8, 2 * sums.BLOCK + 13])
def test_bits_are_those_of_one_pass(monkeypatch: pytest.MonkeyPatch, model: str, norm: str, shape: str, n: int) -> None:
    how = Bounded(1.3, norm, shape)
    for centre in (None, np.linspace(0.5, -0.5, DIMENSION)):
        for strange in (False, True):
            both(monkeypatch, task(model, how, n), how, records(n, strange=strange), centre)


@pytest.mark.parametrize("model", sorted(GRADIENTS))
def test_holders_of_several_records_counted_rows_and_parts(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    how = Bounded(1.0)
    both(monkeypatch, task(model, how, 5000), how, records(5000, most=3), None)
    counted = Bounded(1.0, counted=0.5)
    monkeypatch.setattr(sums, "PART", 15 * kernels_gradients.TILE)
    both(monkeypatch, task(model, how, 5000), how, records(5000, strange=True), None)
    both(monkeypatch, task(model, counted, 5000, counted=Decimal("0.5")), counted, records(5000), None)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 20, 131])
def test_tiles_of_rows_of_any_width(width: int) -> None:
    """Turned whole, in part, with some columns twice, or one by one."""
    random, many = np.random.default_rng(width), 5 * kernels_gradients.TILE
    x, y, point = random.standard_normal((many, width)), random.standard_t(2, many), random.standard_normal(width)
    z, found, total = np.zeros(many), np.empty(many), np.zeros(width, dtype=np.int64)
    for column, factor in zip(x.T, point, strict=True):
        z += column * factor
    kernels_gradients.all_products(x, point, found)
    assert found.tobytes() == z.tobytes()
    values = (z - y)[:, None] * x - 0.1 * point
    for clips, bounded in ((True, np.clip(values, -1.5, 1.5)), (False, np.where(abs(values) > 1.5, 0.0, values))):
        total[:] = 0
        kernels_gradients.add_gradients(x, y, point, 0.1 * point, 1.5, clips, 2.0**30, total)
        assert (total == (bounded * 2.0**30).astype(np.int64).sum(axis=0)).all()
    for clips in (True, False):  # five tiles of such values could be more than doubles hold exactly
        with pytest.raises(ValueError, match="less than 2\\^53 units"):
            kernels_gradients.add_gradients(x, y, point, point, 1.5, clips, 2.0**51, total)
    for rows in (many - 1, many - kernels_gradients.TILE // 2):
        with pytest.raises(ValueError, match="whole tiles"):
            kernels_gradients.all_products(x[:rows], point, found[:rows])
        with pytest.raises(ValueError, match="whole tiles"):
            kernels_gradients.add_gradients(x[:rows], y, point, point, 1.5, True, 1.0, total)


def test_large_sums_use_the_compiler_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sums._kernels(PAYS) is kernels_gradients and sums._kernels(PAYS - 1) is None
    monkeypatch.delitem(sys.modules, "numba")
    assert sums._kernels(sums.ALONE - 1) is None


def test_a_node_pays_for_no_compiler() -> None:
    code = "import client.app, client.record_payloads, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
