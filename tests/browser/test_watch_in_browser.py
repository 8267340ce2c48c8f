"""The live view in a real browser: a run that goes on, both widths and themes, and restarts of either side."""

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from server.delivery import ToFolder
from studies.cli import main
from studies.load import load
from studies.report.arms import looks
from studies.run import run
from studies.summary import summarise

ROOT = Path(__file__).parents[2]
SMALL = ["study.repetitions=4", "grid.n=[100, 300]", "grid.epsilon=[1.0, 2.0]"]
Visit = Callable[..., Any]


@contextmanager
def served(*what: object, port: int = 0) -> Iterator[str]:
    """The address of the page of a folder."""
    told = [*map(str, what), "--serve", "--port", str(port), "--every", "0.2"]
    words = [sys.executable, "-m", "studies", "watch", *told]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+/", child.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            child.send_signal(signal.SIGINT)
            assert child.wait(20) in (0, 130)


def test_a_run_is_seen_from_before_it_begins_to_its_end(
    tmp_path: Path, visit: Visit, readable: Visit, serious: Visit
) -> None:
    out = tmp_path / "out"
    with served(out) as url:
        page = visit(url)
        page.get_by_text("Waits for a run").wait_for()
        run(load(ROOT / "studies" / "toml" / "quick.toml", SMALL), out, jobs=1, block=2)
        page.get_by_role("status").get_by_text("Finished").wait_for()
        assert (page.locator("h1").inner_text(), page.locator("#where").inner_text()) == ("quick", "in-process")
        page.get_by_text("ε = 2", exact=True).click()
        table = pq.read_table(out / "results.parquet")
        labels = looks(load(ROOT / "studies" / "toml" / "quick.toml", SMALL).study.arms)
        wanted = {
            labels[one.arm].label: one.moments.mean
            for one in summarise(table)
            if one.setting.n == 300 and one.setting.epsilon in (None, 2.0)
        }
        page.wait_for_timeout(500)  # what was chosen stays chosen
        cells = page.evaluate("[...errors.rows].map(row => [...row.cells].map(cell => cell.firstChild.textContent))")
        assert {row[0]: float(row[1]) for row in cells} == pytest.approx(wanted, rel=5.1e-3)
        assert page.locator("#run progress").evaluate_all("all => all.map(one => one.value / one.max)") == [1, 1, 1]
        assert page.locator("#share").inner_text() == "100 %"
        assert not serious(page)
        for width in (400, 1400):
            for theme in ("light", "dark"):
                other = visit(url, width=width, theme=theme)
                other.get_by_role("status").get_by_text("Finished").wait_for()
                readable(other)
                other.close()
        page.close()  # before the server, which it would miss


def test_a_page_goes_on_where_its_server_ended_and_came_back(tmp_path: Path, browser: Any) -> None:
    run(load(ROOT / "studies" / "toml" / "quick.toml", SMALL), tmp_path / "out", jobs=1, block=4)
    page = browser.new_context().new_page()
    with served(tmp_path / "out") as url:
        page.goto(url)
        page.get_by_role("status").get_by_text("Finished").wait_for()
    page.get_by_text("Nobody answers").wait_for()
    assert page.locator("#errors tr").count() > 5
    with served(tmp_path / "out", port=int(url.rstrip("/").rpartition(":")[2])):
        page.get_by_text("Nobody answers").wait_for(state="detached")
    page.context.close()


def test_budgets_and_messages_of_nodes_are_seen_as_they_change(
    tmp_path: Path, visit: Visit, readable: Visit, serious: Visit
) -> None:
    """What two servers of one run said of their nodes, and a node's ledger before and after it has answered."""
    out, file, nodes = tmp_path / "out", tmp_path / "votes.csv", tmp_path / "nodes"
    run(load(ROOT / "studies" / "toml" / "quick.toml", SMALL), out, jobs=1, block=4)
    rows = [f"p{at % 5},{a},{b},{a}" for at, (a, b) in enumerate([("tea", "mate"), ("mate", "coffee")] * 10)]
    file.write_text("labeler,item_a,item_b,winner\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert main(["data", "split", str(file), "--nodes", "2", "--label-cap", "2", "--out", str(nodes)]) == 0
    with served(out, "--budgets", nodes) as url:
        page = visit(url)
        page.get_by_text("node-1: no ledger yet: nothing was spent.").wait_for()
        assert page.locator("#kinds-part").is_hidden()
        line = "cell-300-0-4: exchange {} with 3 nodes: 1 task, 9 bytes to each, 9 from all; messages so far: {}"
        for words in (line.format(1, "answered: 3, refused: 2"), line.format(1, "answered: 2, late: 1 (node <b> x 1)")):
            ToFolder(out).heard(words)
        page.get_by_role("row", name="nodes that answered 2 of 3 5").wait_for()
        assert page.get_by_role("row", name="tasks refused 0 2").count() == 1
        page.get_by_text("Not counted: node <b> x 1.").wait_for()
        words = ["federate", str(nodes / "server"), "--nodes", str(nodes), "--on", "in-process", "--epsilon"]
        for epsilon, left in (("1.5", "1.5 2 0.5 0"), ("0.5", "2 2 0 ")):
            assert main([*words, epsilon]) == 0
            page.get_by_role("row", name=f"a label, ε {left}").first.wait_for()
        assert page.locator("#totals progress").evaluate_all("all => all.map(one => one.value)") == [1, 1]
        assert not serious(page)
        for width, theme in ((400, "dark"), (400, "light"), (1400, "dark")):
            other = visit(url, width=width, theme=theme)
            other.locator("#totals tr").first.wait_for()
            readable(other)
            other.close()
        page.close()


def test_another_name_does_not_lead_to_the_page(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        asked = urllib.request.Request(f"{url}seen.json", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked, timeout=10)
        refused.value.close()
        assert refused.value.code == 400
        with urllib.request.urlopen(url, timeout=10) as reply:
            assert reply.headers["Cache-Control"] == "no-store" and b"connect-src 'self'" in reply.read()
