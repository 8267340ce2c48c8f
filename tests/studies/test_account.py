"""`halftruth account`: what is counted are the tasks that arms ask; figures are those of the exact formulas."""

import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from server.mechanisms.composition import exact_noise_multiplier
from studies.account.asked import Claim, claims
from studies.account.figures import figures, joint_multiplier
from studies.account.releases import Release
from studies.cli import main
from studies.load import load

ROOT = Path(__file__).resolve().parents[2]
HEAD = """
study = { name = "accounted", seed = 1, repetitions = 5 }
problem = { kind = "records", model = "linear", dimension = 3, theta = [0.5, 0.0, -0.5], bound = 2 }
records = { features = "uniform(0, 1)", noise = "centred pareto(1.6)", tail = 0.5, moment = 18 }
grid = { n = [200, 300], epsilon = [1.0], delta = [1e-5] }
"""
DELTA = Decimal("1e-5")


def accounted(tmp_path: Path, *arms: str, head: str = HEAD) -> list[Claim]:
    path = tmp_path / "study.toml"
    path.write_text(f"{head}arm = [{', '.join(f'{{ {arm} }}' for arm in arms)}]\n", encoding="utf-8")
    loaded = load(path)
    return list(claims(loaded.study, loaded.theta))


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The exact profile of Gaussian noise, written out."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def test_rounds_about_all_rows_are_one_exact_claim_and_other_counts_say_more(tmp_path: Path) -> None:
    (claim,) = accounted(tmp_path, "trust = 'central', estimator = 'descent', rounds = 10, step = 0.1")
    assert (len(claim.releases), claim.asked) == (10, 10)
    (multiplier,) = {one.multiplier for one in claim.releases}
    assert multiplier == pytest.approx(exact_noise_multiplier(Decimal(1), DELTA, 10), rel=1e-12)
    found = claim.figures
    assert found.exact == pytest.approx(1, abs=1e-9)
    assert gaussian_delta(found.exact, math.sqrt(10) / multiplier) == pytest.approx(1e-5, rel=1e-8)
    assert (found.zcdp, found.zcdp_simple, found.basic, found.advanced, found.printed) == pytest.approx(
        (1.0925, 1.3223, 3.326, 6.836, 14.38), rel=5e-4
    )
    assert str(claim.guarantee) == "(epsilon = 1, delta = 0.00001) per record; neighbours: replace one record"


def test_a_row_of_a_batch_or_a_group_is_part_of_its_own_releases_only(tmp_path: Path) -> None:
    disjoint, printed = accounted(
        tmp_path,
        "trust = 'central', estimator = 'descent', rounds = 10, step = 0.1, batches = 'disjoint'",
        "trust = 'central', estimator = 'algorithm-2-convex', rounds = 10, step = 0.1",
    )
    assert (len(disjoint.releases), disjoint.asked) == (1, 10)
    assert disjoint.figures.exact == pytest.approx(1, abs=1e-9)
    assert len(printed.releases) == 10 and printed.asked % 10 == 0 and printed.asked > 100
    assert printed.figures.exact == pytest.approx(0.0543, rel=1e-3)
    assert printed.figures.printed == pytest.approx(1, rel=1e-9)


def test_local_rounds_add_up_to_the_claim(tmp_path: Path) -> None:
    everyone, once = accounted(
        tmp_path,
        "trust = 'local', mechanism = 'piecewise', estimator = 'descent', rounds = 20, step = 0.1, batches = 'all'",
        "trust = 'local', mechanism = 'piecewise', estimator = 'descent', rounds = 20, step = 0.1",
    )
    assert (len(everyone.releases), len(once.releases), once.asked) == (20, 1, 20)
    assert 0.999 < everyone.figures.basic <= 1 + 1e-12 and 0.999 < once.figures.basic <= 1
    assert everyone.figures.exact < 0.83 < everyone.figures.zcdp < everyone.figures.zcdp_simple
    assert everyone.figures.printed is None and not everyone.guarantee.delta and everyone.delta == DELTA


def test_gaussian_reports_are_counted_by_their_noise(tmp_path: Path) -> None:
    (claim,) = accounted(tmp_path, "trust = 'local', mechanism = 'gaussian', estimator = 'descent', step = 0.1")
    assert claim.figures.exact == pytest.approx(1, abs=1e-6) and claim.guarantee.delta == DELTA


def test_parts_of_a_claim_add_up_to_it(tmp_path: Path) -> None:
    (claim,) = accounted(
        tmp_path, "trust = 'central', estimator = 'descent', rounds = 10, step = 0.1, threshold = 'private'"
    )
    assert [one.multiplier is None for one in claim.releases].count(True) == 1
    assert claim.figures.basic == pytest.approx(1, abs=1e-9) and claim.figures.exact is None
    assert claim.guarantee.epsilon == 1


def test_selections_are_counted_by_what_they_cost(tmp_path: Path) -> None:
    more = "sparsity = 2, rounds = 5, step = 0.1"
    one_shot, printed, pure = accounted(
        tmp_path,
        *(
            f"trust = 'central', mechanism = '{mechanism}', estimator = '{estimator}', {more}"
            for mechanism, estimator in (
                ("gumbel-gaussian", "hard-thresholding"),
                ("peeling-paper", "algorithm-5"),
                ("permute-and-flip", "hard-thresholding"),
            )
        ),
    )
    assert one_shot.figures.zcdp == pytest.approx(1, rel=1e-6) and one_shot.figures.basic is None
    assert (len(printed.releases), printed.asked) == (1, 5) and printed.figures.basic < 0.25
    assert pure.figures.basic == pytest.approx(1, abs=1e-9) and not pure.guarantee.delta


