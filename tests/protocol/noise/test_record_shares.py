"""Terms of tasks about records whose noise comes in shares: what a member checks before it answers, over all rounds."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.arms import DISTRIBUTED
from protocol.gaussian import gaussian_mu
from protocol.messages import Mechanism, Runs, Task
from protocol.noise.accounting import Shares, delta_bound, keeps, least_variance
from protocol.noise.binomial import shape
from protocol.noise.losses import convolved_delta
from protocol.noise.record_terms import bounds, terms_of_records
from protocol.noise.terms import FINE, as_decimal
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import L2, LINF, TRUNCATE, Bounded, squared_sensitivity
from protocol.strict import StudyError
from protocol.trust import Trust
from server.task_shares import records_in_shares

DELTA = Decimal("0.00001")
MEAN = Problem(4, "records", False, None, kind="records", model="mean")


def asked_by(how: Bounded, law: str = "binomial", n: int = 500, epsilon: str = "1", **changes: Any) -> Task:
    """The task that a server asks for sums bounded so, of whose rows nine of ten are honest."""
    level = Decimal(epsilon)
    flags = {"l2": Decimal(1)} if how.norm == L2 else {}
    flags |= {"truncate": Decimal(1)} if how.shape == TRUNCATE else {}
    flags |= {"rounds": Decimal(how.rounds)} if how.rounds > 1 else {}
    counted = {"honest": Decimal("0.9"), "least": Decimal(1), "threshold": Decimal(how.threshold)}
    item = Mechanism.of(law, epsilon=level, delta=DELTA, **counted, **flags)
    return records_in_shares(
        Task(b"s" * 32, Trust.DISTRIBUTED, Unit.RECORD, MEAN, (item,), n, level, DELTA, 0, 1, **changes), how
    )


def changed(task: Task, **parameters: Decimal | None) -> Task:
    (item,) = task.menu
    values = {name: value for name, value in (dict(item.parameters) | parameters).items() if value is not None}
    return replace(task, menu=(Mechanism.of(item.name, **values),))


HOWS = [Bounded(2.5), Bounded(0.004, L2, rounds=7), Bounded(3e6, L2, TRUNCATE), Bounded(1.0, rounds=3)]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("epsilon", ["0.1", "8"])
def test_noise_is_a_gaussian_one_s_over_all_rounds(how: Bounded, epsilon: str) -> None:
    task = asked_by(how, epsilon=epsilon)
    terms = terms_of_records(task, task.menu[0])
    assert terms.how == how and terms.shares.honest == 450 and terms.shares.dimension == 4
    assert task.exponent is not None
    squared = squared_sensitivity(how, task.exponent, 4)
    gaussian = how.rounds * squared / Fraction(gaussian_mu(Decimal(epsilon), DELTA)) ** 2
    assert terms.sensitivity_squared == squared
    assert gaussian <= terms.shares.variance <= gaussian * (1 + Fraction(1, 1 << 16)) + 450
    assert 2.0 ** (2 * FINE) <= terms.shares.variance <= 2.0 ** (2 * FINE + 2.1)


@pytest.mark.parametrize("law", DISTRIBUTED)
def test_each_law_keeps_its_claim(law: str) -> None:
    task = asked_by(Bounded(2.0, rounds=4), law)
    terms = terms_of_records(task, task.menu[0])
    together = Shares(law, terms.shares.variance, 450, 4 * 4)
    assert keeps(together, Decimal(1), DELTA, 4 * terms.sensitivity_squared)
    less = as_decimal(Fraction(math.floor(terms.shares.variance * Fraction(99, 100) / 225) * 225))
    with pytest.raises(ValueError, match="variance that keeps"):
        terms_of_records(*taken(changed(task, variance=less)))


def taken(task: Task) -> tuple[Task, Mechanism]:
    return task, task.menu[0]


@pytest.mark.parametrize(("rounds", "shifts"), [(1, (5, -2)), (3, (4,)), (2, (3, 2))])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_claimed_delta_is_not_below_the_exact_one_of_all_rounds(
    rounds: int, shifts: tuple[int, ...], epsilon: str
) -> None:
    """Rounds whose questions do not depend on earlier sums: their losses convolve."""
    squared, shares = sum(shift * shift for shift in shifts), Shares("binomial", Fraction(100), 1, len(shifts) * rounds)
    claimed = delta_bound(shares, Decimal(epsilon), rounds * squared)
    exact = convolved_delta(shape(100.0), shifts * rounds, float(epsilon), step=2e-4)
    assert 0 < exact <= claimed + 1e-12 and claimed < 5 * exact + 1e-6


def coarse(rounds: int, norm: str) -> Task:
    """A task on a grid 2^6 times as coarse, with the noise for it: tables of its law are short."""
    how = Bounded(2.0, norm, rounds=rounds)
    task = asked_by(how)
    assert task.exponent is not None
    power = task.exponent + 6
    squared = bounds(how, power, 4)[2]
    variance = least_variance("binomial", Decimal(1), DELTA, rounds * squared, 4 * rounds, 450)
    return replace(changed(task, variance=as_decimal(variance)), exponent=power)


TASKS = {(rounds, norm): coarse(rounds, norm) for rounds in (1, 6) for norm in (LINF, L2)}


@given(
    st.sampled_from(sorted(TASKS)),
    st.integers(0, 5),
    st.floats(1.5, 100),
    st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_a_claim_that_noise_does_not_keep_is_refused(key: tuple[int, str], what: int, factor: float, by: int) -> None:
    """Whatever makes the noise too small for its claim: a member relies on nobody."""
    task, more = TASKS[key], Decimal(f"{factor:.6g}")
    terms_of_records(*taken(task))
    values = dict(task.menu[0].parameters)
    rounds = values.get("rounds", Decimal(1))
    assert task.exponent is not None
    less = math.floor(Fraction(values["variance"]) / Fraction(more) / 225) * 225
    wrong = [
        changed(task, variance=Decimal(less)),
        changed(task, threshold=values["threshold"] * more),
        changed(task, rounds=rounds + by),
        replace(task, exponent=task.exponent - by),
        replace(changed(task, epsilon=Decimal(1) / more), epsilon=Decimal(1) / more),
        replace(changed(task, delta=DELTA / more), delta=DELTA / more),
    ][what]
    with pytest.raises(ValueError, match="expected"):
        terms_of_records(*taken(wrong))


NUMBERS = [Decimal(text) for text in ("0", "-1", "0.5", "1e-30", "1e30", "NaN", "Infinity", "3", "1e400")]


@given(st.sampled_from(sorted(TASKS)), st.text("abcdehilnorstuv2", max_size=9), st.sampled_from([None, *NUMBERS]))
@settings(max_examples=80, deadline=None)
def test_parameters_that_are_wrong_raise_a_value_error(key: tuple[int, str], name: str, value: Decimal | None) -> None:
    task = TASKS[key]
    for parameter in (name, *dict(task.menu[0].parameters)):
        wrong = changed(task, **{parameter: value})
        if wrong.menu == task.menu:
            continue
        if parameter in ("rounds", "l2", "truncate") and value in (None, 1, 3):
            continue  # another task, whose noise may do
        if (parameter, value) in (("threshold", NUMBERS[2]), ("threshold", NUMBERS[3]), ("least", None)):
            continue
        try:
            terms_of_records(*taken(wrong))
        except ValueError:
            continue
        # What is left asks for more noise, or for less to hide.
        now, before = dict(wrong.menu[0].parameters), dict(task.menu[0].parameters)
        assert now["variance"] >= before["variance"] or now["threshold"] <= before["threshold"]
        assert now["honest"] <= before["honest"]


@pytest.mark.parametrize(
    "change",
    [
        {"unit": Unit.ADDED_RECORD},
        {"unit": Unit.ADDED_HOLDER},
        {"unit": Unit.LABEL},
        {"cap": 2},
        {"coordinates": Runs(((0, 1, 2),))},
        {"exponent": None},
        {"exponent": -(1 << 31)},
        {"exponent": 901},
        {"modulus": 12},
        {"modulus": 0},
        {"trust": Trust.CENTRAL},
        {"epsilon": Decimal(2)},
        {"round": 6},
        {"n": 400},
        {"problem": replace(MEAN, kind="pairwise", model="btl", features="gaussian")},
    ],
)
def test_tasks_that_are_no_sums_under_masks_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        terms_of_records(*taken(replace(TASKS[6, LINF], **change)))


def test_more_than_shares_can_do_is_said() -> None:
    with pytest.raises(StudyError, match=r"2\^(29|52)"):
        asked_by(Bounded(1.0), n=1 << 45)
    with pytest.raises(StudyError, match="epsilon <= 40"):
        asked_by(Bounded(1.0), epsilon="41")


def test_residues_of_a_group_are_those_of_its_rows() -> None:
    task = asked_by(Bounded(1.0), rows=Runs.of(range(100, 200)))
    terms = terms_of_records(*taken(task))
    assert terms.shares.honest == 90 and task.modulus < asked_by(Bounded(1.0)).modulus
