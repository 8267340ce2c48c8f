"""Rounds about records with a curator's ledger, where holders come and go: what is committed stays, and its count."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from protocol.messages import Coins
from protocol.study import Cell
from server.curator import LiveCurator, SimulatedCurator
from server.evidence import Heard, Server, check_curator
from server.listening import RoundFailed, quorum
from server.outcome import Outcome
from server.release import ReleaseLedger
from server.rounds import play
from studies.in_process import InProcess, in_process
from studies.load import Loaded, build

CELL = Cell(40, 0, 1)


def loaded(trust: str = "central", **arm: object) -> Loaded:
    own = {"trust": trust, "estimator": "descent", "rounds": 3, "step": Decimal("0.25"), **arm}
    if trust == "local":
        own["mechanism"] = "piecewise"
    return build(
        {
            "study": {"name": "live", "seed": 3, "repetitions": 1},
            "problem": {"kind": "records", "model": "linear", "dimension": 2, "theta": [0.5, -0.5], "bound": 2},
            "records": {"features": "uniform(0, 1)", "noise": "centred pareto(1.6)", "tail": 0.5, "moment": 16},
            "grid": {"n": [CELL.n], "epsilon": [Decimal(1)], "delta": [Decimal("1e-5")]},
            "arm": [own],
        },
        Path(),
    )


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[LiveCurator]:
    """A real one, with its ledger."""
    with ReleaseLedger(tmp_path / "curator.sqlite") as ledger:
        yield LiveCurator(ledger)


def played(study: Loaded, room: InProcess, nodes: int, server: Server) -> Outcome:
    present = InProcess(room.nodes[:nodes], server)
    (outcome,) = play(study.study, CELL, present.ask, server, quorum)
    return outcome


def test_a_run_that_is_played_again_gets_its_releases_with_their_own_counts(curator: LiveCurator) -> None:
    """Thirty of forty answered first. With all forty there the committed sums are still divided by thirty."""
    study = loaded()
    room = in_process(study.study, study.theta, clients=4)
    server = Server(room.server.features, study.study.seed, curator)
    first, again = played(study, room, 3, server), played(study, room, 4, server)
    assert first.warnings == ("rows-missing: 30 answers missing over all rounds",) and not again.warnings
    assert first.theta.tobytes() == again.theta.tobytes()


def test_missing_holders_change_what_is_released_anew(curator: LiveCurator) -> None:
    study = loaded()
    room = in_process(study.study, study.theta, clients=4)
    simulated = [played(study, room, nodes, room.server) for nodes in (3, 4)]
    assert (simulated[0].theta != simulated[1].theta).any() and simulated[0].claim == simulated[1].claim


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_batch_that_nobody_has_is_named(trust: str) -> None:
    """Four nodes have ten rows each; the third batch of thirteen is the last node's and one row of the third's."""
    study = loaded(trust, batches="disjoint")
    room = in_process(study.study, study.theta, clients=4)
    assert played(study, room, 3, room.server).warnings == ("rows-missing: 9 answers missing over all rounds",)
    with pytest.raises(RoundFailed, match=rf"round 2 of the {trust} task at n = 40, epsilon = 1, got nobody: 13 rows"):
        played(study, room, 2, room.server)


def test_real_sums_do_not_go_before_a_simulated_curator() -> None:
    study = loaded()
    room = in_process(study.study, study.theta, clients=1)
    seen: list[Heard] = []

    def note(heard: Sequence[Heard], unread: Sequence[str]) -> None:
        collected = heard[0].collected
        seen.append(replace(heard[0], collected=replace(collected, live=True, coins=Coins.OS, refusals=Counter())))

    list(play(study.study, CELL, room.ask, room.server, note))
    with pytest.raises(ValueError, match="expected a curator with a ledger"):
        check_curator(SimulatedCurator(1), seen[0])
    assert check_curator(None, seen[0]) is None and np.isfinite(seen[0].collected.sums).all()
