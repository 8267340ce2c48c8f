"""Claims whose neighbours add or remove a record: half the noise of those that replace it, only where it is proved."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources.synthetic import drawn
from protocol.codec import decode_reply, decode_task, encode_task
from protocol.messages import Code, Refusal
from protocol.privacy import Unit
from protocol.record_terms import ADDED, L2, LINF, Bounded, bounded, squared_sensitivity
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import cells
from protocol.trust import Trust
from server.listening import listen
from server.rounds import play
from studies.in_process import in_process, run_cell
from studies.load import Loaded, build, tables

STUDY = Path(__file__).resolve().parents[3] / "studies/toml/heavy-mean.toml"


def loaded(*arms: dict[str, object]) -> Loaded:
    content = tables(STUDY, ["study.repetitions=400", "grid.n=[50]", "grid.epsilon=[1.0]"])
    content["arm"] = [{"trust": "central", "estimator": "mean", "threshold": Decimal(3), **arm} for arm in arms]
    return build(content, STUDY.parent)


def test_noise_is_half_and_the_claim_says_why() -> None:
    study = loaded({}, {"neighbours": "add-remove"})
    outcomes = list(run_cell(study.study, study.truth, cells(study.study)[0]))
    by_arm = [[one for one in outcomes if one.arm is arm] for arm in study.study.arms]
    assert {one.claim.neighbours for one in by_arm[0] if one.claim} == {"replace one record"}
    assert {one.claim.neighbours for one in by_arm[1] if one.claim} == {"add or remove one record, the divisor stays"}
    assert {str(one.claim.unit.label) for one in outcomes if one.claim} == {"record"}
    # Both arms share the sum and the normal numbers; one has half the noise of the other.
    replaced, added = (np.array([one.theta[0] for one in arm]) for arm in by_arm)
    exact = 2 * added - replaced
    clear = loaded({"trust": "clear", "threshold": Decimal(3)})
    means = [one.theta[0] for one in run_cell(clear.study, clear.truth, cells(clear.study)[0])]
    assert exact == pytest.approx(np.array(means), abs=1e-9)


@pytest.mark.parametrize("norm", [LINF, L2])
def test_adding_a_row_moves_a_sum_by_its_own_bound(norm: str) -> None:
    points = np.array([[x, y] for x in np.arange(-3, 3.5, 0.5) for y in np.arange(-3, 3.5, 0.5)])
    how = Bounded(2.0, norm)
    longest = (np.trunc(bounded(points, how) * 2) ** 2).sum(axis=1).max()
    most = squared_sensitivity(how, -1, 2, Unit.ADDED_RECORD)
    assert longest == most if norm == LINF else longest <= most == 16


def test_only_plain_sums_of_synthetic_records_are_claimed_so() -> None:
    study = loaded({"neighbours": "add-remove"}).study
    for other in ({"threshold": "private"}, {"aggregate": "trimmed-mean", "trim": Decimal("0.1")}):
        with pytest.raises(StudyError, match="expected neighbours = 'replace'"):
            loaded({"neighbours": "add-remove", **other})
    with pytest.raises(StudyError, match="unknown key"):
        loaded({"trust": "local", "neighbours": "add-remove"})
    assert all(Unit(unit).label == added.label for unit, added in ADDED.items())
    with pytest.raises(StudyError, match="units"):
        Policy.parse({"trust": ["central"], "label_cap": 1, "units": ["added_record"]})
    assert study.arms[0].get("neighbours") == "add-remove"


def test_holders_refuse_it_for_what_is_not_a_plain_sum() -> None:
    study, seen = loaded({"neighbours": "add-remove"}), []
    room = in_process(study.study, study.truth, 1)

    def ask(tasks: list[bytes]) -> list[bytes]:
        seen.extend(tasks)
        return room.ask(tasks)

    list(play(study.study, cells(study.study)[0], ask, room.server))
    task = decode_task(seen[0])
    assert task.unit is Unit.ADDED_RECORD and task.trust is Trust.CENTRAL
    parameters = dict(task.menu[0].parameters) | {"rows": Decimal(1)}
    rows = replace(task, menu=(type(task.menu[0]).of("gaussian", **parameters),), exponent=None)
    node = Node(
        drawn(study.study, study.truth, 1, FeatureStore(1), (0, 1)),
        Policy.simulation(),
        MemoryLedger(),
        "addressed",
        FeatureStore(1),
        1,
    )
    refused = decode_reply(answer(encode_task(rows), node))
    assert isinstance(refused, Refusal) and refused.code is Code.TASK_INVALID
    with pytest.raises(StudyError, match="rows that are replaced"):
        listen([rows], room.ask)
    careful = replace(node, policy=Policy(trusts=frozenset({Trust.CENTRAL}), units=frozenset({Unit.RECORD})))
    refused = decode_reply(answer(seen[0], careful))
    assert isinstance(refused, Refusal) and refused.code is Code.UNIT_NOT_ALLOWED
