"""Problems about choices: their rows in any split, on the wire, beside a run, and what is refused."""

import tomllib
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol.arms import CHOICE_ESTIMATORS, MECHANISMS
from protocol.choice_features import (
    blocks,
    default_span,
    packed,
    reduced_blocks,
    rounded_blocks,
    row_sizes,
    spans,
    unpacked,
)
from protocol.codec import decode_report, decode_task, encode_report, encode_task
from protocol.coins import Address, Stream
from protocol.errors import WireError
from protocol.features import differences, norms, row_bound
from protocol.grid import exponent
from protocol.mechanisms.subset_selection import SubsetChannel, subset_selection
from protocol.messages import Coins, Kind, Mechanism, Payload, Report, Task
from protocol.numerics import fingerprint
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.runconfig import read, write
from protocol.strict import StudyError
from protocol.study_file import parse
from protocol.trust import Trust

RNG = np.random.default_rng(3)
SIZES = np.array([3, 2, 4, 4, 2], dtype=np.int32)
ABSENT = np.arange(4) >= SIZES[:, None]
VALUES = np.where(ABSENT[:, :, None], 0.0, RNG.normal(size=(5, 4, 3)))
ITEMS = np.where(ABSENT, -1, np.argsort(RNG.random((5, 6)), axis=1)[:, :4]).astype(np.int32)


def choices(features: str = "gaussian", design: Any = None, sizes: Any = None, **fields: Any) -> Problem:
    asked = {"dimension": 3, "sum_zero": True, "bound": Decimal(2), "choices": 4, **fields}
    return Problem(features=features, design=design, sizes=sizes, kind="choice", model="plackett-luce", **asked)


