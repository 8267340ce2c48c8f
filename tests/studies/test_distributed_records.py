"""Records under masks, from numbers to means: the same bits whoever holds the rows, and the curator's accuracy."""

import json
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.gradients import gradients
from client.ledger import MemoryLedger
from client.ledger_view import read_labelers
from client.policy import Policy
from client.residues import noise_of
from client.rounding import rounded
from client.rows import answerable
from client.statistics import contributions
from protocol.arms import DISTRIBUTED, Arm, Option
from protocol.gaussian import analytic_noise_multiplier
from protocol.messages import Task
from protocol.noise.record_terms import terms_of_records
from protocol.privacy import Unit
from protocol.record_terms import Bounded, squared_sensitivity
from protocol.study import Cell
from protocol.trust import Trust
from server.evidence import Heard
from server.listening import RoundFailed, listen
from server.outcome import Outcome
from server.record_rounds import opening
from studies.cli import main
from studies.in_process import InProcess, in_process, run_cell
from studies.load import Loaded, build

FILE = """
[study]
name = "masked"
seed = 11
repetitions = 2
[problem]
kind = "records"
model = "mean"
dimension = 3
[records]
features = "student-t(3) + 1"
tail = 1
moment = 4
[grid]
n = [300]
epsilon = [1.0]
delta = [1e-5]
[[arm]]
trust = "distributed"
estimator = "mean"
"""


def arm(law: str = "skellam", estimator: str = "mean", **choices: Option) -> Arm:
    return Arm(Trust.DISTRIBUTED, law, estimator, tuple(sorted(choices.items())))


def loaded_of(*arms: Arm, n: int = 300, repetitions: int = 2, epsilon: str = "1") -> Loaded:
    loaded = build(tomllib.loads(FILE, parse_float=Decimal), Path())
    study = loaded.study
    grid = replace(study.grid, n=(n,), epsilon=(Decimal(epsilon),))
    return replace(loaded, study=replace(study, arms=arms, grid=grid, repetitions=repetitions))


def run(loaded: Loaded, clients: int) -> list[Outcome]:
    study = loaded.study
    return list(run_cell(study, loaded.theta, Cell(study.grid.n[0], 0, study.repetitions), clients))


CHOICES: tuple[dict[str, Option], ...] = (
    {},
    {"norm": "l2", "survivors": Decimal("0.8")},
    {"shape": "truncate", "norm": "l2", "threshold": Decimal("2.5")},
    {"shape": "truncate", "honest": Decimal(1)},
)


def same_bits(arms: list[Arm], clients: tuple[int, ...]) -> None:
    loaded = loaded_of(*arms)
    found = {count: run(loaded, count) for count in clients}
    assert len(found[clients[0]]) == 2 * len(arms)
    for outcomes in found.values():
        for one, other in zip(found[clients[0]], outcomes, strict=True):
            assert one.theta.tobytes() == other.theta.tobytes()
            assert str(one.claim).startswith("(epsilon = 1, delta = 0.00001) per record; neighbours: replace")
            assert np.abs(one.theta - 1.0).max() < 1.0


def test_the_same_bits_whoever_holds_the_rows() -> None:
    same_bits([arm(), arm("binomial", **CHOICES[1])], (1, 3))


def test_each_arm_hears_its_own_answers_whatever_else_is_asked() -> None:
    """Masked sums are asked after other tasks, and of one round together: answers keep the order of what was asked."""
    clear = Arm(Trust.CLEAR, "none", "mean")
    arms = [arm("binomial", honest=Decimal(1)), curator("l2"), clear]
    together = [outcome.theta.tobytes() for outcome in run(loaded_of(*arms), 2)]
    alone = [[outcome.theta.tobytes() for outcome in run(loaded_of(one), 2)] for one in arms]
    assert together == [theta for repetition in zip(*alone, strict=True) for theta in repetition]


@pytest.mark.slow
def test_the_same_bits_of_every_arm_whoever_holds_the_rows() -> None:
    groups = [arm(law, "median-of-means", groups=Decimal(7)) for law in DISTRIBUTED]
    same_bits([*(arm(law, **choices) for law in DISTRIBUTED for choices in CHOICES), *groups], (1, 3, 8))


