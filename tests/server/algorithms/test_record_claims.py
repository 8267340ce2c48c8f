"""Claims of algorithms about records on the path that is executed: who is asked, what is released, what it costs."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.codec import decode_task, identity
from protocol.privacy import Unit
from protocol.record_terms import run_of
from protocol.study import Cell
from server.accountant import composition
from server.curator import LiveCurator
from server.listening import quorum
from server.outcome import Outcome
from server.record_rounds import play_records
from server.release import ReleaseLedger
from server.release_file import read_releases
from studies.in_process import in_process
from studies.load import Loaded, build

N = 101
BATCHES = ("algorithm-2-strong", "algorithm-5")  # disjoint: a row is in one
SPARSE = {"sparsity": 1, "rounds": 2, "step": 1, "threshold": 5}
CHOOSING: list[dict[str, Any]] = [
    {"estimator": "algorithm-3"},
    {"estimator": "algorithm-2-convex", "rounds": 2},
    {"estimator": "algorithm-2-strong", "rounds": 2},
    {"estimator": "algorithm-5", "sparsity": 1, "rounds": 2, "step": 1},
    {"estimator": "hard-thresholding", **SPARSE},
    *(
        {"estimator": "hard-thresholding", "mechanism": mechanism, **SPARSE}
        for mechanism in ("permute-and-flip", "peeling-zcdp", "peeling-pure")
    ),
    {"estimator": "mean", "threshold": "private"},
    {"estimator": "mean", "threshold": "histogram"},
    {"estimator": "mean", "aggregate": "trimmed-mean", "trim": Decimal("0.1")},
]


def study(*arms: dict[str, Any]) -> Loaded:
    content = {
        "study": {"name": "claims", "seed": 3, "repetitions": 1},
        "problem": {"kind": "records", "model": "mean", "dimension": 2, "bound": 50},
        "records": {"features": "pareto(1.6)", "tail": Decimal("0.5"), "moment": 16},
        "grid": {"n": [N], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
        "arm": [{"trust": "central"} | arm for arm in arms],
    }
    return build(content, Path())


def played(loaded: Loaded, ledger: ReleaseLedger, stop: int | None = None) -> tuple[list[bytes], list[Outcome]]:
    """Asked, and found, by a curator with the system's coins; `stop`: a crash instead of that exchange."""
    room, asked = in_process(loaded.study, loaded.theta, 2), list[bytes]()
    exchanges = iter(range(1 << 20))

    def ask(tasks: list[bytes]) -> list[bytes]:
        if next(exchanges) == stop:
            raise KeyboardInterrupt
        asked.extend(tasks)
        return room.ask(tasks)

    server = replace(room.server, curator=LiveCurator(ledger))
    return asked, list(play_records(loaded.study, Cell(N, 0, 1), ask, server))


@pytest.mark.parametrize("arm", CHOOSING, ids=str)
def test_a_curators_ledger_holds_the_claim_and_gives_the_same_answer_again(arm: dict[str, Any], tmp_path: Path) -> None:
    """Choices, medians and trimmed means with the system's coins: after a crash, and when all is asked again."""
    loaded, path = study(arm), tmp_path / "curator.sqlite"
    with ReleaseLedger(path) as ledger, suppress(KeyboardInterrupt):  # some have one exchange
        played(loaded, ledger, stop=1)
    before = read_releases(path)
    with ReleaseLedger(path) as ledger:
        asked, (found,) = played(loaded, ledger)
    entries = read_releases(path)
    assert before and entries[: len(before)] == before
    with ReleaseLedger(path) as ledger:
        again, (same,) = played(loaded, ledger)
    assert (again, same.theta.tobytes(), read_releases(path)) == (asked, found.theta.tobytes(), entries)
    together = composition(entries, Unit.RECORD)
    assert together is not None and together.basic is not None and found.claim is not None
    batches = arm["rounds"] if arm["estimator"] in BATCHES else 1
    assert together.basic.epsilon == batches * found.claim.epsilon
    assert together.basic.delta == batches * found.claim.delta
    assert together.epsilon is not None and together.epsilon <= together.basic.epsilon * Decimal("1.001")


@pytest.mark.parametrize("arm", [arm for arm in CHOOSING if arm["estimator"] not in BATCHES], ids=str)
def test_who_answers_again_changes_nothing(arm: dict[str, Any]) -> None:
    """Others than those of the committed choice, or fewer: noise and divisors stay those that were committed."""
    loaded = study(arm)
    room = in_process(loaded.study, loaded.theta, 3)
    with ReleaseLedger(None) as ledger:
        server, found = replace(room.server, curator=LiveCurator(ledger)), []
        for nodes in (room.nodes[1:], room.nodes, room.nodes[:1]):
            asked = replace(room, nodes=nodes)
            (outcome,) = play_records(loaded.study, Cell(N, 0, 1), asked.ask, server, quorum)
            found.append(outcome.theta.tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "arms",
    [
        [{"estimator": "algorithm-2-strong", "rounds": rounds, "threshold": 5} for rounds in (4, 5)],
        [{"estimator": "algorithm-3", "groups": groups, "threshold": 5} for groups in (5, 10)],
        [{"estimator": "hard-thresholding", **SPARSE, "split": split} for split in (Decimal("0.3"), Decimal("0.4"))],
        [{"estimator": "mean", "threshold": "private"} | more for more in ({}, {"choice_weight": "none"})],
        [
            {"estimator": "mean", "aggregate": "trimmed-mean", "threshold": 5, "trim": trim}
            for trim in (Decimal("0.1"), Decimal("0.101"))
        ],
    ],
    ids=str,
)
def test_what_rows_paid_for_once_is_in_one_release(arms: list[dict[str, Any]], tmp_path: Path) -> None:
    """Arms of one study share tasks where these are the same: then what is made of them has to be one release too."""
    with ReleaseLedger(tmp_path / "curator.sqlite") as ledger:
        played(study(*arms), ledger)
    entries = read_releases(tmp_path / "curator.sqlite")
    used = Counter(report for one in entries for report in one.request.accepted)
    assert len(entries) > 1 and set(used.values()) == {1}


