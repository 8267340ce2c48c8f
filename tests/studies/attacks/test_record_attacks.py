"""Attack studies about records: who lies, what is said, that it is legal, and what it does to means and medians."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from protocol.codec import decode_task, identity
from protocol.messages import Task
from protocol.strict import StudyError
from protocol.study import Cell
from server.collect import Collected, Mail, collect
from server.rounds import play
from studies.attacks.folder import RESULTS
from studies.attacks.record_lies import RecordAttack
from studies.attacks.run import run_attacks
from studies.attacks.score import predicted
from studies.attacks.study_file import RECORD_HOW, AttackStudy, Liars, load_attack_study
from studies.attacks.summary import curves
from studies.in_process import in_process, run_cell

HEAD = """
[study]
name = "small"
seed = 5
repetitions = 2
[problem]
kind = "records"
model = "{model}"
dimension = 2
{theta}
[records]
{law}
tail = 0.3
moment = 6
[grid]
n = [200]
epsilon = [4.0]
delta = [1e-5]
[attack]
fractions = [0, 0.2]
nodes = 10
[[liars]]
how = "collusion"
by = "holders"
[[liars]]
how = "small-shift"
by = "nodes"
"""
ARMS = """
[[arm]]
trust = "clear"
estimator = "mean"
[[arm]]
trust = "clear"
estimator = "mean"
aggregate = "coordinate-median"
[[arm]]
trust = "local"
mechanism = "piecewise"
estimator = "mean"
[[arm]]
trust = "local"
mechanism = "laplace"
estimator = "mean"
[[arm]]
trust = "local"
mechanism = "duchi-ball"
estimator = "mean"
[[arm]]
trust = "central"
estimator = "mean"
[[arm]]
trust = "central"
estimator = "median-of-means"
groups = 10
[[arm]]
trust = "central"
estimator = "mean"
aggregate = "trimmed-mean"
trim = 0.3
[[arm]]
trust = "central"
estimator = "mean"
aggregate = "centred-clipping"
[[arm]]
trust = "none"
estimator = "zero"
"""
DESCENTS = """
[[arm]]
trust = "clear"
estimator = "descent"
rounds = 3
step = 0.5
[[arm]]
trust = "local"
mechanism = "piecewise"
estimator = "descent"
rounds = 2
step = 0.5
threshold = 3
[[arm]]
trust = "central"
estimator = "descent"
rounds = 3
step = 0.5
threshold = 3
"""
MEAN = HEAD.format(model="mean", theta="", law='features = "student-t(1.5) + 1"') + ARMS
LINEAR = HEAD.format(model="linear", theta="theta = [1.0, -0.5]", law='features = "normal"\nnoise = "student-t(1.5)"')


def read(folder: Path, text: str) -> AttackStudy:
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return load_attack_study(path)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> AttackStudy:
    return read(tmp_path_factory.mktemp("records"), MEAN)


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> AttackStudy:
    return read(tmp_path_factory.mktemp("linear"), LINEAR + DESCENTS)


def heard(study: AttackStudy, liars: Liars, clients: int = 3) -> list[tuple[Task, Collected, Collected]]:
    """Each task of the study's arms, with what is collected of honest and of lying replies."""
    asked = study.loaded.study
    room, found = in_process(asked, study.loaded.theta, clients), list[tuple[Task, Collected, Collected]]()
    attack = RecordAttack(asked, study.loaded.theta, liars, 0.2, study.nodes)

    def ask(raws: list[bytes]) -> list[bytes]:
        honest = room.ask(raws)
        lying = attack.on(lambda _: honest)(raws)
        ids = [identity(raw) for raw in raws]
        for raw, name in zip(raws, ids, strict=True):
            task = decode_task(raw)
            found.append((task, *(collect(task, name, Mail.open(each, ids)) for each in (honest, lying))))
        return lying

    list(play(asked, Cell(200, 0, 2), ask, room.server))
    return found


@pytest.mark.parametrize("by", ["holders", "nodes"])
@pytest.mark.parametrize("how", RECORD_HOW)
def test_every_lie_is_one_that_the_server_accepts_and_only_liars_tell_it(
    linear: AttackStudy, small: AttackStudy, how: str, by: str
) -> None:
    study = linear if how == "flipped-labels" else small
    liars = Liars(how, by)
    attack = RecordAttack(study.loaded.study, study.loaded.theta, liars, 0.2, study.nodes)
    changed = 0
    for _, honest, lying in heard(study, liars):
        assert not lying.rejected and lying.refusals == honest.refusals
        assert lying.rows.tolist() == honest.rows.tolist()
        for index in range(2):
            liar = attack.rows(200, index)[honest.rows]
            if honest.values is None or lying.values is None:
                assert honest.sums is not None and lying.sums is not None
                assert (honest.sums[index] == lying.sums[index]).all() or liar.any()
                changed += bool((honest.sums[index] != lying.sums[index]).any())
                continue
            moved = (honest.values[index] != lying.values[index]).any(axis=1)
            assert not moved[~liar].any()
            changed += bool(moved.any())
    assert changed >= len(study.loaded.study.arms)


