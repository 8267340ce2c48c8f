"""What a member adds to a masked sum of records: in one form whatever they are, and no further apart than its noise."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from client.choice import TaskInvalid
from client.draws import AddressedDraws
from client.record_choice import execute, understand_records
from client.record_payloads import AskedRecords
from protocol.messages import Kind, Mechanism, Task
from protocol.noise.record_terms import terms_of_records
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_terms import CLIP, L2, LINF, TRUNCATE, Bounded
from protocol.secure.masks import centred
from protocol.trust import Trust
from server.task_shares import records_in_shares
from studies.audit.given import GivenRecords

DELTA = Decimal("0.00001")
SIDES = [(2.999999, 3.0), (3.0, -3.0), (-4.0, 1e-9), (1e100, 1e100), (-1e100, 0.0), (-1e100, -1e100), (5e-324, -5e-324)]
TAME = [(1.0, 0.0), (0.0, 1.0), (0.25, 1.0)]


def task_of(model: str, how: Bounded) -> Task:
    flags = {"l2": Decimal(1)} if how.norm == L2 else {}
    flags |= {"truncate": Decimal(1)} if how.shape == TRUNCATE else {}
    parameters = {"epsilon": Decimal(1), "delta": DELTA, "threshold": Decimal(repr(how.threshold))}
    counted = {"honest": Decimal(1), "least": Decimal(1)}
    plain = Task(
        study=bytes(32),
        trust=Trust.DISTRIBUTED,
        unit=Unit.RECORD,
        problem=Problem(2, "records", False, None, kind="records", model=model),
        menu=(Mechanism.of("binomial", **parameters, **counted, **flags),),
        n=4,
        epsilon=Decimal(1),
        delta=DELTA,
        first_repetition=0,
        repetitions=1,
        theta=np.zeros((1, 2)) if model == "mean" else np.ones((1, 2)),
    )
    return records_in_shares(plain, how)


def added(task: Task, side: tuple[float, float]) -> np.ndarray:
    """What four rows add, with the same coins each time, as integers next to 0."""
    understand_records(task)
    features = np.array([side, *TAME])
    responses = None if task.problem.model == "mean" else np.array([side[1] > 0, 1, 0, 1], dtype=np.float64)
    source = GivenRecords(features, responses)
    asked = AskedRecords(task, execute(task), np.arange(4), source, lambda _: AddressedDraws(3, 4, 0))
    payload = asked.unmasked()
    assert payload.kind is Kind.RESIDUES and payload.values.shape == (1, 2) and payload.values.dtype == np.uint64
    return centred(payload.values[0].astype(np.uint64), task.modulus)


def reached(model: str, how: Bounded) -> float:
    task = task_of(model, how)
    sums = [added(task, side) for side in SIDES]
    most = terms_of_records(task, task.menu[0]).sensitivity_squared
    gaps = [sum(int(v) ** 2 for v in (one - other).tolist()) for one in sums for other in sums]
    assert max(gaps) <= most
    return max(gaps) / most


@pytest.mark.parametrize("norm", [LINF, L2])
def test_no_replaced_record_moves_a_sum_further_than_its_noise_is_made_for(norm: str) -> None:
    """Warnings are errors here: an overflow that raised one would be a refusal where somebody's record makes it so."""
    assert reached("mean", Bounded(3.0, norm)) > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mean", "linear", "logistic"])
@pytest.mark.parametrize("norm", [LINF, L2])
@pytest.mark.parametrize("shape", [CLIP, TRUNCATE])
def test_nor_in_any_model_and_at_any_bound(model: str, norm: str, shape: str) -> None:
    found = [reached(model, Bounded(bound, norm, shape)) for bound in (3.0, 1e-60, 1e60)]
    assert max(found) > 0.98 or model != "mean" or shape != CLIP


def test_rows_that_come_and_go_are_no_neighbours_here() -> None:
    task = task_of("mean", Bounded(3.0))
    with pytest.raises(Exception, match="roster, for all to see"):
        execute(replace(task, unit=Unit.ADDED_RECORD))


@pytest.mark.parametrize("side", [(1.0, 0.0), (1e280, 1e280)])
def test_a_bound_too_long_to_turn_is_refused_whatever_the_records_are(side: tuple[float, float]) -> None:
    """What is refused must not tell of the data: a bound above 2^900 was turned until a record was as long."""
    task = task_of("mean", Bounded(1.0, L2))
    given = dict(task.menu[0].parameters) | {"threshold": Decimal(2**910), "rotate": Decimal(1)}
    task = replace(task, menu=(Mechanism.of("binomial", **given),), exponent=900)
    with pytest.raises(TaskInvalid, match="2\\^900"):
        added(task, side)
