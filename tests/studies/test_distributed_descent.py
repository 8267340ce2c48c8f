"""Descents whose every round opens a sum under masks: the same bits whoever holds the rows, and one charge in all."""

import tomllib
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from client.labeler import Node
from client.ledger_view import read_entries, read_labelers
from client.node_file import build as build_node
from client.node_file import read_node
from client.policy import Policy
from client.replies import reply
from deploy.node_keys import ensure_key
from protocol.arms import DISTRIBUTED, Arm, Option
from protocol.codec import decode_task, identity
from protocol.messages import Task
from protocol.noise.record_terms import terms_of_records
from protocol.record_terms import run_of
from protocol.secure.codec import decode_ask
from protocol.secure.messages import of_session
from protocol.store import FeatureStore
from protocol.study import Cell, Study
from protocol.trust import Trust
from server.evidence import Server
from server.listening import RoundFailed, complete
from server.outcome import Outcome
from server.record_rounds import play_records
from server.resume import resumed
from server.sent import Sent, for_client
from studies.in_process import InProcess, in_process, run_cell
from studies.load import Loaded, build

FILE = """
study = { name = "rounds", seed = 11, repetitions = 2 }
problem = { kind = "records", model = "linear", dimension = 3, theta = [0.5, 0.0, -0.5], bound = 2 }
records = { features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 16 }
grid = { n = [120], epsilon = [1.0], delta = [1e-5] }
arm = [{ trust = "clear", estimator = "descent", rounds = 3, step = 0.3 }]
"""
ROUNDS, NODES = 3, 3
NODE = """
[node]
ledger = "ledger.sqlite"
key = "node.key"
[source]
kind = "records"
file = "losses.csv"
row = "row"
id = "id"
features = ["x"]
model = "mean"
[policy]
trust = ["distributed"]
units = ["record"]
label_cap = 1.5
members = "../members"
"""


def arm(law: str = "skellam", trust: Trust = Trust.DISTRIBUTED, **choices: Option) -> Arm:
    own = {"rounds": Decimal(ROUNDS), "step": Decimal("0.3")} | choices
    return Arm(trust, law, "descent", tuple(sorted(own.items())))


def loaded_of(*arms: Arm, n: int = 120, **changes: Any) -> Loaded:
    loaded = build(tomllib.loads(FILE, parse_float=Decimal), Path())
    study = replace(loaded.study, arms=arms, grid=replace(loaded.study.grid, n=(n,)), **changes)
    return replace(loaded, study=study)


def run(loaded: Loaded, clients: int) -> list[Outcome]:
    study = loaded.study
    return list(run_cell(study, loaded.theta, Cell(study.grid.n[0], 0, study.repetitions), clients))


ARMS = (arm(), arm("binomial", batches="disjoint", norm="l2", survivors=Decimal("0.8")))
MORE = (*(arm(law) for law in DISTRIBUTED), arm(norm="l2", average="last", shape="truncate", honest=Decimal(1)))


@pytest.mark.parametrize(("arms", "clients"), [(ARMS, 2), pytest.param(ARMS + MORE, 8, marks=pytest.mark.slow)])
def test_the_same_bits_whoever_holds_the_rows(arms: tuple[Arm, ...], clients: int) -> None:
    """All rows in all rounds, and each in one."""
    loaded = loaded_of(*arms)
    alone, together = run(loaded, 1), run(loaded, clients)
    assert [one.theta.tobytes() for one in alone] == [one.theta.tobytes() for one in together]
    assert len(alone) == 2 * len(arms)
    for outcome in alone:
        assert str(outcome.claim).startswith("(epsilon = 1, delta = 0.00001) per record; neighbours: replace")


def asked_by(loaded: Loaded, clients: int = 1) -> tuple[list[Task], int]:
    """Tasks of all sessions of a cell, in order; and how many charges a client's ledger of a simulation counts."""
    study, tasks = loaded.study, list[bytes]()
    room = in_process(study, loaded.theta, clients)

    def ask(asked: list[bytes]) -> list[bytes]:
        tasks.extend(raw for one in asked if of_session(one) for raw in decode_ask(one).tasks)
        return list(room.replies(asked))

    list(play_records(study, Cell(study.grid.n[0], 0, study.repetitions), ask, room.server))
    ledgers = {id(node.ledger): node.ledger for node in room.nodes}
    (ledger,) = ledgers.values()
    return [decode_task(raw) for raw in dict.fromkeys(tasks)], len(ledger.totals)  # type: ignore[attr-defined]