def heard_of(loaded: Loaded, clients: int = 3) -> tuple[InProcess, Task, Heard]:
    study = loaded.study
    room = in_process(study, loaded.theta, clients)
    (task,) = opening(study, Cell(study.grid.n[0], 0, study.repetitions), room.server)
    return room, task, listen([task], room.replies)[task]


@pytest.mark.parametrize(("law", "choices"), list(zip(DISTRIBUTED, CHOICES[1:], strict=True)))
def test_what_is_opened_is_the_sum_of_rounded_records_and_the_rows_own_noise(
    law: str, choices: dict[str, Option]
) -> None:
    room, task, heard = heard_of(loaded_of(arm(law, **choices)))
    terms, total = terms_of_records(task, task.menu[0]), np.zeros((2, 3), dtype=np.int64)
    for node in room.nodes:
        rows = answerable(task, node.source)
        for repetition in range(2):
            records = node.source.records(task, repetition, rows)  # type: ignore[union-attr]
            values = contributions(task, terms.how, gradients("mean", records, np.zeros(3), None), rows)
            draws = node.draws(task, repetition)
            whole = rounded(values, terms, draws.roundings(rows, 3))
            away = np.abs(whole * 2.0**terms.power - values) / 2.0**terms.power
            assert (away < 1.0).all() or (terms.longest is not None and (away < 17.0).all())
            total[repetition] += whole.sum(axis=0) + noise_of(terms.shares, rows, draws)
    assert heard.collected.sums is not None
    assert np.array_equal(heard.collected.sums, np.ldexp(total.astype(np.float64), terms.power))


