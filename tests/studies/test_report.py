"""Reports: files with fixed bytes, tables that mark what is good and what is useless, labels that do not overlap."""

import csv
import io
import re
import shutil
from decimal import Decimal
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from protocol.arms import Arm
from protocol.record_arms import RECORD_ESTIMATORS, record_mechanisms
from protocol.trust import Trust
from studies.cli import main
from studies.folder import Folder
from studies.load import load
from studies.load import tables as tables_of
from studies.report import tables
from studies.report.arms import looks
from studies.report.bounds import lower_bounds
from studies.report.canvas import SOLID, label_ends, prepare, save, settings
from studies.report.figures import by_count, draw_all, overview
from studies.report.view import View
from studies.results import METRICS
from studies.run import run

TOML = Path(__file__).parents[2] / "studies" / "toml"
_RUN = {"study", "problem", "population", "records", "grid", "arm"}
RUNS = [path for path in sorted(TOML.glob("*.toml")) if tables_of(path).keys() <= _RUN]


@pytest.fixture(scope="module")
def view(finished: Path) -> View:
    return View.open(Folder(finished))


def shown(table: Table, width: int = 120) -> str:
    console = Console(width=width, force_terminal=True, color_system="standard", file=io.StringIO())
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_arms_that_differ_by_an_option_say_so(tmp_path: Path) -> None:
    loaded = load(TOML / "ridge.toml", ["study.repetitions=2", "grid.n=[60]", "grid.epsilon=[1]"])
    run(loaded, tmp_path / "out", jobs=1)
    view = View.open(Folder(tmp_path / "out"))
    for table in (tables.by_epsilon(view), tables.details(view, view.levels[0])):
        said = shown(table)
        for name in ("de-biased [ridge=tempered]", "de-biased [defaults]", "RR-MAP [tau=marginal]"):
            assert name in said


def test_a_study_of_policies_or_attacks_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policies" / "worlds").mkdir(parents=True)
    assert main(["report", str(tmp_path / "policies")]) == 2
    assert "name a world's folder in" in capsys.readouterr().err
    (tmp_path / "attacks.parquet").touch()
    assert main(["report", str(tmp_path)]) == 2
    assert "got a study of attacks" in capsys.readouterr().err


