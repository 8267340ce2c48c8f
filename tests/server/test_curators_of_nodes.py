"""A curator whose labels are on nodes: no way to its sums that is not paid for, and none without its noise."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.policy import Policy
from client.sources.loading import read_table
from client.sources.table import Table
from protocol.arms import Arm
from protocol.store import FeatureStore
from protocol.study import Cell, Grid, Study
from protocol.trust import Trust
from server.curator import Curator, LiveCurator, SimulatedCurator
from server.evidence import Server
from server.listening import Ask, RoundFailed
from server.outcome import Outcome
from server.release import ReleaseLedger
from server.rounds import play
from studies.fit.compare import subset

VOTES = [f"{who},{one},{other},{one}" for who in "abcdefgh" for one, other in ("xy", "yz", "zx")]
SUM = Arm(Trust.CENTRAL, "gaussian-statistic", "mle")
BY_GROUP = replace(SUM, estimator="median-of-means", options=(("groups", Decimal(3)),))


def table(folder: Path, public: bool = False) -> Table:
    path = folder / "votes.csv"
    path.write_text("\n".join(["labeler,item_a,item_b,winner", *VOTES]) + "\n", encoding="utf-8")
    return read_table(path, public)


def node(held: Table, folder: Path, seed: int | None = None) -> Node:
    """A node that answers for sums, once."""
    policy = Policy(trusts=frozenset({Trust.CENTRAL}), label_cap=Decimal(1))
    entropy = "os" if seed is None else "addressed"
    return Node(held, policy, DiskLedger(folder / f"{entropy}.sqlite"), entropy, FeatureStore(None), seed)


def room(*nodes: Node) -> Ask:
    return lambda raws: [answer(raw, node) for node in nodes for raw in raws]


def asked(held: Table, arm: Arm, ask: Ask, curator: Curator) -> Outcome:
    """The one outcome of a study about the rows of a file."""
    problem = replace(held.problem, bound=Decimal(3))
    study = Study("s", 7, 1, problem, Grid((len(VOTES),), (Decimal(1),), (Decimal("1e-5"),)), (arm,))
    (outcome,) = play(study, Cell(len(VOTES), 0, 1), ask, Server(FeatureStore(None), study.seed, curator))
    return outcome


@pytest.mark.parametrize("arm", [SUM, BY_GROUP])
def test_a_study_with_another_ledger_is_another_study(arm: Arm, tmp_path: Path) -> None:
    """Otherwise the nodes' old sums would get fresh noise for nothing, as often as somebody likes."""
    held = table(tmp_path)
    ask = room(node(held, tmp_path))
    with ReleaseLedger(tmp_path / "curator.sqlite") as releases:
        first = asked(held, arm, ask, LiveCurator(releases))
        assert asked(held, arm, ask, LiveCurator(releases)).theta.tobytes() == first.theta.tobytes()
    with ReleaseLedger(tmp_path / "another.sqlite") as other, pytest.raises(RoundFailed, match="BUDGET_EXHAUSTED"):
        asked(held, arm, ask, LiveCurator(other))


@pytest.mark.parametrize("arm", [SUM, BY_GROUP])
def test_one_simulated_node_does_not_take_the_noise_from_the_others(arm: Arm, tmp_path: Path) -> None:
    """Whoever starts a run chooses its curator: noise that everybody knows would give away the sum of real labels."""
    held, public = table(tmp_path), table(tmp_path, public=True)
    half = len(VOTES) // 2
    secret = node(part(held, held.rows_held < half), tmp_path)
    shown = node(part(public, held.rows_held >= half), tmp_path, seed=7)
    with pytest.raises(ValueError, match="curator with a ledger"):
        asked(held, arm, room(secret, shown), SimulatedCurator(7))


def part(held: Table, kept: NDArray[np.bool_]) -> Table:
    """The rows of one node, with their numbers in the whole file."""
    return replace(subset(held, kept), rows_held=held.rows_held[kept])
