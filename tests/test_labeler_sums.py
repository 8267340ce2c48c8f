"""Sums of whole labelers over the border: none moves a sum further than the server's noise is made for."""

import time
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.labels import Labels
from client.ledger import DiskLedger
from client.policy import Policy
from client.rows import answerable
from client.sources.loading import read_table
from client.sources.table import Table
from protocol.codec import decode_reply, encode_task
from protocol.features import MOST_IN_PAIRS, group_norm, group_weights, reduced_rows, row_bound
from protocol.grid import exponent, to_integers
from protocol.messages import Mechanism, Refusal, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.shaping import SHAPED
from protocol.store import FeatureStore
from protocol.study import Arm, Cell, Grid, Study
from protocol.terms import TIE, row_exponent
from protocol.trust import Trust
from server.designs import Design, Designs
from server.mechanisms.discrete_gaussian import SMALLEST_SENSITIVITY
from server.mechanisms.sensitivity import squared_group_norm
from server.tasks import for_labelers, offers, with_ties

POLICY = Policy(
    trusts=frozenset({Trust.CENTRAL}),
    max_epsilon=None,
    units=frozenset({Unit.LABEL, Unit.LABELER}),
    ties_public=True,
)
SCALES = (0.0, 1.0, -1.0, 0.6, 0.8, 1e-13, -1e-13, 1e9, 3e-5)


def table_of(rows: Iterable[tuple[str, str, str]], features: NDArray[np.float64], folder: Path) -> Table:
    """A file of (labeler, item_a, item_b), all won by item_a; item number j is described by features[j]."""
    path = folder / "votes.csv"
    lines = ["labeler,item_a,item_b,winner", *(f"{who},{one},{other},item_a" for who, one, other in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(path, False)
    places = np.array([int(name[1:]) for name in table.items])
    return replace(table, features=features[places], feature_names=tuple("abcdefgh"[: features.shape[1]]))


def central(table: Table, cap: int, radius: Decimal | None, ties: Ties) -> Task:
    """A task for exact sums about the rows of a file that count: for labels without a cap, else for labelers."""
    name = "gaussian-statistic" if radius is None else "gaussian-statistic-clipped"
    arm = Arm(Trust.CENTRAL, name, "mle", () if radius is None else (("radius", radius),))
    grid = Grid((len(table.pairs),), (Decimal(1),), (Decimal("1e-5"),))
    (offer,) = offers(Study("s", 0, 1, table.problem, grid, (arm,)), Cell(len(table.pairs), 0, 1))
    assert offer.task is not None
    task = with_ties(offer.task, ties)
    if cap:
        task = for_labelers(task, cap, table.owners.astype(np.int32))
    return replace(task, rows=Runs.of(answerable(task, table).tolist()))


def shaped(task: Task, matrix: NDArray[np.float64]) -> Task:
    """The same clipped task for mapped rows; no claim rests on what the map is."""
    (item,) = task.menu
    radius = item.get("radius")
    assert radius is not None
    power = exponent(task.n, row_bound(task.problem, float(radius), shaped=True)) - (task.ties is Ties.HALF)
    return replace(task, menu=(Mechanism(SHAPED, item.parameters),), map=matrix, exponent=power)


def exact_sum(table: Table, task: Task, values: NDArray[np.uint8]) -> NDArray[np.int64]:
    """What a node of this file sends for such labels, in units of the task's grid."""
    with TemporaryDirectory() as folder:
        ledger = DiskLedger(Path(folder) / "ledger.sqlite")
        node = Node(replace(table, values=Labels(values)), POLICY, ledger, "os", FeatureStore(None))
        reply = decode_reply(answer(encode_task(task), node))
    assert not isinstance(reply, Refusal), reply
    (signed,) = reply
    assert task.exponent is not None
    return to_integers(np.asarray(signed.report.payload.values[0, 0], dtype=np.float64), task.exponent)


def design_of(table: Table, task: Task) -> tuple[Design, int]:
    """What the server makes of the same public facts: rows, and the squared sensitivity in units of the task's grid."""
    radius = task.menu[0].get("radius")
    designs = Designs(FeatureStore(None), 0, task.problem, task.n, 0)
    rows = None if task.rows is None or task.rows.count == task.n else task.rows.numbers()
    design = designs.get(row_exponent(task), None if radius is None else float(radius), rows, task.groups, task.map)
    return design, designs.sensitivity_squared(task, design)


@st.composite
def hostile_files(draw: st.DrawFn) -> Table:
    """15 answers of three labelers about items whose features repeat, oppose, vanish, dominate or have norm 1."""
    vectors = st.lists(st.sampled_from(SCALES), min_size=2, max_size=2)
    features = np.array(draw(st.lists(vectors, min_size=6, max_size=6)))
    owners = draw(st.lists(st.sampled_from("abc"), min_size=15, max_size=15))
    pairs = zip(owners, combinations(range(6), 2), strict=True)
    with TemporaryDirectory() as folder:
        return table_of([(owner, f"i{a}", f"i{b}") for owner, (a, b) in pairs], features, Path(folder))


@settings(max_examples=40)
@given(
    table=hostile_files(),
    cap=st.sampled_from([0, 1, 3, 15]),
    radius=st.sampled_from([None, Decimal(1), Decimal("1e-12"), Decimal(10**10)]),
    ties=st.sampled_from([Ties.COIN, Ties.HALF, Ties.DROP]),
    others=st.lists(st.sampled_from([0, 1, TIE]), min_size=15, max_size=15),
    row=st.integers(0, 14),
    matrix=st.sampled_from([None, [[1.0, 0.0], [0.0, 1.0]], [[1e-3, 0.0], [1e9, 7.0]], [[1e80, 0.0], [-1.0, 1e-80]]]),
)
def test_no_answers_of_one_labeler_move_the_sum_further_than_its_sensitivity(
    table: Table,
    cap: int,
    radius: Decimal | None,
    ties: Ties,
    others: list[int],
    row: int,
    matrix: list[list[float]] | None,
) -> None:
    """Neighbours at their worst: all answers of the unit of some row turn from against its direction to along it."""
    task = central(table, cap, radius, ties)
    if matrix is not None and radius is not None:
        task = shaped(task, np.array(matrix))
    design, squared = design_of(table, task)
    assert task.rows is not None
    asked = task.rows.numbers()
    row %= len(asked)
    units = table.owners[asked] if cap else asked
    own = units == units[row]
    # Rows left out as public ties are not asked for; a tie elsewhere throws a coin of its own, so none is thrown here.
    fixed = np.array(others, dtype=np.uint8) % (3 if ties is Ties.HALF else 2)
    along, against = fixed.copy(), fixed.copy()
    along[asked[own]] = design.rows[own] @ design.rows[row] > 0
    against[asked[own]] = 1 - along[asked[own]]
    moved = exact_sum(table, task, along) - exact_sum(table, task, against)
    assert sum(int(value) ** 2 for value in moved) <= squared
    if not cap and squared > SMALLEST_SENSITIVITY**2:  # exact for a label: the longest row gets there
        lengths = [sum(int(k) ** 2 for k in to_integers(v, design.exponent)) for v in design.rows]
        assert max(lengths) << 2 * (design.exponent - (task.exponent or 0)) == squared


@pytest.mark.parametrize("count", [MOST_IN_PAIRS, MOST_IN_PAIRS + 1])
def test_both_bounds_hold_and_neither_is_worse_than_the_triangle_inequality(count: int) -> None:
    """Against the signs that align rows with a direction, which reach most of what is possible."""
    rng = np.random.Generator(np.random.Philox(3))
    rows = rng.integers(-(1 << 40), 1 << 40, size=(count, 3))
    rows[::5] = -rows[1]
    rows[2::7] = [1 << 41, 0, 0]
    bound = squared_group_norm(rows * 2.0**-45, -45)
    for direction in rng.normal(size=(50, 3)):
        moved = (np.where(rows @ direction > 0, 1, -1)[:, None] * rows).sum(axis=0).tolist()
        assert sum(value**2 for value in moved) <= bound
    norms = np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1))
    assert bound <= norms.sum() ** 2 * (1 + 1e-9)
    assert group_norm(rows * 2.0**-45) == pytest.approx(np.sqrt(float(bound)) * 2.0**-45, rel=1e-12)