def test_exactly_the_share_asked_for_lies(small: AttackStudy) -> None:
    for by in ("holders", "nodes"):
        few, many = (
            RecordAttack(small.loaded.study, small.loaded.theta, Liars("collusion", by), share, 10).rows(200, 1)
            for share in (0.2, 0.4)
        )
        assert few.sum() == 40 and many.sum() == 80 and (many >= few).all()


def test_lies_about_a_sum_are_what_its_rows_would_add(small: AttackStudy) -> None:
    """Colluding against the truth 1: gradients -x become +threshold, on the grid, whoever carries them."""
    liars = Liars("collusion", "holders")
    attack = RecordAttack(small.loaded.study, small.loaded.theta, liars, 0.2, 10)
    (task, honest, lying) = next(each for each in heard(small, liars) if each[2].sums is not None)
    assert honest.sums is not None and lying.sums is not None and task.rows is None
    (x, _, _) = attack._source(False).records(task, 1, np.arange(200)).reveal()
    bound = float(dict(task.menu[0].parameters)["threshold"])
    own = np.clip(-x[attack.rows(200, 1), 0], -bound, bound).sum(axis=0)
    np.testing.assert_allclose(lying.sums[1] - honest.sums[1], 40 * bound - own, rtol=1e-9)


def test_flipped_labels_are_an_honest_protocol_on_false_records(linear: AttackStudy) -> None:
    """In clear: the gradient at 0 is -y x, so that a lie is its opposite."""
    (task, honest, lying) = next(each for each in heard(linear, Liars("flipped-labels", "holders")))
    assert honest.values is not None and lying.values is not None
    liar = (honest.values[0] != lying.values[0]).any(axis=1)
    assert liar.sum() == 40 and (task.theta is None or not task.theta.any())
    np.testing.assert_array_equal(lying.values[0][liar], -honest.values[0][liar])


def test_any_number_of_clients_gives_the_same_bytes(small: AttackStudy, tmp_path: Path) -> None:
    run_attacks(small, tmp_path / "one")
    run_attacks(small, tmp_path / "seven", clients=7)
    assert (tmp_path / "one" / RESULTS).read_bytes() == (tmp_path / "seven" / RESULTS).read_bytes()


def test_nobody_lies_at_zero_and_medians_stand_where_means_fall(small: AttackStudy, tmp_path: Path) -> None:
    table = run_attacks(small, tmp_path)
    honest = {
        (one.arm.name, one.repetition): one.theta.tolist()
        for one in run_cell(small.loaded.study, small.loaded.theta, Cell(200, 0, 2))
    }
    for row in table.to_pylist():
        assert row["fraction"] > 0 or row["theta"] == honest[row["arm"], row["repetition"]]
    ends = {
        curve.place.arm: curve.points[-1].error.mean
        for curve in curves(small, table)
        if curve.place.liars == "collusion, holders"
    }
    clear, median = (ends[arm.name] for arm in small.loaded.study.arms[:2])
    assert clear > 100 and median < 1.4  # the answer 0 has the error 1.41


def test_breakdown_by_theory_is_that_of_the_aggregator(small: AttackStudy) -> None:
    arms = small.loaded.study.arms
    holders, nodes = Liars("collusion", "holders"), Liars("collusion", "nodes")
    found = [predicted(small, holders, arm, 4.0, 200) for arm in arms]
    assert found == [None, 99 / 200, None, None, None, None, 4 / 200, 60 / 200, None, None]
    assert predicted(small, nodes, arms[6], 4.0, 200) == 0.5


WRONG: list[tuple[str, str, str]] = [
    ('how = "collusion"', 'how = "push"', "how: expected one of"),
    ('how = "collusion"', 'how = "flipped-labels"', "expected records with labels"),
    ('by = "holders"', 'by = "labelers"', "by: expected one of"),
    ('by = "holders"', 'by = "holders"\nlabels = 2', "labels"),
]


@pytest.mark.parametrize(("old", "new", "text"), WRONG)
def test_what_makes_no_sense_is_refused(tmp_path: Path, old: str, new: str, text: str) -> None:
    with pytest.raises(StudyError, match=text):
        read(tmp_path, MEAN.replace(old, new, 1))


def test_the_study_of_the_docs_reads() -> None:
    study = load_attack_study(Path(__file__).parents[3] / "studies/toml/heavy-attacks.toml")
    assert study.loaded.study.grid.epsilon == (Decimal(1), Decimal(4))
