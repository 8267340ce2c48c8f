"""Reading studies: every mistake names its place; nothing is guessed."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from protocol.strict import StudyError
from protocol.study import Study
from studies.cli import main
from studies.load import changes, load, restore

TOML = Path(__file__).parents[2] / "studies" / "toml"


def refuse(tmp_path: Path, text: str, *parts: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        load(path)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("seed = 11", "sed = 11", ["[study]", "'sed'", "did you mean 'seed'"]),
        ("[grid]", "[gird]", ["'gird'", "did you mean 'grid'"]),
        ("sum_zero = true", "sumzero = true", ["[problem]", "did you mean 'sum_zero'"]),
        ("tau = 0.5", "tua = 0.5", ["[arm 6]", "did you mean 'tau'"]),
        ("seed = 11", 'seed = "11"', ["[study] seed", "integer"]),
        ("seed = 11", "seed = -1", ["[study] seed", "integer in 0.."]),
        ("repetitions = 20", "repetitions = true", ["[study] repetitions", "integer"]),
        ("repetitions = 20", "repetitions = 0", ["[study] repetitions", "integer in 1.."]),
        ("n = [150, 1000]", "n = []", ["[grid] n", "non-empty"]),
        ("n = [150, 1000]", "n = [150, 150]", ["[grid] n", "different"]),
        ("n = [150, 1000]", "n = [150.0]", ["[grid] n", "integer"]),
        ("epsilon = [0.5, 2.0]", "epsilon = [0.0]", ["[grid] epsilon > 0, got 0.0"]),
        ("epsilon = [0.5, 2.0]", "epsilon = [-1]", ["[grid] epsilon > 0, got -1"]),
        ("epsilon = [0.5, 2.0]", "epsilon = [1e-10]", ["[grid] epsilon", "1E-9"]),
        ("epsilon = [0.5, 2.0]", "epsilon = [inf]", ["[grid] epsilon", "finite"]),
        ("epsilon = [0.5, 2.0]", 'epsilon = ["1"]', ["[grid] epsilon", "number"]),
        ("delta = [1e-5]", "delta = [1.0]", ["[grid] delta", "< 1"]),
        ("delta = [1e-5]", "", ["[grid]", "delta"]),
        (
            'features = "gaussian"',
            'features = "gausian"',
            ["[problem] features", "'gausian'; did you mean 'gaussian'?"],
        ),
        ('features = "gaussian"', 'features = "x.npy"', ["[problem] features", "x.npy", "found none"]),
        ("0.75, 0.25, -0.25, -0.75", "0.75, -0.75", ["[problem] theta", "4 numbers", "dimension"]),
        ("0.75, 0.25, -0.25, -0.75", "0.75, 0.25, -0.25, -0.5", ["[problem] theta", "sum of 0", "0.25"]),
        ("0.75, 0.25, -0.25, -0.75", "3, 0, 0, -3", ["[problem] theta", "at most bound", "4.24"]),
        ("0.75, 0.25, -0.25, -0.75", "nan, 0, 0, 0", ["[problem] theta", "finite"]),
        ("0.75, 0.25, -0.25, -0.75", '"a", 0, 0, 0', ["[problem] theta", "numbers"]),
        ("theta = [0.75, 0.25, -0.25, -0.75]", "", ["[problem] theta", "nothing"]),
        ('step = "oracle"', 'step = "orakel"', ["[arm 2] step", "did you mean 'oracle'"]),
        ("radius = { gaussian = 2.5, sphere = 1.2 }", "radius = { sphere = 1.2 }", ["[arm 10.radius]", "'gaussian'"]),
        ("radius = { gaussian = 2.5, sphere = 1.2 }", "radius = -1", ["[arm 10] radius", "> 0"]),
        (
            'estimator = "rr-mle"',
            'estimator = "rr-map"\ntau = 0.50',
            ["arm: expected different", "rr-map", "twice"],
        ),
        ("[study]", "[study", ["TOML"]),
    ],
)
def test_mistakes_name_their_place(tmp_path: Path, study_text: str, old: str, new: str, parts: list[str]) -> None:
    assert old in study_text
    refuse(tmp_path, study_text.replace(old, new, 1), *parts)


def test_a_missing_file_and_a_missing_problem(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"nowhere\.toml: expected a study file, found none"):
        load(tmp_path / "nowhere.toml")
    with pytest.raises(StudyError, match=r"expected a study file, got a folder"):
        load(tmp_path)
    refuse(tmp_path, "[study]\nname = 'x'\n", "[problem]")


def test_theta_is_not_in_the_public_study(study_path: Path) -> None:
    loaded = load(study_path)
    assert isinstance(loaded.study, Study)
    assert "theta" not in repr(loaded.study)
    assert "0.75" not in repr(loaded.study)
    assert loaded.theta.tolist() == [0.75, 0.25, -0.25, -0.75]


def test_overrides_change_one_key(study_path: Path) -> None:
    plain = load(study_path)
    changed = load(study_path, ["problem.features=sphere", "arm.3.step = 0.25", "grid.n=[100]", "study.name=other"])
    assert changed.study.problem.features == "sphere"
    assert changed.study.arms[2].get("step") == Decimal("0.25")
    assert changed.study.arms[9].get("radius") == Decimal("1.2")
    assert changed.study.grid.n == (100,)
    lines = changes(plain.resolved, changed.resolved)
    assert 'study.name: "small" -> "other"' in lines
    assert "grid.n: [150, 1000] -> [100]" in lines
    assert 'arms.3.step: null -> "0.25"' in lines


@pytest.mark.parametrize("bad", ["study", "repetitions=1", "nothing.key=1", "arm.0.step=1", "arm.99.step=1", "arm.1=2"])
def test_bad_overrides_are_refused(study_path: Path, bad: str) -> None:
    with pytest.raises(StudyError, match="--set"):
        load(study_path, [bad])


def test_a_resolved_study_restores_itself(study_path: Path, tmp_path: Path) -> None:
    loaded = load(study_path)
    again = restore(loaded.resolved, tmp_path)
    assert again.sha256 == loaded.sha256
    assert again.study.fingerprint == loaded.study.fingerprint
    assert [arm.name for arm in again.study.arms] == [arm.name for arm in loaded.study.arms]


@pytest.mark.parametrize(("name", "arms"), [("figure1", 11), ("quick", 11), ("table-8.2", 13)])
def test_the_studies_of_the_product_load(name: str, arms: int, tmp_path: Path) -> None:
    loaded = load(TOML / f"{name}.toml")
    assert len(loaded.study.arms) == arms
    assert restore(loaded.resolved, tmp_path).sha256 == loaded.sha256


@pytest.mark.parametrize(("features", "expected"), [("gaussian", 0.09964), ("sphere", 0.05993)])
def test_the_oracle_step_is_the_least_curvature(features: str, expected: float) -> None:
    loaded = load(TOML / "table-8.2.toml", [f"problem.features={features}"])
    # Two draws of about 10^5 rows: a relative error of 0.2 % each, five times that allowed.
    assert float(str(loaded.study.arms[1].get("step"))) == pytest.approx(expected, rel=0.01)


def with_features(tmp_path: Path, study_text: str, name: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(study_text.replace('"gaussian"\n', f'"{name}"\n').replace("gaussian = 2.5", "values = 2.5"))
    return path


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv"])
def test_features_of_a_file_travel_by_value(tmp_path: Path, study_text: str, name: str) -> None:
    x = np.random.default_rng(5).normal(size=(1000, 4))
    if name == "x.npy":
        np.save(tmp_path / name, x)
    elif name == "x.npz":
        np.savez(tmp_path / name, x=x)
    else:
        np.savetxt(tmp_path / name, x, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    loaded = load(with_features(tmp_path, study_text, name))
    assert loaded.study.problem.features == "values"
    assert loaded.study.problem.design is not None
    assert (loaded.study.problem.design == x).all()
    assert str(tmp_path) not in repr(loaded.resolved)
    np.save(tmp_path / "features.npy", x)
    assert restore(loaded.resolved, tmp_path).sha256 == loaded.sha256


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2,3,4\n1,2,3\n", "line 2: expected 4 numbers, got 3"),
        ("1,2,3,4\n1,2,x,4\n", "line 2: expected numbers"),
        ("1,2,3,nan\n", "finite"),
        ("a,b,c,d\n", "shape"),
    ],
)
def test_bad_feature_files_name_the_line(tmp_path: Path, study_text: str, content: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(StudyError, match=message):
        load(with_features(tmp_path, study_text, "x.csv"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 5)), r"shape \(n, 4\)"),
        (np.array([["a"] * 4]), "real numbers"),
        (np.array([[object()] * 4]), "array of numbers"),
        (np.full((3, 4), np.inf), "finite"),
    ],
)
def test_bad_arrays_are_refused(tmp_path: Path, study_text: str, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(StudyError, match=message):
        load(with_features(tmp_path, study_text, "x.npy"))


def test_more_labels_than_feature_rows_are_refused(tmp_path: Path, study_text: str) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(5).normal(size=(999, 4)))
    with pytest.raises(StudyError, match="at most the 999 rows"):
        load(with_features(tmp_path, study_text, "x.npy"))


@pytest.mark.parametrize(
    ("command", "file", "other"),
    [
        ("run", "attacks", "attack"),
        ("run", "downstream", "policy"),
        ("policy", "quick", "run"),
        ("attack", "quick", "run"),
        ("attack", "downstream", "policy"),
    ],
)
def test_a_study_for_another_command_is_sent_there(
    command: str, file: str, other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(TOML / f"{file}.toml"), "--out", str(tmp_path / "out")]) == 2
    assert f"expected a study for halftruth {command}, got one for halftruth {other}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["pairwise", "choice"])
@pytest.mark.parametrize(("content", "said"), [(b"", "empty or broken"), (b"a,b\n1,2\n", "another kind")])
def test_features_that_are_no_array_are_told_and_nobody_is_led_to_run_them(
    kind: str, content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    text = (TOML / ("choices.toml" if kind == "choice" else "quick.toml")).read_text(encoding="utf-8")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    words = ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--set", "problem.features=x.npy"]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert said in err and "pickle" not in err
    assert main(["plan", "--pilot", str(tmp_path / "x.npy"), "--error", "1", "--epsilon", "1"]) == 2
    err = capsys.readouterr().err
    assert said in err and "pickle" not in err


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        (['records.noise="pareto(3)"'], ["[records]", "mean 0", "pareto(3)", "uniform(0, 1.7320508075688772)"]),
        (['records.noise="student-t(1)"'], ["[records]", "a law with a mean", "student-t"]),
        (['records.features="student-t(1.5)"'], ["[records]", "finite variance", "student-t(1.5)"]),
    ],
)
def test_records_that_no_estimate_could_be_scored_for_are_refused(changed: list[str], parts: list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        load(TOML / "heavy-descent.toml", changed)
    assert all(part in str(caught.value) for part in parts), caught.value


def test_noise_may_have_a_mean_where_features_have_none() -> None:
    changed = ['records.noise="pareto(3)"', 'records.features="uniform(-1, 1)"']
    assert load(TOML / "heavy-descent.toml", changed).theta.shape == (5,)