PROBLEMS = {
    "gaussian": choices(),
    "sphere": choices("sphere", sum_zero=False),
    "values": choices("values", VALUES, SIZES),
    "all values": choices("values", RNG.normal(size=(5, 4, 3))),
    "items": choices("items", ITEMS, SIZES, dimension=6),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_do_not_depend_on_the_split(name: str) -> None:
    problem = PROBLEMS[name]
    whole = reduced_blocks(problem, 7, 5, 2, 0, 5)
    assert whole.shape == (5, 4, problem.reduced_dimension) and not whole[:, 0].any()
    for cut in range(1, 5):
        parts = [reduced_blocks(problem, 7, 5, 2, 0, cut), reduced_blocks(problem, 7, 5, 2, cut, 5)]
        assert (np.concatenate(parts) == whole).all()
    if problem.sizes is not None:
        assert not whole[ABSENT].any() and (row_sizes(problem, 1, 4) == SIZES[1:4]).all()
    assert np.abs(whole).max() <= row_bound(problem, None)


def test_two_choices_on_the_sphere_are_a_pair() -> None:
    pair = Problem(5, "sphere", True, None)
    two = choices("sphere", dimension=5, choices=2)
    address = Address(7, Stream.PROBLEM, 100, 3)
    assert (blocks(two, address, 20, 80)[:, 1] == differences(pair, address, 20, 80)).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_spans_and_weights(name: str) -> None:
    problem = PROBLEMS[name]
    rows, sizes = reduced_blocks(problem, 7, 5, 2, 0, 5), row_sizes(problem, 0, 5)
    for row, size, span in zip(rows, sizes, spans(rows, sizes), strict=True):
        assert span == pytest.approx(max(np.linalg.norm(a - b) for a in row[:size] for b in row[:size]), rel=1e-14)
    power = exponent(5, row_bound(problem, 0.5))
    found = rounded_blocks(rows, sizes, power, 0.5)
    assert found.weights is not None and (found.weights > 0).all() and (found.weights <= 1).all()
    assert (spans(found.rows, sizes) <= 0.5 + 2.0**power * 8).all()
    assert (norms(found.rows.reshape(-1, rows.shape[2])) <= row_bound(problem, 0.5)).all()
    assert default_span(problem, 5) > 0


def test_default_span_of_given_rows_is_their_root_mean_square() -> None:
    problem = PROBLEMS["values"]
    rows = reduced_blocks(problem, 0, 5, 0, 0, 5)
    assert default_span(problem, 5) == pytest.approx(np.sqrt(np.mean(spans(rows, SIZES) ** 2)), rel=1e-14)


@pytest.mark.parametrize("name", ["values", "all values", "items"])
def test_one_array_holds_design_and_sizes(name: str) -> None:
    problem = PROBLEMS[name]
    array = packed(problem)
    assert array is not None
    design, sizes = unpacked(array)
    again = choices(problem.features, design, sizes, dimension=problem.dimension)
    assert again.digest == problem.digest
    with pytest.raises(ValueError, match="expected choices of shape"):
        unpacked(array[0])


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_task_about_choices_survives_the_wire(name: str) -> None:
    menu = Mechanism.of("subset-selection", epsilon=Decimal(1))
    task = Task(b"s" * 32, Trust.LOCAL, Unit.LABEL, PROBLEMS[name], (menu,), 5, Decimal(1), None, 0, 2)
    raw = encode_task(task)
    found = decode_task(raw)
    assert found.problem.digest == PROBLEMS[name].digest and encode_task(found) == raw


def test_sets_travel_as_bits() -> None:
    values = RNG.integers(0, 2, size=(2, 5, 11)).astype(np.uint8)
    menu = Mechanism.of("subset-selection", epsilon=Decimal(1))
    sent = Report(b"t" * 32, None, Payload(Kind.SYMBOLS, values, outcomes=2), menu, b"d" * 32, Coins.OS, fingerprint())
    raw = encode_report(sent)
    found = decode_report(raw)
    assert (found.payload.values == values).all() and encode_report(found) == raw
    assert len(raw) < 2 * 5 * 2 + 250
    wide = Payload(Kind.SYMBOLS, values + np.uint8(1), outcomes=256)
    with pytest.raises(WireError, match="axes"):
        decode_report(encode_report(Report(b"t" * 32, None, wide, menu, b"d" * 32, Coins.OS, fingerprint())))


def wrong(values: NDArray[Any], place: tuple[int, ...], value: float) -> NDArray[Any]:
    changed = values.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("features", "design", "sizes", "fields", "message"),
    [
        ("gaussian", None, SIZES, {}, "each row of a design"),
        ("values", VALUES, SIZES[:4], {}, "each row of a design"),
        ("values", VALUES, SIZES.astype(np.int64), {}, "each row of a design"),
        ("values", VALUES, wrong(SIZES, (1,), 1), {}, r"sizes of rows in 2\.\.4"),
        ("values", VALUES, wrong(SIZES, (1,), 5), {}, r"sizes of rows in 2\.\.4"),
        ("values", VALUES, np.full(5, 4, dtype=np.int32), {}, "one spelling"),
        ("values", wrong(VALUES, (0, 3, 1), 1e-3), SIZES, {}, "zeros for the choices"),
        ("values", wrong(VALUES, (0, 1, 1), np.nan), SIZES, {}, "NaN or inf in row 0"),
        ("values", VALUES[:, :3], SIZES, {}, "shape"),
        ("values", VALUES[0], None, {}, "shape"),
        ("values", np.zeros((0, 4, 3)), None, {}, "at least one row"),
        ("values", np.array(1.0), None, {}, "at least one row"),
        ("items", ITEMS, None, {"dimension": 6}, "-1 exactly"),
        ("items", ITEMS, SIZES, {"dimension": 3}, "item numbers"),
        ("items", wrong(ITEMS, (0, 1), int(ITEMS[0, 0])), SIZES, {"dimension": 6}, "twice in row 0"),
        ("items", wrong(ITEMS, (0, 1), -1), SIZES, {"dimension": 6}, "-1 exactly"),
        ("gaussian", None, None, {"choices": 1}, "2 to 63 choices"),
        ("gaussian", None, None, {"choices": 64}, "2 to 63 choices"),
    ],
)
def test_problems_that_do_not_fit_are_refused(
    features: str, design: Any, sizes: Any, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        choices(features, design, sizes, **fields)


def test_kinds_and_models_go_together() -> None:
    for kind, model in (("pairwise", "plackett-luce"), ("choice", "btl"), ("ranking", "btl")):
        with pytest.raises(ValueError, match="kind and model"):
            Problem(3, "gaussian", False, None, kind=kind, model=model)
    with pytest.raises(ValueError, match="no sizes for pairs"):
        Problem(3, "gaussian", False, None, choices=3)


STUDY = """
study = { name = "small", seed = 1, repetitions = 2 }
problem = { kind = "choice", choices = 4, dimension = 3, features = "gaussian" }
grid = { n = [5], epsilon = [1.0], delta = [1e-5] }
arm = [{ trust = "local", estimator = "debiased" }]
"""


def study(problem: Problem | None = None, table: dict[str, Any] | None = None, **changes: Any) -> Any:
    content = tomllib.loads(STUDY, parse_float=Decimal)
    content["problem"] |= table or {}
    content["arm"][0] |= changes
    if problem is not None:
        bound = {} if problem.bound is None else {"bound": problem.bound}
        content["problem"] |= {"features": problem.features, "sum_zero": problem.sum_zero, **bound}
    return parse(content, problem)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_study_of_choices_comes_out_as_it_went_in(name: str) -> None:
    asked = study(PROBLEMS[name])
    assert read(write(asked)).study.fingerprint == asked.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": {"kind": "pairwise"}}, "choices"),
        ({"table": {"choices": 1}}, "choices"),
        ({"table": {"model": "btl"}}, "model"),
        ({"mechanism": "randomized-response"}, "mechanism"),
        ({"mechanism": "subset-selection", "estimator": "literal"}, "expected mechanism 'k-randomized-response'"),
        ({"estimator": "one-step"}, "estimator"),
        ({"ridge": "tempered"}, "ridge"),
        ({"estimator": "rr-map", "tau": "bound"}, "tau"),
        ({"averaging": "half"}, "averaging"),
        ({"trust": "central", "estimator": "mle", "norm": "unprojected"}, "norm"),
    ],
)
def test_studies_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study(**changes)


def test_every_arm_for_choices_can_be_asked_for() -> None:
    for trust, name in CHOICE_ESTIMATORS:
        word = "none" if trust is None else trust.label
        for mechanism in MECHANISMS[trust, "choice"]:
            if trust is Trust.SHUFFLED:  # features of one's own say whose a report is
                with pytest.raises(StudyError, match="so shuffling hides nobody"):
                    study(trust=word, mechanism=mechanism, estimator=name)
            elif name != "literal" or mechanism == "k-randomized-response":
                assert study(trust=word, mechanism=mechanism, estimator=name).arms[0].estimator == name


def test_channels_of_sets_that_do_not_fit_are_refused() -> None:
    for fields in ((1, 1, 5), (3, 3, 5), (3, 0, 5), (3, 1, 0), (3, 1, 1 << 63)):
        with pytest.raises(ValueError, match="subset < choices"):
            SubsetChannel(*fields)
    with pytest.raises(ValueError, match="at least 2"):
        subset_selection(Decimal(1), 1)
    with pytest.raises(ValueError, match="epsilon"):
        subset_selection(Decimal("1e-10"), 3)
