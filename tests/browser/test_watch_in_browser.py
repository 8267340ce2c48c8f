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

from studies.load import load
from studies.run import run
from studies.summary import summarise

ROOT = Path(__file__).parents[2]
SMALL = ["study.repetitions=4", "grid.n=[100, 300]", "grid.epsilon=[1.0, 2.0]"]
Visit = Callable[..., Any]


@contextmanager
def served(out: Path, port: int = 0) -> Iterator[str]:
    """The address of the page of a folder."""
    words = [sys.executable, "-m", "studies", "watch", str(out), "--serve", "--port", str(port), "--every", "0.2"]
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
        page.get_by_text("quick (in-process): finished").wait_for()
        page.get_by_text("ε = 2", exact=True).click()
        table = pq.read_table(out / "results.parquet")
        wanted = {
            one.arm: one.moments.mean
            for one in summarise(table)
            if one.setting.n == 300 and one.setting.epsilon in (None, 2.0)
        }
        page.wait_for_timeout(500)  # what was chosen stays chosen
        cells = page.evaluate("[...errors.rows].map(row => [...row.cells].map(cell => cell.textContent))")
        assert {row[0]: float(row[1]) for row in cells} == pytest.approx(wanted, rel=5.1e-3)
        assert page.locator("progress").evaluate_all("all => all.map(one => one.value / one.max)") == [1, 1]
        assert not serious(page)
        for width in (400, 1400):
            for theme in ("light", "dark"):
                other = visit(url, width=width, theme=theme)
                other.get_by_text("finished").first.wait_for()
                readable(other)
                other.close()
        page.close()  # before the server, which it would miss


def test_a_page_goes_on_where_its_server_ended_and_came_back(tmp_path: Path, browser: Any) -> None:
    run(load(ROOT / "studies" / "toml" / "quick.toml", SMALL), tmp_path / "out", jobs=1, block=4)
    page = browser.new_context().new_page()
    with served(tmp_path / "out") as url:
        page.goto(url)
        page.get_by_text("quick (in-process): finished").wait_for()
    page.get_by_text("Nobody answers").wait_for()
    assert page.locator("#errors tr").count() > 5
    with served(tmp_path / "out", int(url.rstrip("/").rpartition(":")[2])):
        page.get_by_text("Nobody answers").wait_for(state="detached")
    page.context.close()


def test_another_name_does_not_lead_to_the_page(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        asked = urllib.request.Request(f"{url}seen.json", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked, timeout=10)
        refused.value.close()
        assert refused.value.code == 400
        with urllib.request.urlopen(url, timeout=10) as reply:
            assert reply.headers["Cache-Control"] == "no-store" and b"connect-src 'self'" in reply.read()
