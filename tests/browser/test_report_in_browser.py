"""A report in a real browser: right numbers, no network, both widths and themes, keyboard, hostile names."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from studies.cli import main
from studies.folder import Folder
from studies.load import load
from studies.report.answer import answer, answer_at
from studies.report.price import prices
from studies.report.view import View
from studies.run import run
from studies.summary import summarise

TOML = Path(__file__).parents[2] / "studies" / "toml"
SMALL = ["study.repetitions=4", "grid.n=[200, 1000]", "grid.epsilon=[1.0, 2.0]"]
HOSTILE = "<img src=x onerror=document.title=1>"
Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of small runs: comparisons, records, and comparisons with hostile names."""
    root = tmp_path_factory.mktemp("runs")
    asked = {
        "quick": ("quick", []),
        "heavy": ("heavy-mean", []),
        HOSTILE: ("heavy-mean", ["study.repetitions=3", 'study.name="</script><b>&amp;=1"']),
    }
    for name, (study, more) in asked.items():
        run(load(TOML / f"{study}.toml", [*SMALL, *more]), root / name, jobs=1)
    return {name: root / name for name in asked}


@pytest.fixture(scope="module")
def pages(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of the page of the comparisons, and of one of all."""
    root = tmp_path_factory.mktemp("pages")
    found = {"quick": [runs["quick"]], "all": [*runs.values()]}
    for name, folders in found.items():
        assert main(["report", *map(str, folders), "--html", str(root / f"{name}.html")]) == 0
        assert (root / f"{name}.html").stat().st_size < 1_000_000
    return {name: (root / f"{name}.html").as_uri() for name in found}


def cells(page: Any, table: Any) -> list[dict[str, str]]:
    """Rows of a table by its heads."""
    heads, *rows = table.evaluate("t => [...t.rows].map(r => [...r.cells].map(c => c.textContent))")
    return [dict(zip(heads, row, strict=True)) for row in rows]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_a_page_is_readable_at_every_width_and_theme(
    width: int, theme: str, pages: dict[str, str], visit: Visit, readable: Visit
) -> None:
    page = visit(pages["all"], width=width, theme=theme)
    for summary in page.locator("summary").all():
        summary.click()
    readable(page)
    drawn = page.evaluate(
        "[...document.querySelectorAll('.holder svg.chart')].every(s => s.getBoundingClientRect().width > 30)"
    )
    assert drawn and page.locator(".holder svg .mark").count() > 20


@pytest.mark.parametrize(("name", "theme"), [("all", "light"), ("quick", "dark")])
def test_rules_of_accessibility_hold(
    name: str, theme: str, pages: dict[str, str], visit: Visit, serious: Visit
) -> None:
    page = visit(pages[name], theme=theme)
    for summary in page.locator("summary").all():
        summary.click()
    assert not serious(page)


@pytest.mark.parametrize(("name", "index"), [("quick", 0), ("heavy", 1)])
def test_the_numbers_are_those_of_the_results(
    name: str, index: int, pages: dict[str, str], runs: dict[str, Path], visit: Visit
) -> None:
    view, page = View.open(Folder(runs[name])), visit(pages["all"])
    assert page.locator(f"#answer-{index} p.answer").inner_text() == answer(view)
    table = pq.read_table(runs[name] / "results.parquet")
    expected = {
        (view.looks[one.arm].label, one.arm.partition("/")[0], f"{one.setting.n:,}"): one.moments
        for one in summarise(table)
        if one.setting.epsilon in (None, 1.0)
    }
    found = cells(page, page.locator(f"#errors-{index} details table"))
    assert len(found) == len(expected)
    for row in found:
        moments = expected[row["arm"], row["trust"], row["n"]]
        assert float(row["mean"].replace(",", "")) == pytest.approx(moments.mean, rel=5.1e-3)
        assert float(row["95 % from"].replace(",", "")) == pytest.approx(moments.low, rel=0.02, abs=1e-3)
    mark, tip = page.locator(f"#errors-{index} .point").last, page.locator(f"#errors-{index} .tip")
    mark.scroll_into_view_if_needed()
    box = mark.locator(".halo").bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    spoken = mark.get_attribute("aria-label") or ""
    assert tip.is_visible() and all(line in spoken for line in tip.locator("div").all_inner_texts())


def test_levels_axes_and_arms_are_chosen(pages: dict[str, str], visit: Visit) -> None:
    page = visit(pages["quick"])
    errors = page.locator("#errors-0")
    before = errors.locator("figcaption").inner_text()
    errors.get_by_text("ε = 2", exact=True).click()
    assert "ε = 2" in errors.locator("figcaption").inner_text() != before
    marks = errors.locator(".point").count()
    errors.get_by_role("checkbox", name="naive").uncheck()
    assert errors.locator(".point").count() == marks - 2
    errors.get_by_role("checkbox", name="theory", exact=True).uncheck()
    assert errors.locator(".holder path.line:not(.dash):not(.dots)").count() == 0
    assert errors.locator(".holder text", has_text="answer 0").count() == 1
    errors.get_by_role("checkbox", name="answer 0 and bounds").uncheck()
    assert errors.locator(".holder .dots").count() == 0
    errors.get_by_text("privacy ε", exact=True).click()
    assert errors.locator(".holder text", has_text="more private").count() == 1
    errors.get_by_label("What").select_option("accuracy")
    assert "accuracy" in errors.locator("figcaption").inner_text()


def test_the_answer_is_that_of_the_level_that_is_chosen_anywhere(
    pages: dict[str, str], runs: dict[str, Path], visit: Visit
) -> None:
    view, page = View.open(Folder(runs["quick"])), visit(pages["quick"])
    found, said, places = prices(view), page.locator("#answer-0 p.answer"), ("answer", "errors", "differences")
    wanted = {view.title(level): answer_at(view, found, level) for level in view.levels}
    assert len(set(wanted.values())) == len(wanted) == 2
    assert said.get_attribute("aria-live") == "polite"
    for place, level in zip(places, ("ε = 2", "ε = 1", "ε = 2"), strict=True):
        page.locator(f"#{place}-0 .choices").get_by_text(level, exact=True).click()
        assert said.inner_text() == wanted[level]
        assert level in page.locator("#errors-0 figcaption").inner_text()
        assert level in page.locator("#differences-0 figcaption").inner_text()
        chosen = page.locator("fieldset", has_text="Privacy level").get_by_role("radio", checked=True)
        assert chosen.evaluate_all("all => all.map(one => one.parentElement.textContent)") == [level] * 3
    page = visit(pages["all"])
    page.locator("#answer-0 .choices").get_by_text("ε = 2", exact=True).click()
    assert wanted["ε = 2"] in page.locator("main > section p").first.inner_text()


def test_everything_is_reached_by_keyboard(pages: dict[str, str], visit: Visit) -> None:
    page = visit(pages["quick"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.closest('section')?.id ?? document.activeElement.id"))
        if page.evaluate("document.activeElement.matches('#errors-0 .point')"):
            break
    assert {"theme", "answer-0", "errors-0"} <= set(seen)
    tip, told = page.locator("#errors-0 .tip"), []
    for key in ("End", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
        assert tip.is_visible()
        told.append(tip.inner_text())
    assert len(set(told)) == 3
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.locator("#theme").focus()
    colours = set()
    for _ in range(3):
        page.keyboard.press("Enter")
        colours.add(
            (page.locator("#theme").inner_text(), page.evaluate("getComputedStyle(document.body).backgroundColor"))
        )
    assert len(colours) == 3 and len({colour for _, colour in colours}) == 2


def test_tables_sort_and_are_copied(pages: dict[str, str], visit: Visit) -> None:
    page = visit(pages["quick"], permissions=["clipboard-read", "clipboard-write"])
    page.locator("#errors-0 summary").click()
    place = page.locator("#errors-0 details")
    head = place.get_by_role("button", name="mean")
    for way in (1, -1):
        head.press("Enter")
        means = [float(row["mean"]) for row in cells(page, place.locator("table"))]
        assert means == sorted(means, reverse=way < 0)
    place.get_by_role("button", name="Copy as CSV").click()
    place.get_by_role("button", name="Copied").wait_for()
    rows = list(csv.DictReader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
    assert len(rows) == len(means) and float(rows[0]["mean"]) == pytest.approx(means[0], rel=5e-3)


def test_names_are_text_and_nothing_else(pages: dict[str, str], visit: Visit) -> None:
    page = visit(pages["all"])
    assert page.locator("#study-2 h2").inner_text() == "</script><b>&amp;=1"
    assert page.title() == "3 studies compared: halftruth"
    assert page.locator("img").count() == 0 and page.locator("main b").count() == 0
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content") or ""
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert re.search(r"halftruth run script-b-amp-1\.toml", page.locator("#command-2").inner_text())


def test_several_runs_are_compared(pages: dict[str, str], runs: dict[str, Path], visit: Visit) -> None:
    page = visit(pages["all"])
    together = page.locator("section").first
    assert together.locator("p strong").all_inner_texts()[:2] == ["quick: ", "heavy-mean: "]
    assert "in heavy-mean (n = 1,000)" in together.locator("figcaption").last.inner_text()
    together.get_by_label("Arm").select_option("MLE (clear)")
    assert "in quick (n = 1,000)" in together.locator("figcaption").last.inner_text()
    together.get_by_text("What differs", exact=True).click()
    assert "study.repetitions: 4 -> 3" in together.locator("details table").first.inner_text()


def test_paper_gets_everything_in_black_on_white(pages: dict[str, str], visit: Visit) -> None:
    page = visit(pages["quick"], theme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 250)"
    assert page.locator("#errors-0 details table").is_visible() and page.locator(".controls").first.is_hidden()
