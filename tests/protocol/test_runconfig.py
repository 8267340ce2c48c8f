"""A study as flat scalars: the same study comes out; what does not fit is named."""

import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.arms import Arm
from protocol.codec import encode_task
from protocol.messages import Mechanism, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.runconfig import DEFAULT_STUDY, RunConfig, read, write
from protocol.strict import StudyError
from protocol.study import Grid, Study, cells
from protocol.study_file import parse
from protocol.trust import Trust
from studies.panel import panel

TOML = Path(__file__).resolve().parents[2] / "studies" / "toml"


def written(study: Study) -> Study:
    return read(write(study)).study


def public(path: Path) -> Study:
    content = tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
    content["problem"].pop("theta", None)
    content.get("population", {}).pop("theta", None)
    for arm in content["arm"]:
        if isinstance(arm.get("radius"), dict):
            arm["radius"] = arm["radius"]["gaussian"]
    return parse(content, panel(content))


OTHER = ("[bandit]", "[attack]", "[[way]]")  # tables of studies that have commands of their own
ORDINARY = sorted(
    path.name for path in TOML.glob("*.toml") if not any(table in path.read_text("utf-8") for table in OTHER)
)


@pytest.mark.parametrize("name", ORDINARY)
def test_a_shipped_study_comes_out_as_it_went_in(name: str) -> None:
    study = public(TOML / name)
    again = written(study)
    assert again.fingerprint == study.fingerprint
    assert repr(again.grid) == repr(study.grid) and repr(again.arms) == repr(study.arms)
    assert repr(again.problem) == repr(study.problem)


decimals = st.decimals("1e-9", "1e9", allow_nan=False).map(lambda value: Decimal(f"{value:.20g}"))


@given(
    name=st.text(min_size=1).filter(lambda text: text.isprintable() or "\x7f" in text or "\n" in text),
    seed=st.integers(0, (1 << 128) - 1),
    epsilon=st.lists(decimals, min_size=1, unique=True),
    bound=st.none() | decimals,
    tau=decimals,
)
def test_every_digit_comes_out_as_it_went_in(
    name: str, seed: int, epsilon: list[Decimal], bound: Decimal | None, tau: Decimal
) -> None:
    study = read({}).study
    arms = tuple(replace(arm, options=(("tau", tau),)) if arm.estimator == "rr-map" else arm for arm in study.arms)
    grid = Grid((1, 1000), tuple(sorted(epsilon)), (Decimal("1E-5"),))
    study = Study(name, seed, 3, replace(study.problem, bound=bound), grid, arms)
    again = written(study)
    assert again.fingerprint == study.fingerprint
    assert (repr(again.grid), repr(again.arms)) == (repr(study.grid), repr(study.arms))
    assert repr(again.problem.bound) == repr(bound) and again.name == name


@pytest.mark.parametrize(
    "problem",
    [
        Problem(2, "values", False, Decimal("3.0"), np.array([[0.1, -1e99], [5e-324, 2.0]])),
        Problem(3, "items", True, None, np.array([[0, 1], [2, 0]], dtype=np.int32)),
    ],
)
def test_given_features_travel_by_value(problem: Problem) -> None:
    study = read({}).study
    study = replace(study, problem=problem, grid=replace(study.grid, n=(2,)))
    config = write(study)
    assert isinstance(config["design"], str) and config["design"]
    again = read(config).study
    assert again.fingerprint == study.fingerprint and again.problem.digest == problem.digest


def test_the_whole_configuration_comes_out_as_it_went_in() -> None:
    how = {"mode": "live", "quorum": "0.75", "curator": "ledger", "attempt": 2}
    config = write(read({}).study, clients=3, block=2, finished=2, deadline=7.5, **how)
    again = read({**config, "truth": "not looked at"})
    assert again.finished == 2 and [cell.first_repetition for cell in again.missing()] == [0]
    assert (again.clients, again.block, again.deadline, again.mode, again.curator) == (3, 2, 7.5, "live", "ledger")
    assert (again.quorum, again.attempt) == ("0.75", 2)
    assert all(isinstance(value, str | int | float | bool) for value in config.values())


def test_a_task_says_more_than_a_study() -> None:
    """Rows, ties, and whose a row is; the pairs travel once, in the task."""
    pairs = np.array([[0, 1], [2, 0], [1, 2]], dtype=np.int32)
    study = read({}).study
    study = replace(
        study, repetitions=1, problem=Problem(3, "items", True, None, pairs), grid=Grid((3,), (Decimal(1),), ())
    )
    study = replace(study, arms=(Arm(Trust.LOCAL, "randomized-response", "rr-mle"),))
    menu = (Mechanism.of("randomized-response", epsilon=Decimal(1)),)
    claim = (Trust.LOCAL, Unit.LABEL, study.problem, menu, 3, Decimal(1), None)
    task = Task(bytes(32), *claim, 0, 1, rows=Runs.of([0, 2]), ties=Ties.COIN)
    config = write(study, task=task)
    assert config["design"] == ""
    again = read(config)
    assert again.task is not None and encode_task(again.task) == encode_task(task)
    assert again.study.fingerprint == study.fingerprint
    with pytest.raises(StudyError, match="task: expected the one cell of the study"):
        read(write(replace(study, repetitions=2), task=task))
    with pytest.raises(StudyError, match="under the trust model of its arms"):
        read(write(study, task=replace(task, trust=Trust.CLEAR)))


