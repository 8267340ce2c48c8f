"""Attack studies from end to end: who lies and what is said, equal bytes for any split, breakdown where theory says."""

import csv
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.labeler import answer
from protocol.codec import Signed, decode_reply, encode_task
from protocol.features import row_bound
from protocol.messages import Task
from protocol.strict import StudyError
from protocol.study import Cell
from protocol.trust import Trust
from protocol.warned import code_of
from server.collect import Mail, collect
from server.rounds import play
from server.tasks import offers
from studies.attacks.folder import RESULTS
from studies.attacks.lies import Attack
from studies.attacks.run import run_attacks
from studies.attacks.score import SCHEMA, predicted, ranked
from studies.attacks.study_file import AttackStudy, Liars, drawn_pairs, load_attack_study
from studies.attacks.summary import curves
from studies.cli import main
from studies.in_process import in_process, run_cell
from studies.run import Interrupted

SMALL = """
[study]
name = "small"
seed = 5
repetitions = 2

[problem]
kind = "pairwise"
dimension = 5
features = "items"
sum_zero = true
theta = [1.0, 0.5, 0.0, -0.5, -1.0]
bound = 4.0

[grid]
n = [400]
epsilon = [1.0]
delta = [1e-5]

[attack]
fractions = [0, 0.2, 0.4]
nodes = 10

[[liars]]
how = "push"
target = 4
by = "labelers"
[[liars]]
how = "collude"
by = "nodes"
[[liars]]
how = "extreme"
by = "nodes"

[[arm]]
trust = "clear"
estimator = "mle"
[[arm]]
trust = "local"
estimator = "debiased"
[[arm]]
trust = "local"
estimator = "debiased-median-of-means"
groups = 10
[[arm]]
trust = "central"
mechanism = "gaussian-statistic"
estimator = "mle"
[[arm]]
trust = "central"
mechanism = "gaussian-statistic"
estimator = "median-of-means"
groups = 10
[[arm]]
trust = "none"
estimator = "zero"
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("attack") / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def small(path: Path) -> AttackStudy:
    return load_attack_study(path)


@pytest.fixture(scope="module")
def whole(small: AttackStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    run_attacks(small, out)
    return out


def attack(study: AttackStudy, liars: Liars, fraction: float = 0.2) -> Attack:
    room = in_process(study.loaded.study, study.loaded.theta, 1)
    return Attack(study.loaded.study, study.loaded.theta, liars, fraction, study.nodes, room.server.features)


def tasks(study: AttackStudy, trust: Trust) -> list[Task]:
    every = [task for offer in offers(study.loaded.study, Cell(400, 0, 2)) for task in offer.asked]
    return [task for task in every if task.trust is trust]


def test_any_number_of_clients_gives_the_same_bytes(small: AttackStudy, whole: Path, tmp_path: Path) -> None:
    run_attacks(small, tmp_path, clients=7)
    assert (tmp_path / RESULTS).read_bytes() == (whole / RESULTS).read_bytes()


def test_nobody_lies_at_zero(small: AttackStudy, whole: Path) -> None:
    table = pq.read_table(whole / RESULTS)
    assert table.schema.equals(SCHEMA) and table.num_rows == 3 * 3 * 2 * 6
    honest = {(one.arm.name, one.repetition): one.theta.tolist() for one in run_cell(
        small.loaded.study, small.loaded.theta, Cell(400, 0, 2))}  # fmt: skip
    rows = [row for row in table.to_pylist() if row["fraction"] == 0.0]
    assert len(rows) == 3 * len(honest)
    assert all(row["theta"] == honest[row["arm"], row["repetition"]] for row in rows)


def test_exactly_the_share_asked_for_lies_and_more_liars_are_those_and_others(small: AttackStudy) -> None:
    for by, units in (("labelers", 400), ("nodes", 10)):
        few, many = (attack(small, Liars("flipped", by), share).rows(400, 1) for share in (0.2, 0.4))
        assert few.sum() == 80 and many.sum() == 160 and (many >= few).all(), units
    other = attack(small, Liars("flipped", "labelers")).rows(400, 0)
    assert (other != attack(small, Liars("flipped", "labelers")).rows(400, 1)).any()


def test_liars_with_many_labels_count_as_far_as_the_cap_lets_them(small: AttackStudy) -> None:
    loud = attack(small, Liars("flipped", "labelers", labels=10)).rows(400, 0)
    capped = attack(small, Liars("flipped", "labelers", labels=10, cap=1)).rows(400, 0)
    assert loud.sum() == round(400 * 2.0 / 2.8) and capped.sum() == 80


@pytest.mark.parametrize("trust", [Trust.CLEAR, Trust.LOCAL])
def test_liars_skip_the_randomiser_and_the_others_keep_their_reports(small: AttackStudy, trust: Trust) -> None:
    liars = attack(small, Liars("collude", "labelers"))
    room = in_process(small.loaded.study, small.loaded.theta, 1)
    raw = encode_task(tasks(small, trust)[0])
    ((before,), (after,)) = (decode_reply(ask([raw])[0]) for ask in (room.ask, liars.on(room.ask)))
    assert isinstance(before, Signed) and isinstance(after, Signed)
    rows = room.server.features.reduced(small.loaded.study.problem, 400, 1, 0, 400)
    lying = liars.rows(400, 1)
    z = rows @ liars._direction
    assert np.array_equal(after.report.payload.values[1][lying], (z > 0)[lying])
    assert np.array_equal(after.report.payload.values[1][~lying], before.report.payload.values[1][~lying])


@pytest.mark.parametrize("how", ["flipped", "extreme"])
def test_lying_sums_are_valid_messages_with_the_liars_share_replaced(small: AttackStudy, how: str) -> None:
    liars = attack(small, Liars(how, "nodes"))
    problem = small.loaded.study.problem
    for clients in (1, 6):
        room = in_process(small.loaded.study, small.loaded.theta, clients)
        (task, *_) = tasks(small, Trust.CENTRAL)
        raw = encode_task(task)
        mail = Mail.open(liars.on(room.ask)([raw]), [decode_reply(answer(raw, room.nodes[0]))[0].report.task])  # type: ignore[index]
        got = collect(task, next(iter(mail.by_task)), mail)
        assert not got.rejected and got.sums is not None
        design = room.server.designs(problem, 400, 0).get(task.exponent or 0, None)
        lying = liars.rows(400, 0)
        labels = liars._labels(task, 0).astype(float)
        honest = labels[~lying] @ design.rows[~lying]
        lie = (1 - labels[lying]) @ design.rows[lying]
        if how == "extreme":
            lie = np.sign(liars._direction) * row_bound(problem, None) * lying.sum()
        assert got.sums[0] == pytest.approx(honest + lie, rel=1e-9)


def test_a_push_moves_only_pairs_with_the_item(small: AttackStudy) -> None:
    liars = attack(small, Liars("push", "labelers", target=4), 0.9)
    said = liars.says(tasks(small, Trust.LOCAL)[0], 0)
    pairs = small.loaded.study.problem.design
    assert pairs is not None
    speaks = (pairs == 4).any(axis=1) & liars.rows(400, 0)
    assert np.array_equal(said != 255, speaks)
    assert np.array_equal(said[speaks], (pairs[speaks, 1] == 4).astype(np.uint8))


def test_flipped_labels_break_the_mean_at_half_of_what_privacy_leaves(small: AttackStudy) -> None:
    """f = 1 / (1 + coth(epsilon / 2)) = (1 - e^-epsilon) / 2, and 1/2 without noise."""
    arms = {(arm.trust, arm.estimator): arm for arm in small.loaded.study.arms}
    liars, debiased = Liars("flipped", "labelers"), arms[Trust.LOCAL, "debiased"]
    for epsilon in (0.1, 1.0, 3.0):
        assert predicted(small, liars, debiased, epsilon, 400) == pytest.approx((1 - np.exp(-epsilon)) / 2)
    assert predicted(small, liars, arms[Trust.CLEAR, "mle"], None, 400) == pytest.approx(0.5)
    robust = arms[Trust.LOCAL, "debiased-median-of-means"]
    assert predicted(small, replace(liars, by="nodes"), robust, 1.0, 400) == 0.5
    assert predicted(small, Liars("collude", "labelers"), debiased, 1.0, 400) < (1 - np.exp(-1)) / 2  # type: ignore[operator]


def test_one_sum_is_at_the_mercy_of_a_node_and_a_median_is_not(small: AttackStudy, whole: Path) -> None:
    """Fixed coins: two nodes of ten that send the largest sums that are accepted."""
    found = {(one.place.liars, one.place.arm): one for one in curves(small, pq.read_table(whole / RESULTS))}
    one_sum = found["extreme, nodes", "central/gaussian-statistic/mle"]
    median = found["extreme, nodes", "central/gaussian-statistic/median-of-means[groups=10]"]
    assert one_sum.measured is not None and one_sum.measured < 0.2
    assert one_sum.points[1].error.mean > 2 * median.points[1].error.mean


def test_ranks_and_angles() -> None:
    truth = np.array([2.0, 1.0, 0.0])
    assert ranked(truth * 3, truth) == {"angle": pytest.approx(0.0, abs=1e-5), "kendall": 1.0}
    assert ranked(-truth, truth)["kendall"] == -1.0
    assert ranked(np.array([1.0, 2.0, 0.0]), truth)["kendall"] == pytest.approx(1 / 3)
    assert ranked(np.zeros(3), truth) == {"angle": None, "kendall": None}


def test_pairs_are_different_items_and_every_pair_occurs() -> None:
    """Of 20,000 fixed pairs of 5 items each of 20 ordered ones is within 6 standard deviations of 1,000 (4e-8)."""
    pairs = drawn_pairs(1, 5, 20_000)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    counts = np.bincount(pairs[:, 0] * 5 + pairs[:, 1], minlength=25).reshape(5, 5)
    assert np.abs(counts[~np.eye(5, dtype=bool)] - 1000).max() < 6 * np.sqrt(950)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("liars.1.how=bribe", "how"),
        ("liars.2.target=1", "exactly for how"),
        ("liars.3.by=labelers", 'expected "nodes"'),
        ("liars.2.cap=1", 'by = "labelers" only'),
        ("attack.fractions=[0.2, 0.1]", "increasing"),
        ("attack.fractions=[1.0]", r"\[0, 1\)"),
        ("attack.nodes=2", "nodes"),
        ("arm.3.groups=2", "from 3 to"),
        ("arm.3.groups=2.5", "whole number"),
    ],
)
def test_wrong_studies_are_refused(path: Path, change: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        load_attack_study(path, [change])


def test_sums_under_masks_are_refused_with_the_reason(path: Path, tmp_path: Path) -> None:
    masked = tmp_path / "masked.toml"
    masked.write_text(path.read_text("utf-8") + '[[arm]]\ntrust = "distributed"\nestimator = "mle"\n', "utf-8")
    with pytest.raises(StudyError, match="nobody sees what one member adds"):
        load_attack_study(masked)


def test_the_command_writes_tables_and_plots(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["attack", str(path), "--out", str(tmp_path), "--set", "study.repetitions=1", "--set"]
    assert main([*command, "attack.fractions=[0, 0.4]"]) == 0
    said = capsys.readouterr().out
    assert "Liars: push 4, labelers" in said and "breakdown" in said
    codes = {code_of(text) for texts in pq.read_table(tmp_path / RESULTS)["warnings"].to_pylist() for text in texts}
    assert codes and None not in codes and all(f"Warning ({code}) in " in said for code in codes)
    with (tmp_path / "curves.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 3 * 6 * 2
    assert all((tmp_path / "figures" / f"{name}_by_liars.png").exists() for name in ("errors", "ranks", "angles"))
    capsys.readouterr()
    assert main([*command, "attack.fractions=[0, 0.4]"]) == 2  # results are there already
    assert "6 finished units: say --resume to go on, --overwrite" in capsys.readouterr().err
    assert main([*command, "attack.fractions=[0, 0.4]", "--resume", "--overwrite"]) == 2
    assert main([*command, "attack.fractions=[0, 0.2]", "--resume"]) == 2
    assert "attack.fractions.2: 0.4 -> 0.2" in capsys.readouterr().err


def test_the_folder_of_a_run_is_left_alone(small: AttackStudy, tmp_path: Path) -> None:
    (tmp_path / "study.json").touch()
    for flags in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(StudyError, match="got that of a run"):
            run_attacks(small, tmp_path, **flags)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


def test_what_was_finished_before_ctrl_c_is_kept_and_the_rest_is_the_same(
    small: AttackStudy, whole: Path, tmp_path: Path
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="4 of 9 units are finished"):
        run_attacks(small, tmp_path, progress=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
    assert len(kept) == 4 and not (tmp_path / RESULTS).exists()
    with pytest.raises(StudyError, match="4 finished units: say --resume"):
        run_attacks(small, tmp_path)
    seen: list[int] = []
    run_attacks(small, tmp_path, progress=lambda done, total: seen.append(done), resume=True)
    assert seen == [4, 5, 6, 7, 8, 9]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert (tmp_path / RESULTS).read_bytes() == (whole / RESULTS).read_bytes()
    part = next((tmp_path / "parts").iterdir())
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.raises(StudyError, match="Delete the file and say --resume"):
        run_attacks(small, tmp_path, resume=True)
    run_attacks(small, tmp_path, overwrite=True)
    assert (tmp_path / RESULTS).read_bytes() == (whole / RESULTS).read_bytes()


def test_a_table_without_results_has_no_curves(small: AttackStudy) -> None:
    assert not list(curves(small, pa.Table.from_pylist([], schema=SCHEMA)))


@pytest.mark.parametrize("how", ["flipped", "collude"])
def test_theory_says_where_liars_outweigh_honest_labels(path: Path, how: str) -> None:
    """At 0.6 and 1.4 times the predicted share the statistic is 6.8 standard deviations or more from 0 (rate 1e-10)."""
    study = load_attack_study(path, ["grid.n=[20000]", "grid.epsilon=[0.5, 1.0, 2.0]", "study.repetitions=1"])
    asked, theta = study.loaded.study, study.loaded.theta
    (arm,) = (arm for arm in asked.arms if arm.estimator == "debiased")
    liars = Liars(how, "labelers")
    for epsilon in (0.5, 1.0, 2.0):
        share = predicted(study, liars, arm, epsilon, 20_000)
        assert share is not None
        for times in (0.6, 1.4):
            room = in_process(asked, theta, 1)
            lies = Attack(asked, theta, liars, times * share, study.nodes, room.server.features)
            played = play(replace(asked, arms=(arm,)), Cell(20_000, 0, 1), lies.on(room.ask), room.server)
            (found,) = (one for one in played if one.epsilon == Decimal(str(epsilon)))
            assert (found.theta @ theta > 0) == (times < 1)
