"""What a report's page says, without a browser: labelers needed, the answer, the file that repeats a study."""

import json
import math
import re
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from protocol.trust import Trust
from studies.cli import main
from studies.folder import Folder
from studies.load import load
from studies.load import tables as tables_of
from studies.report.answer import answer
from studies.report.page import report
from studies.report.payload import payload
from studies.report.price import labelers, prices
from studies.report.repeat import study_file
from studies.report.view import Level, View
from studies.run import run
from studies.web.page import embedded

TOML = Path(__file__).parents[2] / "studies" / "toml"
RUNS = [
    path
    for path in sorted(TOML.glob("*.toml"))
    if tables_of(path).keys() <= {"study", "problem", "population", "records", "grid", "arm"}
]


def curves(factor: float, counts: list[int], repetitions: int = 40, noise: float = 0.05) -> np.ndarray:
    """Errors factor/sqrt(n), each a little off."""
    off = noise * np.sin(np.arange(repetitions * len(counts))).reshape(repetitions, len(counts))
    return factor / np.sqrt(counts) * (1 + off)


@pytest.mark.parametrize("factor", [1.0, 1.5, 2.9, 0.5])
def test_errors_with_one_rate_need_the_square_of_their_ratio(factor: float) -> None:
    counts = [100, 300, 1000]
    exact, _, _ = labelers(curves(factor, counts, noise=0), curves(1, counts, noise=0), counts)
    assert exact == pytest.approx(factor**2, rel=1e-9)
    ratio, low, high = labelers(curves(factor, counts), curves(1, counts)[::-1], counts)
    assert low < factor**2 < high and low < ratio < high < 1.2 * low


def test_the_interval_is_that_of_the_delta_method() -> None:
    """On a line of slope -1/2 in log n, log ratio = 2 (log left - log right) with the means' relative errors."""
    counts, size = [100, 1000], 400
    left, right = curves(2, counts, size), curves(1, counts, size)[::-1]
    _, low, high = labelers(left, right, counts)
    relative = [errors[:, -1].std(ddof=1) / errors[:, -1].mean() / math.sqrt(size) for errors in (left, right)]
    assert math.log(high / low) / (2 * 1.966) == pytest.approx(2 * math.hypot(*relative), rel=0.25)
    assert math.isnan(labelers(left[:1], right[:1], counts)[1])


def test_prices_say_a_ratio_a_bound_or_why_not(finished: Path) -> None:
    view = View.open(Folder(finished))
    found = prices(view)
    assert [(one.trust, str(one.level.epsilon)) for one in found] == [
        (trust, epsilon) for epsilon in ("0.5", "2") for trust in (Trust.LOCAL, Trust.CENTRAL)
    ]
    for one in found:
        assert (one.ratio is None) == bool(one.reason)
        assert not one.beyond or one.ratio == pytest.approx(1000 / 150)
        if one.low is not None and one.ratio is not None and one.high is not None:
            assert one.low < one.ratio < one.high
    assert {one.level for one in found} == {Level(Decimal(text), Decimal("0.00001")) for text in ("0.5", "2")}
    assert answer(view).startswith("At ε = ") and "for the same error as with clear labels" in answer(view)


def test_one_n_has_no_curve_and_the_answer_says_so(study_path: Path, tmp_path: Path) -> None:
    run(load(study_path, ["grid.n=[150]", "study.repetitions=2"]), tmp_path, jobs=1)
    said = answer(View.open(Folder(tmp_path)))
    assert said.startswith("How many labelers privacy costs cannot be told: the grid has one n only, 150")


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_the_file_that_repeats_a_study_is_that_study(path: Path, tmp_path: Path) -> None:
    loaded = load(path)
    if loaded.study.problem.design is not None:  # a results folder has them
        np.save(tmp_path / "features.npy", loaded.study.problem.design)
    (tmp_path / "again.toml").write_text(study_file(json.loads(json.dumps(loaded.resolved))), encoding="utf-8")
    assert load(tmp_path / "again.toml").sha256 == loaded.sha256


def test_given_features_are_read_from_the_folders_copy(study_path: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(1200.0).reshape(300, 4) % 7 - 3)
    text = study_path.read_text("utf-8").replace('"gaussian"', '"x.npy"').replace("[150, 1000]", "[150, 300]")
    (tmp_path / "given.toml").write_text(re.sub(r"(radius|step) = .*\n", "", text), encoding="utf-8")
    loaded = load(tmp_path / "given.toml", ["study.repetitions=1"])
    run(loaded, tmp_path / "out", jobs=1)
    (tmp_path / "out" / "again.toml").write_text(study_file(loaded.resolved), encoding="utf-8")
    assert load(tmp_path / "out" / "again.toml").sha256 == loaded.sha256


def test_a_page_is_one_file_that_loads_nothing(finished: Path) -> None:
    text = report([Folder(finished)])
    assert len(text) < 1_000_000
    assert not re.search(r"""(src|href)=["'](?!#|data:,)""", text)
    assert text.count("<script") == text.count("</script>") == 2 and "unsafe-inline" not in text
    assert "http://www.w3.org/2000/svg" in text and text.count("http") == 2  # the name of SVG, and http-equiv
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    view = View.open(Folder(finished))
    assert data["studies"][0] == {**json.loads(json.dumps(payload(view))), "title": "small"}
    means = {
        (view.arms[arm].name, n, level): mean for arm, n, level, mean, *_ in data["studies"][0]["summaries"]["error_l2"]
    }
    assert len(means) == len(view.summaries)
    for arm in view.arms:
        summary = view.at(arm, 1000, view.levels[1])
        level = 1 if summary and summary.setting.epsilon else -1
        assert summary is not None and means[arm.name, 1, level] == pytest.approx(summary.moments.mean, rel=1e-5)


def test_a_page_of_many_arms_leaves_out_differences_of_other_metrics(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.report.payload.MOST_PAIRS", 100)
    assert set(payload(View.open(Folder(finished)))["pairs"]) == {"error_l2"}


def test_json_cannot_leave_its_element() -> None:
    hostile = {"</script><!--": ["<b>&", "\u2028"]}
    text = embedded(hostile)
    assert json.loads(text) == hostile and not set("<>&\u2028") & set(text)


def test_a_folder_behind_html_is_a_run_and_no_file(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for copy in (one, other):
        shutil.copytree(finished, copy, ignore=shutil.ignore_patterns("*.html"))
    assert main(["report", "--html", str(one)]) == 0
    assert str(one / "report.html") in capsys.readouterr().out and "studies compared" not in (
        one / "report.html"
    ).read_text("utf-8")
    assert main(["report", str(one), "--html", str(other)]) == 0
    assert "2 studies compared" in (one / "report.html").read_text("utf-8")
    for words, wanted in (
        (["--html"], "expected OUT"),
        (["--html", str(tmp_path)], "study.json"),
        ([], "expected OUT"),
    ):
        assert main(["report", *words]) == 2
        assert wanted in capsys.readouterr().err


def test_a_page_is_written_where_asked(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(finished), "--html", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")
    assert str(tmp_path / "page.html") in capsys.readouterr().out
    assert main(["report", str(finished), "--html", str(tmp_path)]) == 2
    assert "--html: expected a file in a folder that exists" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "--html"]) == 2