def test_a_median_of_groups_has_noise_for_each_group_s_rows_and_each_row_pays_once() -> None:
    loaded = loaded_of(arm("binomial", "median-of-means", groups=Decimal(4), survivors=Decimal("0.8")))
    study, room = loaded.study, in_process(loaded.study, loaded.theta, 3)
    tasks = opening(study, Cell(300, 0, 2), room.server)
    heard = listen(tasks, room.replies)
    asked = np.concatenate([task.rows.numbers() for task in tasks if task.rows is not None])
    assert np.array_equal(asked, np.arange(300))  # each row is in one sum
    for task in tasks:
        terms, count = terms_of_records(task, task.menu[0]), task.rows.count if task.rows is not None else 0
        assert terms.shares.honest == int(Decimal("0.72") * count) and len(heard[task].collected.rows) == count
        assert task.menu[0].get("least") == -(-8 * count // 10)
    means = [heard[task].collected.sums / len(heard[task].collected.rows) for task in tasks]  # type: ignore[operator]
    for outcome in run_cell(study, loaded.theta, Cell(300, 0, 2), 2):
        found = -np.median(np.stack([each[outcome.repetition] for each in means]), axis=0)
        assert np.array_equal(found, outcome.theta)
    ledger = room.nodes[0].ledger
    assert isinstance(ledger, MemoryLedger) and {each.epsilon for each in ledger.totals.values()} == {Decimal(1)}


@pytest.mark.slow
def test_records_of_a_file_pay_once_for_a_median_of_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"r{row},{(7 * row) % 11}.5\n" for row in range(40))
    (tmp_path / "losses.csv").write_text(f"id,loss\n{lines}", encoding="utf-8")
    words = ["--columns", "loss", "--id", "id", "--trust", "distributed", "--mechanism", "binomial", "--epsilon", "4"]
    words += ["--estimator", "median-of-means", "--groups", "2", "--threshold", "20", "--state", str(tmp_path / "own")]
    assert main(["records", str(tmp_path / "losses.csv"), *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["charged_rows"] == 40
    spent = read_labelers(tmp_path / "own" / "ledger.sqlite")
    assert len(spent) == 40 and {(each.epsilon, each.delta) for each in spent} == {(Decimal(4), Decimal("0.00001"))}


def test_a_round_at_which_too_few_stay_opens_nothing() -> None:
    loaded = loaded_of(arm())
    room = in_process(loaded.study, loaded.theta, 3)
    nodes = (*room.nodes[:2], replace(room.nodes[2], policy=Policy(label_cap=None, max_epsilon=None)))  # type: ignore[arg-type,call-arg]
    (task,) = opening(loaded.study, Cell(300, 0, 2), room.server)
    with pytest.raises(RoundFailed, match="TRUST_NOT_ALLOWED"):
        listen([task], InProcess(nodes, room.server).replies)


def test_what_is_cut_towards_zero_has_a_bias_and_what_is_rounded_has_none() -> None:
    """As docs/SECURE.md says of Skellam noise, whose variance is the same: a quarter of the noise, and 1 % of it."""
    room, task, _ = heard_of(loaded_of(arm("binomial", honest=Decimal(1)), n=10_000, repetitions=1), 1)
    terms, rows, (node,) = terms_of_records(task, task.menu[0]), np.arange(10_000), room.nodes
    records = node.source.records(task, 0, rows)  # type: ignore[union-attr]
    values = contributions(task, terms.how, gradients("mean", records, np.zeros(3), None), rows)
    units, stddev = values / 2.0**terms.power, float(terms.shares.variance) ** 0.5
    cut = np.abs((np.trunc(units) - units).sum(axis=0)) / stddev
    whole = rounded(values, terms, node.draws(task, 0).roundings(rows, 3))
    assert (cut > 0.25).all() and (cut < 0.28).all()
    assert (np.abs((whole - units).sum(axis=0)) / stddev < 0.02).all()


def paired(n: int, honest: str, norm: str, repetitions: int, law: str = "skellam") -> float:
    """The mean error over that of a curator's sum of exact rows, with the same noise, each at its own scale.

    What differs is how large noise is, the threshold that follows from it, and that rows are rounded. The law of the
    noise is as good as the curator's: its increments are, to a few parts in 10^8.
    """
    loaded = loaded_of(arm(law, norm=norm, honest=Decimal(honest)), n=n, repetitions=repetitions)
    room, task, heard = heard_of(loaded, 1)
    terms, rows, (node,) = terms_of_records(task, task.menu[0]), np.arange(n), room.nodes
    drawn = np.array([noise_of(terms.shares, rows, node.draws(task, at)) for at in range(repetitions)])
    unit = drawn / float(terms.shares.share * n) ** 0.5
    _, asked, exact = heard_of(replace(loaded, study=replace(loaded.study, arms=(curator(norm),))), 1)
    assert asked.exponent is not None and heard.collected.sums is not None and exact.collected.sums is not None
    squared = squared_sensitivity(Bounded.of(asked.menu[0]), asked.exponent, 3)
    stddev = analytic_noise_multiplier(Decimal(1), Decimal("0.00001")) * squared**0.5 * 2.0**asked.exponent
    own, theirs = heard.collected.sums / n, (exact.collected.sums + stddev * unit) / n
    errors = [np.linalg.norm(found + 1.0, axis=1).mean() for found in (own, theirs)]  # gradients at 0 are -x
    return float(errors[0] / errors[1])


def curator(norm: str) -> Arm:
    return Arm(Trust.CENTRAL, "gaussian", "mean", (("norm", norm),))


def test_as_accurate_as_a_curator() -> None:
    assert abs(paired(600, "1", "l2", 20, "binomial") - 1) <= 3e-3


@pytest.mark.slow
@pytest.mark.parametrize("n", [3000, 10_000])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_as_accurate_as_a_curator_over_a_hundred_repetitions(n: int, norm: str) -> None:
    ratios = [paired(n, honest, norm, 100) for honest in ("1", "0.9")]
    assert abs(ratios[0] - 1) <= 2e-3
    assert ratios[1] <= 1.03


def test_rows_are_records_or_holders() -> None:
    _, task, _ = heard_of(loaded_of(arm()))
    assert task.unit is Unit.RECORD
    for unit in (Unit.ADDED_RECORD, Unit.ADDED_HOLDER, Unit.LABEL):
        with pytest.raises(ValueError, match="roster"):
            terms_of_records(replace(task, unit=unit), task.menu[0])