@pytest.mark.parametrize("assumed", [{}, {"tail": Decimal("0.50"), "moment": Decimal("1E+2")}])
@pytest.mark.parametrize("per_holder", [0, 1])
def test_records_of_files_have_no_law(per_holder: int, assumed: dict[str, Decimal]) -> None:
    """Nobody but their holders knows it; a study of one's own has to name one."""
    problem = Problem(2, "records", False, Decimal(3), kind="records", model="linear")
    arm = Arm(Trust.CENTRAL, "gaussian", "descent", (("step", Decimal("0.10")), ("threshold", Decimal("1E+2"))))
    law = RecordLaw(per_holder=per_holder, **assumed)
    grid = Grid((40,), (Decimal("1.0"),), (Decimal("1E-5"),))
    study = Study("records abc", 7, 1, problem, grid, (arm,), records=law)
    config = write(study, clients=3, curator="ledger")
    again = read(config).study
    assert again.fingerprint == study.fingerprint and again.records == law
    assert [cell.n for cell in read(config).missing()] == [40]
    with pytest.raises(StudyError, match=r"records.*'features'"):
        parse(tomllib.loads(str(config["study"]), parse_float=Decimal))


def test_nothing_said_is_a_small_study_of_all_arms() -> None:
    config = read({"study": "", "truth": "", "design": ""})
    figure = public(TOML / "figure1.toml")
    assert {arm.name for arm in config.study.arms} == {arm.name for arm in figure.arms}
    assert len(cells(config.study)) == 1
    assert isinstance(config, RunConfig) and "theta" not in DEFAULT_STUDY


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"client": 3}, "unknown key 'client'; did you mean 'clients'"),
        ({"clients": "3"}, r"clients: expected an integer"),
        ({"clients": True}, r"clients: expected an integer"),
        ({"clients": -1}, r"clients: expected an integer"),
        ({"block": 1.5}, r"block: expected an integer"),
        ({"deadline": 0}, r"deadline: expected seconds > 0"),
        ({"deadline": float("nan")}, r"deadline: expected seconds > 0"),
        ({"deadline": float("inf")}, r"deadline: expected seconds > 0"),
        ({"deadline": True}, r"deadline: expected seconds > 0"),
        ({"mode": "fast"}, r"mode: expected one of"),
        ({"curator": "none"}, r"curator: expected one of"),
        ({"quorum": "2"}, r"quorum: expected none in strict mode"),
        ({"mode": "live", "quorum": "half"}, r"quorum: expected a number of clients such as 3, or a share"),
        ({"mode": "live", "quorum": "0"}, r"quorum: expected a number of clients"),
        ({"mode": "live", "quorum": "0.0"}, r"quorum: expected a number of clients"),
        ({"mode": "live", "quorum": "1.5"}, r"quorum: expected a number of clients"),
        ({"attempt": -1}, r"attempt: expected"),
        ({"finished": "2"}, r"finished: expected a hexadecimal number of 1 bits"),
        ({"finished": "01"}, r"finished: expected a hexadecimal number"),
        ({"finished": "-1"}, r"finished: expected a hexadecimal number"),
        ({"finished": 1}, r"finished: expected a string"),
        ({"task": "AAAA"}, r"task: expected the bytes of a task in base64"),
        ({"task": "?"}, r"task: expected the bytes of a task in base64"),
        ({"study": 7}, r"study: expected a string"),
        ({"study": "[study"}, r"study: expected TOML"),
        ({"study": DEFAULT_STUDY.replace("bound = 3.0", "theta = [1.0]")}, "unknown key 'theta'"),
        ({"study": DEFAULT_STUDY.replace('gaussian"', 'values"', 1)}, r"design: expected one exactly"),
        ({"study": DEFAULT_STUDY.replace('gaussian"', 'secret.npy"', 1)}, r"features"),
        ({"design": "AAAA"}, r"design: expected one exactly"),
        ({"study": DEFAULT_STUDY.replace('gaussian"', 'values"', 1), "design": "AAAA"}, r"expected an \.npy file"),
        ({"study": DEFAULT_STUDY.replace('gaussian"', 'values"', 1), "design": "/etc/passwd"}, r"expected an \.npy"),
    ],
)
def test_what_does_not_fit_is_named(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(StudyError, match=reason):
        read(config)
