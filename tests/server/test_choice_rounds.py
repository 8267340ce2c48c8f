"""Reports about choices that a server checks, and how far one label can move a sum of them."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from protocol.choice_law import ONE, PAIR, SUBSET, choice_law
from protocol.codec import encode_reply, encode_report, encode_task, identity
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Coins, Kind, Mechanism, Payload, Report, Task
from protocol.numerics import fingerprint
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.trust import Trust
from server.choice_designs import ChoiceDesigns
from server.collect import Collected, Mail, collect
from server.task_checks import check_task

SIZES = np.array([2, 3, 4], dtype=np.int32)
DESIGN = np.array([[0, 1, -1, -1], [2, 0, 1, -1], [0, 3, 1, 2]], dtype=np.int32)
PROBLEM = Problem(4, "items", True, None, DESIGN, "choice", "plackett-luce", 4, SIZES)


def task(name: str, epsilon: str = "0.2") -> Task:
    menu = Mechanism.of(name, epsilon=Decimal(epsilon))
    return Task(b"s" * 32, Trust.LOCAL, Unit.LABEL, PROBLEM, (menu,), 3, Decimal(epsilon), None, 0, 1)


def sent(asked: Task, values: Any, outcomes: int = 256, **changes: Any) -> Collected:
    """What a server makes of one report."""
    name = identity(encode_task(asked))
    law = choice_law(asked, asked.menu[0]).digest if asked.trust is Trust.LOCAL else b""
    payload = Payload(Kind.SYMBOLS, np.array(values, dtype=np.uint8), outcomes=outcomes)
    report = replace(Report(name, None, payload, asked.menu[0], law, Coins.OS, fingerprint()), **changes)
    return collect(asked, name, Mail.open([encode_reply([(encode_report(report), b"")])], [name]))


def test_good_reports_are_accepted() -> None:
    assert sent(task(ONE), [[1, 2, 3]]).symbols is not None
    assert sent(task(PAIR), [[1, 0, 1]], 2).symbols is not None
    sets = sent(task(SUBSET), [[[1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]]], 2)
    assert sets.symbols is not None and sets.symbols.shape == (1, 3, 4)
    clear = replace(task(ONE), trust=Trust.CLEAR, menu=(Mechanism("none"),), epsilon=None)
    assert sent(clear, [[1, 2, 3]]).symbols is not None


@pytest.mark.parametrize(
    ("name", "values", "outcomes", "why"),
    [
        (ONE, [[2, 0, 0]], 256, "below the number of choices"),
        (ONE, [[0, 3, 0]], 256, "below the number of choices"),
        (ONE, [[1, 0, 1]], 2, "symbols of shape"),
        (ONE, [[1, 0]], 256, "symbols of shape"),
        (PAIR, [[1, 0, 2]], 256, "symbols of shape"),
        (SUBSET, [[1, 0, 1]], 2, "symbols of shape"),
        (SUBSET, [[[1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]], 2, "sets of the size"),
        (SUBSET, [[[0, 0, 1, 0], [0, 0, 1, 0], [1, 0, 1, 0]]], 2, "sets of the size"),
        (SUBSET, [[[1, 0, 0], [0, 0, 1], [1, 0, 1]]], 2, "symbols of shape"),
    ],
)
def test_bad_reports_are_rejected(name: str, values: Any, outcomes: int, why: str) -> None:
    found = sent(task(name), values, outcomes)
    assert found.symbols is None and len(found.rejected) == 1 and why in found.rejected[0]


def test_another_channel_is_rejected() -> None:
    table = choice_law(task(ONE, "0.3"), task(ONE, "0.3").menu[0]).digest
    assert "hash differs" in sent(task(ONE), [[1, 2, 3]], table=table).rejected[0]
    other = replace(task(PAIR), study=b"t" * 32)
    table = choice_law(other, other.menu[0]).digest
    assert "hash differs" in sent(task(PAIR), [[1, 0, 1]], 2, table=table).rejected[0]


@pytest.mark.parametrize("radius", [None, 0.7])
@pytest.mark.parametrize("features", ["items", "gaussian"])
def test_one_label_moves_a_sum_by_the_sensitivity_at_most(radius: float | None, features: str) -> None:
    problem = (
        PROBLEM if features == "items" else Problem(3, "gaussian", False, None, None, "choice", "plackett-luce", 4)
    )
    power = exponent(3, row_bound(problem, radius))
    design = ChoiceDesigns(FeatureStore(5), problem, 3, 0).get(power, radius)
    units = (design.blocks * 2.0**-power).astype(np.int64).astype(object)
    worst = 0
    labels = list(itertools.product(*(range(size) for size in design.sizes.tolist())))
    for one, other in itertools.product(labels, repeat=2):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            gap = sum(units[row, a] - units[row, b] for row, (a, b) in enumerate(zip(one, other, strict=True)))
            worst = max(worst, int((gap * gap).sum()))
    assert design.sensitivity_squared == worst
    if radius is not None:
        assert worst <= (radius * 2.0**-power) ** 2 * (1 + 1e-9)


def central(**changes: Any) -> Task:
    menu = Mechanism.of("gaussian-statistic", epsilon=Decimal(1), delta=Decimal("1e-6"))
    power = exponent(3, row_bound(PROBLEM, None))
    asked = Task(b"s" * 32, Trust.CENTRAL, Unit.LABEL, PROBLEM, (menu,), 3, Decimal(1), Decimal("1e-6"), 0, 1)
    return replace(replace(asked, exponent=power), **changes)


def test_only_labels_are_protected_in_sums_of_choices() -> None:
    check_task(central())
    groups = np.arange(3, dtype=np.int32)
    asked = central(unit=Unit.LABELER, cap=1, groups=groups)
    with pytest.raises(StudyError, match="protected for a label"):
        check_task(asked)
    designs = ChoiceDesigns(FeatureStore(5), PROBLEM, 3, 0)
    assert asked.exponent is not None
    design = designs.get(asked.exponent, None)
    for wrong in (asked, central(exponent=asked.exponent + 1)):
        with pytest.raises(ValueError, match="a claim for a label"):
            designs.sensitivity_squared(wrong, design)


def test_rows_that_were_answered_keep_their_sizes() -> None:
    designs: Callable[..., Any] = ChoiceDesigns(FeatureStore(5), PROBLEM, 3, 0).get
    power = exponent(3, row_bound(PROBLEM, None))
    part = designs(power, None, np.array([0, 2]))
    whole = designs(power, None)
    assert part.sizes.tolist() == [2, 4] and (part.blocks == whole.blocks[[0, 2]]).all()