def test_holders_of_many_records_are_the_unit(tmp_path: Path) -> None:
    head = HEAD.replace("tail = 0.5", "per_holder = 4, tail = 0.5")
    (claim,) = accounted(tmp_path, "trust = 'central', estimator = 'descent', rounds = 2, step = 0.1", head=head)
    assert claim.guarantee.neighbours == "replace all records of one holder"


PREFERENCES = """
study = { name = "labels", seed = 1, repetitions = 2 }
problem = { kind = "pairwise", dimension = 2, features = "sphere", theta = [0.5, -0.5], bound = 1 }
grid = { n = [100], epsilon = [0.5, 1.0], delta = [1e-6, 1e-5] }
"""


def test_studies_of_preferences_release_once(tmp_path: Path) -> None:
    found = accounted(
        tmp_path,
        "trust = 'none', estimator = 'zero'",
        "trust = 'clear', estimator = 'mle'",
        "trust = 'local', estimator = 'rr-mle'",
        "trust = 'central', mechanism = 'gaussian-statistic', estimator = 'mle'",
        "trust = 'central', mechanism = 'gaussian-statistic', estimator = 'trimmed-mean', groups = 5",
        "trust = 'central', mechanism = 'objective-perturbation-standard', estimator = 'released'",
        head=PREFERENCES,
    )
    assert len(found) == 16 and {len(claim.releases) for claim in found} == {1}
    local, central, grouped, whole = (found[at : at + 4] for at in range(0, 16, 4))
    for claim in local:  # told at both deltas
        assert claim.figures.basic == pytest.approx(float(claim.guarantee.epsilon), abs=1e-9)
        assert claim.figures.exact <= claim.figures.basic
    for claim in (*central, *grouped):
        assert claim.figures.exact == pytest.approx(float(claim.guarantee.epsilon), abs=1e-9)
        assert claim.asked == (1 if claim in central else 5)
    assert {claim.guarantee.unit.label for claim in whole} == {"record"}
    assert all(claim.figures.exact is None and claim.figures.basic >= claim.guarantee.epsilon for claim in whole)


def test_mixed_noise_adds_rho() -> None:
    """Two multipliers: their exact level together is that of 1 / m^2 added, of which basic counting tells."""
    found = figures([Release(1.0, DELTA, multiplier=3.0), Release(1.0, DELTA, multiplier=4.0)], DELTA)
    mu = math.sqrt(1 / 9 + 1 / 16)
    assert gaussian_delta(found.basic, mu) == pytest.approx(1e-5, rel=1e-6) and found.basic < found.zcdp


def test_without_a_delta_levels_add() -> None:
    assert figures([Release(0.5, pure=0.5)] * 3, None).basic == pytest.approx(1.5, rel=1e-12)
    assert figures([Release(0.5, pure=0.5)] * 3, None).zcdp is None


def test_the_command_prints_tables_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    study = str(ROOT / "studies/toml/heavy-mean.toml")
    assert main(["account", study, "--set", "grid.epsilon=[1.0]"]) == 0
    told = capsys.readouterr().out
    assert "central/gaussian/mean: per record; neighbours: replace one record" in told
    assert "clear/none/mean: no claim" in told and "0, told at 1e-5" in told
    assert main(["account", study, "--json"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    (printed,) = (arm for arm in content["arms"] if arm["estimator"] == "algorithm-1")
    assert [level["epsilon"] for level in printed["levels"]] == ["0.5", "1", "4"]
    assert printed["levels"][1]["figures"]["exact"] == pytest.approx(0.7509, rel=1e-3)
    assert printed["levels"][1]["guarantee"].endswith("per record; neighbours: replace one record")


def test_levels_above_1000_are_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "study.toml"
    path.write_text(HEAD.replace("[1.0]", "[300.0]") + "arm = [{ trust = 'local', estimator = 'descent', step = 1 }]")
    assert main(["account", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arms"][0]["levels"][0]["figures"]["advanced"] == ">1000"


def test_a_study_for_another_command_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", str(ROOT / "studies/toml/attacks.toml")]) == 2
    assert "halftruth attack" in capsys.readouterr().err


@given(st.lists(st.floats(0.1, 50.0), min_size=1, max_size=6))
@example([1.75, 36.61])
def test_a_joint_multiplier_is_never_more_than_that_of_all_its_releases(multipliers: list[float]) -> None:
    joint, exact = joint_multiplier(multipliers), sum(1 / Fraction(each) ** 2 for each in multipliers)
    assert 1 / Fraction(joint) ** 2 >= exact
    assert math.isclose(joint, float(exact) ** -0.5, rel_tol=1e-14)


def test_noise_in_shares_has_its_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["account", str(ROOT / "studies/toml/distributed.toml"), "--set", "grid.epsilon=[1.0]"]) == 0
    told = capsys.readouterr().out
    assert "skellam" in told and "binomial" in told


def test_rounds_under_masks_are_counted_as_a_curator_s(tmp_path: Path) -> None:
    """Each in a session of its own: tasks are what sessions begin with, and noise is held to the Gaussian curve."""
    arms = ("rounds = 3", "rounds = 3, batches = 'disjoint'")
    words = [f"estimator = 'descent', step = 0.1, {more}" for more in arms]
    masked = accounted(tmp_path, *(f"trust = 'distributed', {each}" for each in words))
    curated = accounted(
        tmp_path, *(f"trust = 'central', batches = 'all', {words[0]}", f"trust = 'central', {words[1]}")
    )
    assert [(len(claim.releases), claim.asked) for claim in masked] == [(3, 3), (1, 3)]
    assert [claim.figures for claim in masked] == [claim.figures for claim in curated]
    assert all(claim.figures.exact == pytest.approx(1, abs=1e-9) for claim in masked)