def test_a_labeler_of_20000_rows_takes_little_memory_and_the_same_bits_on_both_sides(tmp_path: Path) -> None:
    """Pairs of rows would take 3 GB, twice."""
    pairs = list(combinations(range(201), 2))[:20_000]
    features = np.random.Generator(np.random.Philox(5)).normal(size=(201, 4))
    table = table_of([("ann", f"i{a}", f"i{b}") for a, b in pairs], features, tmp_path)
    task = central(table, 20_000, Decimal(2), Ties.COIN)
    own = reduced_rows(task.problem, 0, 20_000, 0, 0, 20_000)
    assert task.groups is not None
    start = time.perf_counter()
    tracemalloc.start()
    weights = group_weights(own, task.groups, 2.0)
    design, squared = design_of(table, task)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26
    assert time.perf_counter() - start < 20
    assert design.weights is not None
    assert design.weights.tobytes() == weights.tobytes()
    assert task.exponent is not None
    assert 1.9 < np.sqrt(float(squared)) * 2.0**task.exponent < 2 * (1 + 1e-9)
    values = (np.arange(20_000) % 2).astype(np.uint8)
    turned = np.flatnonzero(values)  # every row of this file names its pair in the order of names
    assert (
        exact_sum(table, task, values).tolist() == to_integers(design.rows[turned].sum(axis=0), task.exponent).tolist()
    )