def test_rounds_share_one_claim_or_each_has_rows_of_its_own() -> None:
    """T rounds of everybody have the variance of one of the same rows T times over: as Gaussian noise composes."""

    def variance(task: Task) -> float:
        assert task.exponent is not None
        return float(terms_of_records(task, task.menu[0]).shares.variance) * 4.0**task.exponent

    shared, charges = asked_by(loaded_of(arm(threshold=Decimal(1))))
    assert [task.round for task in shared] == list(range(ROUNDS)) and charges == 1
    assert len({run_of(task) for task in shared}) == 1 and run_of(shared[0]) is not None
    alone, charges = asked_by(loaded_of(arm(batches="disjoint", threshold=Decimal(1))))
    assert [run_of(task) for task in alone] == [None] * ROUNDS and charges == ROUNDS
    assert [task.rows.count for task in alone if task.rows is not None] == [40] * ROUNDS
    for one, other in zip(shared, alone, strict=True):
        assert variance(one) / variance(other) == pytest.approx(ROUNDS, rel=1e-3)
    assert {task.theta is None or task.theta.shape for task in shared} == {(2, 3)}


@dataclass
class Holders:
    """Holders of files with keys and ledgers of their own."""

    folder: Path
    asked: int = 0
    dies: int = -1  # the exchange that the server does not live to see answered
    members: list[bytes] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def prepare(self) -> None:
        for number in range(NODES):
            own = self.folder / f"node-{number}"
            own.mkdir()
            public, _ = ensure_key(own / "node.key")
            self.members.append(public.line.encode())
            rows = [f"{row},c{row},{row % 7 / 7}" for row in range(12) if row % NODES == number]
            (own / "losses.csv").write_text("\n".join(["row,id,x", *rows]) + "\n")
            (own / "node.toml").write_text(NODE)
        (self.folder / "members").write_bytes(b"\n".join(self.members) + b"\n")
        self.start()

    def start(self) -> None:
        """Build all nodes, as after a restart."""
        files = [self.folder / f"node-{number}" / "node.toml" for number in range(NODES)]
        self.nodes = [build_node(read_node(file), {}) for file in files]

    def ask(self, asked: list[bytes]) -> list[bytes]:
        if self.asked == self.dies:
            raise KeyboardInterrupt
        self.asked += 1
        replies = list[bytes]()
        for number, node in enumerate(self.nodes):
            for raw in for_client(asked, f"node {number}"):
                replies.append(Sent(reply(raw, node), f"node {number}", identity(raw)))
        return replies

    def spent(self) -> set[tuple[Decimal, Decimal]]:
        """(epsilon, delta) of every record's owner, of all holders."""
        every = [one for number in range(NODES) for one in read_labelers(self.ledger(number))]
        return {(one.most, one.most_delta) for one in every}

    def ledger(self, number: int) -> Path:
        return self.folder / f"node-{number}" / "ledger.sqlite"


def study_of_files() -> Study:
    study = loaded_of(arm(threshold=Decimal(1)), n=12, repetitions=1).study
    return replace(study, problem=replace(study.problem, dimension=1, model="mean", bound=None), name="files")


ONCE = {(Decimal(1), Decimal("0.00001"))}


def play(holders: Holders) -> list[Outcome]:
    """Play a descent of their files through a journal."""
    study, cell, journals = study_of_files(), Cell(12, 0, 1), holders.folder / "journal"
    journals.mkdir(exist_ok=True)
    with resumed(journals, study, cell, holders.ask, complete) as own:
        return list(play_records(study, cell, own.ask, Server(FeatureStore(None), 0), own.check))


def test_holders_pay_once_and_a_server_that_is_killed_goes_on(tmp_path: Path) -> None:
    """Killed in the second round's session; what was answered is in its journal, and asked of nobody again."""
    holders = Holders(tmp_path)
    holders.prepare()
    holders.dies = 8
    with pytest.raises(KeyboardInterrupt):
        play(holders)
    assert holders.spent() == ONCE
    holders.dies = -1
    holders.start()
    (outcome,) = play(holders)
    assert holders.asked == 5 * ROUNDS and outcome.coins == "os"
    assert holders.spent() == ONCE
    for number in range(NODES):
        (entry,) = read_entries(holders.ledger(number))
        assert (entry.labels, entry.rounds) == (4, tuple(range(ROUNDS)))


def test_a_session_that_fails_says_how_to_ask_again(tmp_path: Path) -> None:
    """What its members said is in the journal, and told again; none of them would take part in it otherwise."""
    loaded = loaded_of(arm())
    study, room = loaded.study, in_process(loaded.study, loaded.theta, 3)
    nodes = (*room.nodes[:2], replace(room.nodes[2], policy=Policy()))
    stubborn = InProcess(nodes, room.server)
    for _ in range(2):
        with (
            pytest.raises(
                RoundFailed, match=r"TRUST_NOT_ALLOWED.*once: ask again with another attempt, or.*delete .*journal"
            ),
            resumed(tmp_path, study, Cell(120, 0, 2), stubborn.ask, complete) as own,
        ):
            list(play_records(study, Cell(120, 0, 2), own.ask, room.server, own.check))


@pytest.mark.slow
def test_a_server_without_its_journal_is_told_the_same_for_nothing(tmp_path: Path) -> None:
    """It asks all again, and each member says each stage once."""
    holders = Holders(tmp_path)
    holders.prepare()
    (first,) = play(holders)
    holders.start()
    (again,) = play(holders)
    assert again.theta.tobytes() == first.theta.tobytes() and holders.asked == 10 * ROUNDS
    assert holders.spent() == ONCE
