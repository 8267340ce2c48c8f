"""Panels: few questions of many labelers each, from a study's file to its results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.features import reduced_rows
from protocol.questions import questions, smallest_group
from protocol.strict import StudyError
from protocol.study import Cell
from protocol.trust import Trust
from server.tasks import offers
from studies.cli import main
from studies.load import Loaded, build, load, restore
from studies.report.arms import looks

ROOT = Path(__file__).resolve().parents[2]
PAIRS: dict[str, Any] = {
    "kind": "pairwise",
    "dimension": 3,
    "features": "gaussian",
    "questions": 4,
    "bound": 3.0,
    "theta": [1.0, 0.0, -1.0],
}
ARMS: list[dict[str, Any]] = [
    {"trust": "shuffled", "estimator": "rr-mle"},
    {"trust": "local", "estimator": "rr-mle"},
    {"trust": "central", "estimator": "mle"},
]


def loaded(problem: dict[str, Any], arms: Any = ARMS, delta: bool = True) -> Loaded:
    content = {
        "study": {"name": "panel", "seed": 5, "repetitions": 2},
        "problem": problem,
        "grid": {"n": [40, 80], "epsilon": [1], **({"delta": [1e-5]} if delta else {})},
        "arm": list(arms),
    }
    return build(content, Path())


@pytest.mark.parametrize("features", ["gaussian", "sphere"])
def test_rows_take_turns_at_the_questions(features: str) -> None:
    problem = loaded({**PAIRS, "features": features}).study.problem
    assert questions(problem, 80).tolist() == list(np.arange(80) % 4)
    rows = reduced_rows(problem, 5, 80, 0, 0, 80)
    assert np.array_equal(rows, rows[np.arange(80) % 4])
    assert np.array_equal(rows, reduced_rows(problem, 99, 80, 7, 0, 80))  # the same in all repetitions
    if features == "sphere":
        assert (np.linalg.norm(rows, axis=1) <= 2).all()


def test_questions_about_items_are_all_pairs() -> None:
    problem = loaded({**PAIRS, "features": "items", "dimension": 3, "questions": 3, "sum_zero": True}).study.problem
    assert problem.design is not None
    assert problem.design[:4].tolist() == [[-1, 1, 0], [-1, 0, 1], [0, -1, 1], [-1, 1, 0]]
    every = {key: value for key, value in PAIRS.items() if key != "questions"}
    assert (
        smallest_group(
            next(
                offer.task
                for offer in offers(loaded({**every, "features": "items", "sum_zero": True}).study, Cell(80, 0, 1))
                if offer.task and offer.task.trust is Trust.SHUFFLED
            )
        )
        == 80 // 3
    )


def test_questions_of_choices() -> None:
    problem = {**PAIRS, "kind": "choice", "choices": 3}
    study = loaded(problem, arms=[{"trust": "shuffled", "estimator": "rr-mle", "honest": 0.5}]).study
    assert study.problem.design is not None
    assert study.problem.design.shape == (80, 3, 3)
    assert questions(study.problem, 80).tolist() == list(np.arange(80) % 4)
    (offer,) = offers(study, Cell(80, 0, 1))
    assert offer.task is not None
    assert offer.task.menu[0].get("group") == 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"questions": 0}, "questions"),
        ({"questions": 81}, "questions"),
        ({"questions": "4"}, "questions"),
        ({"features": "items", "questions": 4}, "questions"),
        ({"features": "items", "kind": "choice", "choices": 3}, "pairwise"),
    ],
)
def test_what_is_no_panel_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        loaded({**PAIRS, **change})


def test_records_have_no_questions() -> None:
    with pytest.raises(StudyError, match="questions"):
        loaded({"kind": "records", "dimension": 3, "questions": 4, "theta": [1.0, 0.0, 0.0]})


def test_records_are_not_shuffled_and_the_reason_is_said() -> None:
    content = {
        "study": {"name": "records", "seed": 5, "repetitions": 2},
        "problem": {"kind": "records", "model": "mean", "dimension": 1},
        "records": {"features": "pareto(1.6)", "tail": 0.5, "moment": 16},
        "grid": {"n": [40], "epsilon": [1], "delta": [1e-5]},
        "arm": [{"trust": "shuffled", "estimator": "mean"}],
    }
    with pytest.raises(StudyError, match="records have no questions"):
        build(content, Path())


def test_features_of_every_row_are_refused_with_the_reason() -> None:
    with pytest.raises(StudyError, match="say whose a report"):
        loaded({key: value for key, value in PAIRS.items() if key != "questions"})
    with pytest.raises(StudyError, match="'delta'"):
        loaded(PAIRS, arms=ARMS[:1], delta=False)


@pytest.mark.parametrize("honest", [0, 1.1, "half"])
def test_an_honest_share_is_above_0_and_at_most_1(honest: Any) -> None:
    with pytest.raises(StudyError, match="honest"):
        loaded(PAIRS, arms=[{**ARMS[0], "honest": honest}])


def test_shuffled_arms_do_not_look_like_local_ones() -> None:
    arms = loaded(PAIRS).study.arms
    found = looks(arms)
    local, shuffled = (found[arm.name] for arm in sorted(arms[:2], key=lambda arm: arm.trust or 0))
    assert local.label == shuffled.label
    assert local.colour != shuffled.colour


def test_the_panel_study_is_sound() -> None:
    study = load(ROOT / "studies/toml/panel.toml").study
    for n in study.grid.n:
        for offer in offers(study, Cell(n, 0, 1)):
            if offer.task is not None and offer.task.trust is Trust.SHUFFLED:
                assert smallest_group(offer.task) == n // 20


def test_a_panel_runs_resumes_and_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["run", str(ROOT / "studies/toml/panel.toml"), "--out", str(out), "--jobs", "1"]
    words += ["--set", "study.repetitions=2", "--set", "grid.n=[1000]", "--set", "grid.epsilon=[1]"]
    assert main(words) == 0
    assert "shuffled" in capsys.readouterr().out
    assert main([*words, "--resume"]) == 0
    import json

    kept = restore(json.loads((out / "study.json").read_text())["study"], out)
    assert questions(kept.study.problem, 1000).tolist() == list(np.arange(1000) % 20)
