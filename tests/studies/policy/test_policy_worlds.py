"""Worlds: features of one length, pairs as the behaviour policy says, and files that say what is wrong."""

import re
from pathlib import Path

import numpy as np
import pytest

from protocol.strict import StudyError
from server.policies import GREEDY, PESSIMISTIC
from studies.policy.score import SCHEMA
from studies.policy.study_file import BANDIT_KEYS, POLICY_KEYS, REFERENCES, SHOWN, load_policy_study
from studies.policy.worlds import World, pair_chances, world, world_seed, worlds

TOML = Path(__file__).parents[3] / "studies" / "toml"
SHIPPED = sorted(path for path in TOML.glob("*.toml") if "[bandit]" in path.read_text("utf-8"))


def shown_pairs(here: World) -> np.ndarray:
    """For each row the state and the two actions it compares, found by its difference of features."""
    design, features = here.loaded.study.problem.design, here.bandit.features
    assert design is not None
    states, actions = here.bandit.shape
    known = {
        np.round(features[s, b] - features[s, a], 9).tobytes(): (s, a, b)
        for s in range(states)
        for a in range(actions)
        for b in range(actions)
        if a != b
    }
    assert len(known) == states * actions * (actions - 1)
    return np.array([known[np.round(row, 9).tobytes()] for row in design])


def test_features_have_the_length_that_the_bound_takes(policy_path: Path) -> None:
    for here in worlds(load_policy_study(policy_path)):
        np.testing.assert_allclose(np.linalg.norm(here.bandit.features, axis=2), 2.0, rtol=1e-12)
        rewards = here.bandit.features @ here.loaded.theta
        np.testing.assert_array_equal(here.best, rewards.argmax(axis=1))


def test_the_choice_of_pairs_changes_the_pairs_and_nothing_else(policy_path: Path) -> None:
    every = list(worlds(load_policy_study(policy_path)))
    assert [here.name for here in every[::2]] == ["uniform-000", "rarely-best-000", "mostly-best-000"]
    first, second = every[0], every[2]
    np.testing.assert_array_equal(first.bandit.features, second.bandit.features)
    assert first.loaded.study.seed == second.loaded.study.seed != every[1].loaded.study.seed
    assert first.loaded.study.fingerprint != second.loaded.study.fingerprint
    assert len({world_seed(seed, number) for seed in range(3) for number in range(3)}) == 9


@pytest.mark.parametrize("shown", ["uniform", "rarely-best", "mostly-best"])
def test_pairs_come_as_often_as_their_chances(policy_path: Path, shown: str) -> None:
    """Counts of 9 (state, pair) cells and of sides, 20,000 rows: 6 standard errors each, false alarm below 6e-8."""
    study = load_policy_study(policy_path, ["grid.n=[20000]"])
    here = world(study, shown, 0)
    seen = shown_pairs(here)
    order = np.argsort(-(here.bandit.features @ here.loaded.theta), axis=1)
    pairs, chances = pair_chances(study.law, shown, order)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    for state in range(3):
        for pair, chance in zip(pairs, chances[state], strict=True):
            count = ((seen[:, 0] == state) & (np.sort(seen[:, 1:], axis=1) == pair).all(axis=1)).sum()
            share = chance / 3
            assert abs(count / 20_000 - share) < 6 * np.sqrt(share * (1 - share) / 20_000)
    assert abs((seen[:, 1] < seen[:, 2]).mean() - 0.5) < 6 * 0.5 / np.sqrt(20_000)
    best_shown = (seen[:, 1:] == here.best[seen[:, 0]][:, None]).any(axis=1).mean()
    assert abs(best_shown - {"uniform": 2 / 3, "rarely-best": 0.2 / 3, "mostly-best": 0.9 + 0.2 / 3}[shown]) < 0.02


def test_the_reference_is_what_is_shown(policy_path: Path) -> None:
    study = load_policy_study(policy_path, ["grid.n=[50000]"])
    here = world(study, "mostly-best", 0)
    seen = shown_pairs(here)
    for state in range(3):
        own = seen[seen[:, 0] == state][:, 1:].ravel()
        mean = here.bandit.features[state, own].mean(axis=0)
        np.testing.assert_allclose(here.bandit.reference[state], mean, atol=0.06)  # 6 x 2 / sqrt(33,000)
    assert not world(load_policy_study(policy_path, ["policy.reference=zero"]), "uniform", 0).bandit.reference.any()


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_policy_study_is_read(path: Path) -> None:
    study = load_policy_study(path)
    here = world(study, study.law.shown[0], 0)
    assert here.bandit.all_means.shape == (study.law.actions**study.law.states, study.law.dimension)
    assert study.most_rows == max(here.loaded.study.grid.n)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("worlds = 2", "world = 2", ["[bandit]", "did you mean 'worlds'"]),
        ("worlds = 2", "worlds = 0", ["[bandit] worlds", "integer in 1.."]),
        ("actions = 3", "actions = 2", ["[bandit] actions", "at least 3"]),
        ("rare = 0.1", "", ["[bandit]", "'rare'"]),
        ("rare = 0.1", "rare = 1.0", ["[bandit] rare", "between 0 and 1"]),
        ("length = 2.0", "length = 0", ["[bandit] length", "> 0"]),
        ("bound = 2.0", 'bound = "2"', ["[bandit] bound", "number"]),
        ("bound = 2.0", "bound = 1.0", ["norm of at most bound"]),
        ("theta = [1.0, ", "theta = [", ["theta", "expected 4 numbers"]),
        ('"mostly-best"]', '"mostly-bets"]', ["[bandit] shown", "did you mean 'mostly-best'"]),
        ('["greedy", ', '["gredy", ', ["[policy] names", "did you mean 'greedy'"]),
        ("[policy]", "[policy]\nlevel = 95", ["[policy] level", "between 0 and 1"]),
        ("n = [60, 400]", "n = [0]", ["[grid] n", "integer in 1.."]),
        ("epsilon = [1.0]", "epsilon = [-1.0]", ["[grid] epsilon"]),
        ('estimator = "rr-map"', 'estimator = "rr-mpa"', ["[arm 4] estimator", "did you mean 'rr-map'"]),
        ("[bandit]", "[bandti]", ["did you mean 'bandit'"]),
    ],
)
def test_a_wrong_file_names_the_place(tmp_path: Path, policy_text: str, old: str, new: str, parts: list[str]) -> None:
    assert old in policy_text
    path = tmp_path / "study.toml"
    path.write_text(policy_text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        list(worlds(load_policy_study(path)))
    for part in parts:
        assert part in str(caught.value)


def test_the_page_explains_every_key_policy_and_column() -> None:
    page = (TOML.parents[1] / "docs" / "POLICIES.md").read_text("utf-8")
    quoted = {text.strip('"') for text in re.findall(r"`([^`\n]+)`", page)}
    needed = {*BANDIT_KEYS, *POLICY_KEYS, *SHOWN, *REFERENCES, *GREEDY, *PESSIMISTIC, *SCHEMA.names}
    assert needed - {"greedy"} <= quoted
    assert "**Greedy** (`server.policies.choice:greedy`)" in page