T = {"rounds": 3, "step": Decimal("0.5")}
LOCAL: dict[str, Any] = {"trust": "local", "mechanism": "hybrid"}
KEPT: list[dict[str, Any]] = [
    *CHOOSING,
    {"estimator": "mean"},
    {"estimator": "mean", "aggregate": "centred-clipping", "threshold": 3},
    {"estimator": "algorithm-1"},
    {"estimator": "median-of-means"},
    {"estimator": "recentred-mean", "recentre": "always"},
    *({"estimator": "descent", **T, "threshold": rule} for rule in ("adaptive", "private", "mse")),
    {"estimator": "descent", **T, "batches": "disjoint", "norm": "l2"},
    {"estimator": "descent", **T, "aggregate": "centred-clipping", "threshold": 3},
    {"estimator": "hard-thresholding", "batches": "disjoint", **SPARSE},
    {"estimator": "hard-thresholding", "mechanism": "peeling-pure", **SPARSE},
    LOCAL | {"estimator": "mean"},
    LOCAL | {"estimator": "mean", "threshold": "private"},
    LOCAL | {"estimator": "recentred-mean", "recentre": "always"},
    *(LOCAL | {"estimator": "descent", **T, "batches": batches} for batches in ("all", "disjoint")),
    *(
        {"trust": "local", "mechanism": "gaussian", "estimator": "descent", **T, "batches": batches}
        for batches in ("all", "disjoint")
    ),
    *(
        {"trust": "local", "mechanism": mechanism, "estimator": name, "sparsity": 1, **T}
        for name in ("hard-thresholding", "two-phase", "votes")
        for mechanism in ("piecewise", "gaussian")
    ),
]


@pytest.mark.parametrize("arm", KEPT, ids=str)
def test_what_a_row_pays_is_no_more_than_its_outcome_claims(arm: dict[str, Any]) -> None:
    """As a ledger charges: every task, but a run once. n is no multiple of any number of groups, batches or phases."""
    loaded, spent = study(arm), np.full((N, 2), Decimal(0))
    room, paid = in_process(loaded.study, loaded.theta, 2), set()

    def ask(raws: list[bytes]) -> list[bytes]:
        for raw in raws:
            task = decode_task(raw)
            charged = run_of(task) or identity(raw)
            if charged not in paid:
                paid.add(charged)
                rows = np.arange(N) if task.rows is None else task.rows.numbers()
                spent[rows] += np.array([task.epsilon, task.delta or Decimal(0)])
        return room.ask(raws)

    found = list(play_records(loaded.study, Cell(N, 0, 1), ask, room.server))
    claim = found[0].claim
    assert claim is not None and claim.unit is Unit.RECORD
    assert spent[:, 0].max() <= claim.epsilon == 1
    assert spent[:, 1].max() <= claim.delta
    assert spent[:, 0].max() > Decimal("0.99")  # nothing is given away either


def test_rounds_with_thresholds_that_follow_results_keep_one_claim_in_a_curators_ledger(tmp_path: Path) -> None:
    loaded = study({"estimator": "descent", "threshold": "adaptive", "rounds": 4, "step": 1})
    room = in_process(loaded.study, loaded.theta, 2)
    with ReleaseLedger(tmp_path / "curator.sqlite") as ledger:
        server = replace(room.server, curator=LiveCurator(ledger))
        (outcome,) = play_records(loaded.study, Cell(N, 0, 1), room.ask, server)
    releases = read_releases(tmp_path / "curator.sqlite")
    assert len({one.request.sensitivity_squared * 4.0**one.request.exponent for one in releases}) == 4
    together = composition(releases, Unit.RECORD)
    assert together is not None and together.epsilon is not None and outcome.claim is not None
    assert together.basic == outcome.claim
    assert Decimal("0.999") <= together.epsilon <= Decimal("1.001")


@pytest.mark.parametrize(("neighbours", "told"), [("replace", True), ("add-remove", False)])
def test_an_outcome_tells_how_many_are_missing_only_where_that_is_public(neighbours: str, told: bool) -> None:
    loaded = study({"estimator": "mean", "neighbours": neighbours})
    room = in_process(loaded.study, loaded.theta, 4)
    fewer = replace(room, nodes=room.nodes[1:])
    (outcome,) = play_records(loaded.study, Cell(N, 0, 1), fewer.ask, fewer.server, quorum)
    assert any("missing" in warning for warning in outcome.warnings) is told


@pytest.mark.parametrize(("neighbours", "releases"), [("replace", 2), ("add-remove", 3)])
def test_a_group_of_nobody_is_noise_where_a_claim_hides_whether_there_is_a_row(
    neighbours: str, releases: int, tmp_path: Path
) -> None:
    """Left out, it would tell that its one row is not there: a median of fewer groups."""
    loaded = study({"estimator": "median-of-means", "groups": 3, "neighbours": neighbours})
    room = in_process(loaded.study, loaded.theta, 3)
    fewer = replace(room, nodes=room.nodes[1:])
    with ReleaseLedger(tmp_path / "curator.sqlite") as ledger:
        server = replace(fewer.server, curator=LiveCurator(ledger))
        list(play_records(loaded.study, Cell(N, 0, 1), fewer.ask, server, quorum))
    assert len(read_releases(tmp_path / "curator.sqlite")) == releases
