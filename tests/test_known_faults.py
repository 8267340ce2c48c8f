"""Faults that users of comparable software met: each must be impossible here, or loud."""

import gc
import tomllib
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.labels import Labels
from client.ledger import DiskLedger
from client.policy import Policy
from client.sources.loading import read_table
from client.sources.synthetic import Synthetic
from protocol.codec import Signed, decode_reply, encode_task
from protocol.coins import Address, Stream, normal, words
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Cell, Study
from protocol.study_file import parse
from protocol.trust import Trust
from protocol.warned import code_of
from server.evidence import evidence
from server.listening import RoundFailed, listen
from server.mechanisms import CENTRAL
from server.release import ReleaseLedger
from server.release_record import ReleaseRequest
from server.rounds import play
from server.tasks import offers
from studies.cli import main
from studies.in_process import InProcess, in_process, run_cell

THETA = np.array([1.0, 0.0, -1.0])
TEXT = """
study = { name = "faults", seed = 11, repetitions = 1000 }
problem = { kind = "pairwise", dimension = 3, features = "sphere", bound = 3.0, sum_zero = true }
grid = { n = [20], epsilon = [2.0], delta = [1e-5] }
arm = [
  { trust = "local", mechanism = "randomized-response", estimator = "debiased" },
  { trust = "central", mechanism = "gaussian-statistic", estimator = "mle" },
]
"""


def study(**changes: str) -> Study:
    text = TEXT
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse(tomllib.loads(text, parse_float=Decimal))


def central_noise(repetitions: int) -> Iterator[tuple[NDArray[np.float64], float]]:
    """(noise of the released sum, its stated stddev) of each repetition, the whole way."""
    asked = study()
    room = in_process(asked, THETA, 3)
    (task,) = (o.task for o in offers(asked, Cell(20, 0, repetitions)) if o.task and o.task.trust is Trust.CENTRAL)
    heard = listen([task], room.ask)[task]
    assert heard.collected.sums is not None
    for repetition in range(repetitions):
        designs = room.server.designs(asked.problem, 20, repetition)
        seen = evidence(room.server, heard, designs)
        exact = heard.collected.sums[repetition] - 0.5 * seen.rows.sum(axis=0)
        yield seen.half_sum - exact, seen.noise_stddev


def test_noise_of_the_claimed_size_is_added_once() -> None:
    """Neither twice (client and server), nor its variance for its stddev. 2,000 normals at 6 sigma: 2e-9."""
    noise, expected = [], []
    multiplier = CENTRAL["gaussian-statistic"].noise_multiplier(Decimal(2), Decimal("1e-5"))
    for difference, stddev in central_noise(1000):
        noise.append(difference / stddev)
        expected.append(stddev)
    assert abs(np.std(noise) - 1) < 6 / np.sqrt(2 * 2000)
    longest = 2.0  # of a difference of two points of the unit sphere
    assert 0.5 * multiplier * longest < np.mean(expected) <= multiplier * longest


def test_two_nodes_never_share_noise_whatever_numpy_was_told(tmp_path: Path) -> None:
    """200 labels, flipped with probability 0.475: equal reports by chance 2^-199."""
    rows = [f"r{row},x,y,item_a" for row in range(200)]
    (tmp_path / "votes.csv").write_text("\n".join(["labeler,item_a,item_b,winner", *rows, ""]), encoding="utf-8")
    table = read_table(tmp_path / "votes.csv", public=False)
    level = Decimal("0.1")
    problem = Problem(2, "items", True, None, table.pairs)
    menu = (Mechanism.of("randomized-response", epsilon=level),)
    task = Task(bytes(32), Trust.LOCAL, Unit.LABEL, problem, menu, 200, level, None, 0, 1)
    reports = []
    for name in ("one", "two"):
        np.random.seed(42)
        node = Node(table, Policy(), DiskLedger(tmp_path / name), "os", FeatureStore(None))
        (signed,) = decode_reply(answer(encode_task(task), node))  # type: ignore[misc]
        assert isinstance(signed, Signed)
        reports.append(signed.report.payload.values.tobytes())
    assert reports[0] != reports[1]