def test_the_report_command_makes_every_file(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    assert main(["report", str(out)]) == 0
    said = capsys.readouterr().out
    for fact in (
        "per label; neighbours: replace one label",
        "protect nobody",
        "Numerics fingerprint: ",
        "the ball",
        "fitted at n = 1,000.",
    ):
        assert fact in said
    for stem in ("error_by_n", "error_by_n_epsilon_0.5", "error_by_n_epsilon_2", "error_by_epsilon"):
        assert (out / "figures" / f"{stem}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert b"<svg" in (out / "figures" / f"{stem}.svg").read_bytes()[:600]
        assert f"{stem}.png" in said
    assert len(list((out / "figures").iterdir())) == 8
    with (out / "summary.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(METRICS["pairwise"]) * 2 * (2 * 8 + 3)
    assert {row["repetitions"] for row in rows} == {"20"}
    with (out / "paired.csv").open(encoding="utf-8") as file:
        pairs = list(csv.DictReader(file))
    assert len(pairs) == len(METRICS["pairwise"]) * 2 * (2 * (8 * 3 + 8 * 7 // 2) + 3)


def test_figures_have_the_same_bytes_every_time(view: View, tmp_path: Path) -> None:
    for name in ("a", "b"):
        with mpl.rc_context(settings()):
            save(overview(view), tmp_path / name)
    for kind in ("png", "svg"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert str(tmp_path).encode() not in (tmp_path / "a.svg").read_bytes()


def test_the_best_of_its_kind_is_bold_and_the_useless_is_dim(view: View) -> None:
    level = view.levels[0]
    text = shown(tables.by_count(view, level))
    for trust, arms in view.sections():
        for n in view.counts:
            means = {arm.name: found.moments.mean for arm in arms if (found := view.at(arm, n, level)) is not None}
            best = min(means, key=lambda name: means[name])
            for name, mean in means.items():
                cell = re.escape(f"{mean:.3f}" if mean >= 0.1 else f"{mean:.4f}")
                if mean >= view.zero():
                    assert re.search(rf"\x1b\[2m{cell}", text)
                elif name == best and trust is not None:
                    assert re.search(rf"\x1b\[1m{cell}", text)
    assert "ε = 0.5" in text
    assert "n = 1,000" in text


def test_tables_fit_a_terminal(view: View) -> None:
    for table in (tables.by_count(view, view.levels[1]), tables.details(view, view.levels[1]), tables.by_epsilon(view)):
        lines = re.sub(r"\x1b\[[0-9;]*m", "", shown(table, 88)).splitlines()
        assert max(map(len, lines)) <= 88
        assert not any(line.rstrip().endswith("…") for line in lines)


def test_arms_are_told_apart() -> None:
    first = Arm(Trust.LOCAL, "randomized-response", "rr-map", (("tau", Decimal("0.5")),))
    second = Arm(Trust.LOCAL, "randomized-response", "rr-map", (("tau", Decimal(2)),))
    plain = Arm(Trust.LOCAL, "randomized-response", "rr-map")
    new = Arm(Trust.LOCAL, "k-randomized-response", "some-new-one")
    found = looks([first, second, plain, new])
    assert len({look.label for look in found.values()}) == 4
    assert len({look.colour for look in list(found.values())[:3]}) == 3


def test_records_are_no_labels(tmp_path: Path, view: View) -> None:
    """Titles, headings and axes say what is estimated from what; rates of heavy tails touch the lowest mean."""
    small = ["study.repetitions=4", "grid.n=[100, 400]", "grid.epsilon=[1.0]"]
    run(load(TOML / "heavy-mean.toml", small), tmp_path / "out", jobs=1)
    records = View.open(Folder(tmp_path / "out"))
    said = shown(tables.by_epsilon(records)) + records.describe()
    assert "L2 error of the mean, n = 400" in said and "records of the law pareto(1.6)" in said
    assert "local: holders add noise first" in said and "label" not in said
    figure = overview(records)
    assert {bound.name for bound in lower_bounds(records)} == {"rate of the worst law"}
    assert figure.get_suptitle() == "L2 error of the mean (true error, not divided by √n)"
    assert {axes.get_xlabel() for axes in figure.axes} == {"records n", ""}
    for bound in lower_bounds(records):
        means = [
            found.moments.mean
            for arm in records.arms
            if arm.trust is bound.trust and (found := records.at(arm, 400, records.levels[0])) is not None
        ]
        assert bound.at(400, records.levels[0]) == pytest.approx(min(means), rel=1e-12)
        rate = {Trust.CENTRAL: 1 / 3, Trust.LOCAL: 1 / 6}[bound.trust]
        assert bound.at(100, records.levels[0]) == pytest.approx(min(means) * 4**rate, rel=1e-12)
    for wording in (view.wording, records.wording):
        assert set(wording.headings) == {*Trust, None}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_arm_of_a_study_that_comes_along_has_a_name(path: Path) -> None:
    """None is called by its mechanism and estimator, as an arm that nobody has thought of."""
    arms = load(path).study.arms
    named = looks(arms)
    assert not [arm.name for arm in arms if named[arm.name].label.startswith(f"{arm.mechanism}, {arm.estimator}")]


def test_every_arm_about_records_has_a_name_and_a_look_of_its_trust_model() -> None:
    """All that can be said at once, and the same with two options: no two look the same."""
    arms = [
        Arm(trust, mechanism, estimator, options)
        for trust, estimator in RECORD_ESTIMATORS
        if trust is not None
        for mechanism in record_mechanisms(trust, estimator)[:4]
        for options in ((), (("rounds", Decimal(3)),))
    ]
    found = looks(arms)
    assert len({(arm.trust, found[arm.name].label) for arm in arms}) == len(arms)
    for trust, hues in ((Trust.CLEAR, 2), (Trust.CENTRAL, 3), (Trust.LOCAL, 3)):
        own = [found[arm.name] for arm in arms if arm.trust is trust and found[arm.name].colour != "#000000"]
        assert len({look.colour for look in own}) <= hues
    assert not {found[arm.name].colour for arm in arms if arm.trust is Trust.LOCAL} & {
        found[arm.name].colour for arm in arms if arm.trust is Trust.CENTRAL
    }
    few = [arm for arm in arms if arm.mechanism in ("none", "gaussian", "gaussian-classical", "piecewise", "duchi")]
    drawn = [look for look in looks(few).values() if not look.label.startswith("median of means")]
    assert len({(look.colour, look.marker, look.hollow) for look in drawn}) == len(drawn)


def test_every_known_arm_has_its_own_look(view: View) -> None:
    found = list(view.looks.values())
    assert len({look.label for look in found}) == len(found)
    assert len({(look.colour, look.marker, look.hollow) for look in found}) == len(found)


def test_one_place_on_an_axis_is_in_its_middle() -> None:
    """Where every x is the same, a curve's places differ by roundings alone: they are no limits."""
    axes = Figure().subplots()
    prepare(axes, [10000.0, 10000.0])
    axes.plot(np.geomspace(10000, 10000, 25), np.ones(25))
    assert axes.get_xlim() == (5000, 20000)


@pytest.mark.parametrize("heights", [[1.0] * 11, [0.011, 0.0111, 0.5, 0.5001], [0.02]])
def test_names_at_line_ends_keep_their_distance(view: View, heights: list[float]) -> None:
    axes = Figure().subplots()
    prepare(axes, [1.0, 10.0])
    axes.set_ylim(0.01, 2.0)
    look = view.looks[view.arms[0].name]
    label_ends(axes, [(height, look, SOLID) for height in heights], gap=0.05)
    places = np.sort([text.get_position()[1] for text in axes.texts])
    assert len(places) == len(heights)
    assert (np.diff(places) >= 0.05 - 1e-9).all()
    wanted = np.sort([(np.log(height) - np.log(0.01)) / np.log(200) for height in heights])
    assert places.mean() == pytest.approx(wanted.mean())


def test_every_arm_with_a_formula_has_its_curve(view: View) -> None:
    named = [line.get_gid() or "" for line in overview(view).axes[0].lines]
    curves = [name for name in named if name.startswith("theory")]
    assert curves == [f"theory {arm.name}" for arm in view.arms if view.predicted(arm, 150, view.levels[0])]
    assert len(curves) == 6


def test_lower_bounds_touch_what_was_measured_at_the_largest_n_and_say_so(view: View) -> None:
    found = {bound.trust: bound for bound in lower_bounds(view)}
    assert set(found) == {Trust.LOCAL, Trust.CENTRAL}
    for trust, bound in found.items():
        assert bound.look.label == f"{trust.label} lower bound, fitted at n = 1,000"
        gaps = [
            summary.moments.mean / least
            for level in view.levels
            for arm in view.arms
            if arm.trust is trust
            and (summary := view.at(arm, 1000, level)) is not None
            and (least := bound.at(1000, level)) is not None
        ]
        assert min(gaps) == pytest.approx(1, rel=1e-12)
        # Far below n = 1,000 the proof's parameters do not fit in the ball, and nothing is drawn.
        assert bound.at(1, view.levels[0]) is None
    panel, single = overview(view).axes[1], by_count(view, view.levels[1]).axes[0]
    for axes in (panel, single):
        dotted = [line for line in axes.lines if (line.get_gid() or "").startswith("lower bound")]
        assert [line.get_gid() for line in dotted] == ["lower bound local", "lower bound central"]
        assert all(line.get_linestyle() != SOLID for line in dotted)
    assert {bound.look.label for bound in found.values()} <= {text.get_text() for text in single.texts}


def test_a_study_without_claims_and_one_with_two_deltas(study_text: str, tmp_path: Path) -> None:
    clear, central = study_text.split("[[arm]]")[1], study_text.split("[[arm]]")[9]
    head = study_text.split("[[arm]]")[0].replace("repetitions = 20", "repetitions = 2").replace("150, 1000", "150")
    bare = "\n".join(line for line in head.splitlines() if not line.startswith(("epsilon", "delta")))
    names = {}
    for name, text in (
        ("clear", f"{bare}\n[[arm]]{clear}"),
        ("deltas", f"{head.replace('1e-5', '1e-5, 1e-6').replace('0.5, 2.0', '2.0')}\n[[arm]]{central}"),
    ):
        (tmp_path / f"{name}.toml").write_text(text)
        run(load(tmp_path / f"{name}.toml"), tmp_path / name, jobs=1)
        found = View.open(Folder(tmp_path / name))
        for level in found.levels:
            assert "±" in shown(tables.by_count(found, level))
        names[name] = {path.stem for path in draw_all(found, tmp_path / name / "figures")}
    assert names["clear"] == {"error_by_n", "error_by_n_no_claim"}
    assert names["deltas"] == {"error_by_n", "error_by_n_epsilon_2_delta_1e-5", "error_by_n_epsilon_2_delta_1e-6"}