def test_sequences_of_coins_are_uncorrelated() -> None:
    """160 addresses, 12,720 pairs, 4,096 numbers each, at 7 sigma: 4e-8."""
    places = product(Stream, (0, 1), (0, 1), (0, 1), (7, 8))
    drawn = [normal(words(Address(seed, *place), 0, 4096)) for *place, seed in places]  # type: ignore[arg-type]
    correlation = np.corrcoef(drawn) - np.eye(len(drawn))
    assert np.abs(correlation).max() < 7 / np.sqrt(4096)


def test_low_bits_of_a_release_tell_nothing() -> None:
    """Sums 0 and 1 reach the same last bits. One of 2 * 16 residues missing by chance: 2e-10."""
    seen: list[set[int]] = []
    with ReleaseLedger(None) as ledger:
        for total in (0, 1):
            name = total.to_bytes(1, "big")
            asked = ReleaseRequest(
                name, 0, (), 1, -40, 1 << 40, "gaussian-statistic", Decimal(1), Decimal("1e-5"), Unit.LABEL, 0
            )
            values = [ledger.release(replace(asked, repetition=i), [total]).values[0] for i in range(400)]
            assert {type(value) for value in values} == {int}
            seen.append({value % 16 for value in values})
    assert seen[0] == seen[1] == set(range(16))


def test_a_level_that_hides_nothing_is_said_with_every_estimate() -> None:
    """At epsilon = 64 a label is flipped once in 2^63 times."""
    found = list(run_cell(study(**{"[2.0]": "[64.0]"}), THETA, Cell(20, 0, 1)))
    assert found
    for outcome in found:
        (said,) = (text for text in outcome.warnings if code_of(text) == "protects-nobody")
        assert "epsilon above 40 protects nobody" in said
        assert ("flipped with probability 1.1e-19" in said) == (outcome.arm.trust is Trust.LOCAL)


class Failing(Synthetic):
    """A source whose labels cannot be read."""

    def labels(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Labels:
        """Fails with a text that must not leave."""
        raise NotImplementedError("secret 110101")


def test_a_client_that_raises_ends_the_round_with_a_code_only() -> None:
    asked = study()
    room = in_process(asked, THETA, 2)
    features = FeatureStore(asked.seed)
    broken = replace(room.nodes[1], source=Failing(asked.problem, THETA, asked.seed, features, 1, 2))
    with pytest.raises(RoundFailed, match="INTERNAL x 1") as caught:
        list(play(asked, Cell(20, 0, 1), InProcess((room.nodes[0], broken), room.server).ask, room.server))
    assert "110101" not in str(caught.value)


def test_rounds_without_answers_or_without_rows_give_no_estimate() -> None:
    asked = study()
    room = in_process(asked, THETA, 1)
    with pytest.raises(RoundFailed, match="got 0"):
        list(play(asked, Cell(20, 0, 1), lambda tasks: [], room.server))
    crowd = in_process(asked, THETA, 21)
    with pytest.raises(RoundFailed, match="TASK_INVALID x 1"):
        list(play(asked, Cell(20, 0, 1), crowd.ask, crowd.server))


def test_many_runs_in_one_process_keep_no_memory() -> None:
    asked = study()

    def runs(count: int) -> int:
        for _ in range(count):
            list(run_cell(asked, THETA, Cell(20, 0, 2), clients=5))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        runs(2)
        before = runs(2)
        assert runs(6) < before + 20_000  # bytes; one run's labels, rows and replies are far more
    finally:
        tracemalloc.stop()


def test_sensitivity_is_nobodys_input() -> None:
    with pytest.raises(StudyError, match="unknown key 'sensitivity'"):
        study(**{'estimator = "mle" }': 'estimator = "mle", sensitivity = 1.0 }'})


@pytest.mark.parametrize("flag", ["--epsilon", "--delta", "--bound", "--seed"])
@pytest.mark.parametrize("value", ["", "nan", "-1", "inf"])
def test_no_parameter_falls_back_to_a_default(flag: str, value: str, tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("labeler,item_a,item_b,winner\nr1,x,y,x\n", encoding="utf-8")
    state = tmp_path / "state"
    good = {"--trust": "central", "--epsilon": "1", "--delta": "1e-5", "--bound": "1", "--state": str(state)}
    if flag == "--seed":
        good["--coins"] = "addressed"
    words = [f"{name}={text}" for name, text in (good | {flag: value}).items()]
    assert main(["fit", str(votes), "--public-data", *words]) == 2
    assert not state.exists()
