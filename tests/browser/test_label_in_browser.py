"""The labeler's page in a real browser: keyboard and touch, widths and themes, restarts, and a running federation."""

import csv
import io
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from client.answers import FILE
from studies.cli import main, parsed
from studies.label import opened as session_of
from studies.label.serve import server_of

ROOT = Path(__file__).parents[2]
POLICY = '[policy]\ntrust = ["local"]\nlabel_cap = 2\nmax_epsilon = 1\n'
ITEMS = ("tea", "coffee", "water", "<b>juice</b>")
LONG = "Sunlight is made of all colours, and air bounces blue light around more than red. " * 6
WORD = "w" * 64
Visit = Callable[..., Any]


@contextmanager
def served(*words: str) -> Iterator[str]:
    """The address of the page of `halftruth label`, in a process of its own."""
    told = [sys.executable, "-m", "studies", "label", *words]
    with subprocess.Popen(told, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            found = next(filter(None, (re.search(r"http://127\.0\.0\.1:\d+/#\w{64}", line) for line in child.stdout)))
            yield found[0]
        finally:
            child.send_signal(signal.SIGINT)
            assert child.wait(30) in (0, 130)


@contextmanager
def served_here(*words: str) -> Iterator[str]:
    """The same in a thread of this process, which is there sooner."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = server_of(session_of(parsed(["label", *words])), WORD)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/#{WORD}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    """Flags for six pairs of short names."""
    lines = [f"{a},{b}" for a, b in itertools.combinations(ITEMS, 2)]
    (tmp_path / "pairs.csv").write_text("item_a,item_b\n" + "\n".join(lines) + "\n", "utf-8")
    (tmp_path / "policy.toml").write_text(POLICY, "utf-8")
    return ("--pairs", str(tmp_path / "pairs.csv"), "--policy", str(tmp_path / "policy.toml"), "--port", "0")


def opened(visit: Visit, url: str, **more: Any) -> Any:
    """The page with its first pair."""
    page = visit(url, own=url.partition("#")[0], **more)
    page.locator("#all:not([hidden])").wait_for()
    return page


def until(page: Any, words: str) -> None:
    page.locator("#progress-words", has_text=words).wait_for()


def winners(folder: Path) -> list[str]:
    rows = csv.DictReader(io.StringIO((folder / "votes.csv").read_text("utf-8")))
    return [row[row["winner"]] if row["winner"] in row else row["winner"] for row in rows]


def test_a_labeler_answers_by_keyboard_changes_goes_on_and_releases(
    asked: tuple[str, ...], tmp_path: Path, visit: Visit, serious: Visit
) -> None:
    """Two runs, the first in a process of its own: what was answered there is here, and frozen after a release."""
    folder = tmp_path / "pairs.csv.answers"
    with served(*asked) as url:
        page = opened(visit, url)
        until(page, "Pair 1, 0 of 6")
        assert not serious(page)
        chosen = [page.locator("#text-0").inner_text()]
        page.keyboard.press("ArrowLeft")
        until(page, "Pair 2, 1 of 6")
        assert page.locator("#said").inner_text() == f"Chosen: {chosen[0]}. Pair 2 of 6."
        page.keyboard.press("ArrowRight")
        until(page, "Pair 3, 2 of 6")
        page.keyboard.press("Backspace")
        until(page, "Pair 2, 1 of 6")
        chosen.append(page.locator("#text-1").inner_text())
        page.locator("#choose-1").focus()
        page.keyboard.press("Enter")
        until(page, "Pair 3, 2 of 6")
        assert page.evaluate("document.activeElement.id") == "heading"
        page.keyboard.press("=")
        until(page, "Pair 4, 3 of 6")
        page.keyboard.press("s")
        until(page, "Pair 5, 4 of 6")
        page.locator("#keys").click()
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(300)
        until(page, "Pair 5, 4 of 6")
        assert [path.name for path in folder.iterdir() if path.name != "lock"] == [FILE]
        page.close()  # before the server, which it would miss
    with served_here(*asked) as url:
        page = opened(visit, url)
        until(page, "Pair 5, 4 of 6")
        assert page.locator("#held").inner_text() == "3 answers on this machine only, 1 skipped, 2 to go."
        page.get_by_text("Show all pairs").click()
        page.get_by_role("button", name=re.compile("^Change: ")).nth(2).click()
        until(page, "Pair 3")
        assert "chosen" in (page.locator("#tie").get_attribute("class") or "")
        chosen.append(page.locator("#text-0").inner_text())
        page.locator("#choose-0").click()
        until(page, "Pair 5, 4 of 6")
        page.locator("#release").click()
        assert "3 pairs are left out, 1 skipped and 2 not reached" in page.locator("#sure").inner_text()
        assert not serious(page)
        page.locator("#no").click()
        assert not (folder / "votes.csv").exists()
        page.locator("#release").click()
        page.locator("#yes").click()
        page.get_by_text("3 released, 1 skipped, 2 to go.").wait_for()
        assert page.get_by_role("button", name=re.compile("^Change: ")).count() == 1
        assert page.locator("#undo").is_disabled() and not serious(page)
        assert str(folder / "node.toml") in page.locator("#command").inner_text()
        assert "probability 0.73" in page.locator("#leaves").inner_text()
        page.close()
    assert winners(folder) == chosen


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_labeler_answers_by_touch_at_every_width(
    theme: str, asked: tuple[str, ...], visit: Visit, readable: Visit, serious: Visit
) -> None:
    with served_here(*asked) as url:
        for done, width in enumerate((400, 1400)):
            page = opened(visit, url, width=width, theme=theme, has_touch=True)
            until(page, f"Pair {done + 1}, {done} of 6")
            readable(page)
            for box in (page.locator(f"#{name}").bounding_box() for name in ("choose-0", "choose-1", "tie", "skip")):
                assert box["height"] >= 44 and box["width"] >= 44
            page.locator("#side-1").tap(position={"x": 12, "y": 12})
            until(page, f"Pair {done + 2}, {done + 1} of 6")
            page.locator("#tie").tap()
            until(page, f"Pair {done + 3}, {done + 2} of 6")
            page.locator("#undo").tap()
            until(page, f"Pair {done + 2}, {done + 1} of 6")
            page.locator("#review summary").tap()
            page.locator("#answers li").first.wait_for()
            assert not serious(page)
            page.locator("#release").tap()
            readable(page)
            page.close()


def test_long_texts_names_that_are_markup_and_a_second_tab(tmp_path: Path, visit: Visit, readable: Visit) -> None:
    lines = [{"prompt": "Why?", "output_1": LONG, "output_2": "<img src=x onerror=document.title=1>"}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (tmp_path / "policy.toml").write_text(POLICY, "utf-8")
    told = ("--pairs", str(tmp_path / "p.jsonl"), "--policy", str(tmp_path / "policy.toml"), "--port", "0")
    with served_here(*told) as url:
        page, other = opened(visit, url, width=400), opened(visit, url)
        readable(page)
        texts = {page.locator(f"#text-{side}").inner_text() for side in (0, 1)}
        assert texts == {LONG.strip(), lines[0]["output_2"]} and page.locator("main img").count() == 0
        assert page.locator("#question").inner_text() == "Why?" and page.title() == "halftruth label"
        page.locator("#choose-0").click()
        page.get_by_text("Every pair is done").wait_for()
        other.keyboard.press("s")  # about a pair that the other tab has answered: the later word counts
        other.get_by_text("Every pair is done").wait_for()
        assert other.locator("#held").inner_text() == "Nothing to release yet, 1 skipped."
        other.close()
        page.close()


def test_without_its_password_the_page_shows_nothing(asked: tuple[str, ...], browser: Any) -> None:
    with served_here(*asked) as url:
        page = browser.new_context().new_page()
        page.goto(url.partition("#")[0])
        page.get_by_text("Expected the address that halftruth label printed").wait_for()
        assert page.locator("#all").is_hidden() and "tea" not in page.content()
        page.context.close()


def test_what_is_not_kept_is_not_shown_as_answered(asked: tuple[str, ...], tmp_path: Path, browser: Any) -> None:
    """Another tab went on before a release, the disk went away, and then the program."""
    with served_here(*asked) as url:
        page, other = browser.new_context().new_page(), browser.new_context().new_page()
        for each in (page, other):
            each.goto(url)
            until(each, "Pair 1, 0 of 6")
        page.keyboard.press("ArrowLeft")
        until(page, "Pair 2, 1 of 6")
        other.keyboard.press("s")
        until(other, "Pair 2, 1 of 6")
        page.locator("#release").click()
        page.locator("#yes").click()
        page.locator("#lost", has_text="they changed, look again").wait_for()
        page.get_by_text("Nothing to release yet, 1 skipped, 5 to go.").wait_for()
        (tmp_path / "pairs.csv.answers").rename(tmp_path / "away")
        page.keyboard.press("ArrowLeft")
        page.locator("#lost", has_text="Not kept: ").wait_for()
        until(page, "Pair 2, 1 of 6")
        other.close()
    page.keyboard.press("ArrowLeft")
    page.locator("#lost", has_text="Nobody answers").wait_for()
    until(page, "Pair 2, 1 of 6")
    page.context.close()


@pytest.mark.slow
def test_what_a_labeler_releases_is_ranked_by_a_running_federation(tmp_path: Path, visit: Visit) -> None:
    """One node is up, the labeler's joins by the page; of their six pairs one is skipped, so the server asks live."""
    lines = [
        f"{who},{a},{b},{min(a, b) if who == 'p0' else ''}"
        for who in ("p0", "p1")
        for a, b in itertools.combinations(ITEMS, 2)
    ]
    (tmp_path / "all.csv").write_text("labeler,item_a,item_b,winner\n" + "\n".join(lines) + "\n", "utf-8")
    nodes, others, state, mine = (tmp_path / name for name in ("nodes", "others", "state", "mine"))
    assert main(["data", "split", str(tmp_path / "all.csv"), "--nodes", "2", "--out", str(nodes)]) == 0
    others.mkdir()
    whose = {number: (nodes / f"node-{number}" / "votes.csv").read_text("utf-8") for number in range(2)}
    (there,) = [number for number, text in whose.items() if '"p0"' in text]
    (nodes / f"node-{there}").rename(others / f"node-{there}")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    halftruth = [sys.executable, "-m", "studies"]
    try:
        up = [*halftruth, "up", "--nodes", str(others), "--state", str(state)]
        subprocess.run(up, env=environment, cwd=tmp_path, check=True, capture_output=True, timeout=540)
        config = nodes / f"node-{1 - there}" / "node.toml"
        told = ("--config", str(config), "--out", str(mine), "--federation", str(state), "--port", "0")
        with served(*told) as url:
            page = opened(visit, url)
            for done, key in enumerate(("ArrowLeft", "ArrowLeft", "ArrowRight", "=", "s", "ArrowLeft")):
                until(page, f"Pair {done + 1}, {done} of 6")
                page.keyboard.press(key)
            page.get_by_text("Every pair is done").wait_for()
            page.locator("#release").click()
            page.locator("#yes").click()
            page.get_by_text("Your node is up").wait_for()
            page.get_by_text("Nothing: no server has asked yet.").wait_for()
            assert working_on(mine)
            found = ranked(str(nodes / "server"), str(state))
            assert {row["item"] for row in found["ranking"]} == set(ITEMS) and found["claimed_epsilon"] == 1
            page.get_by_text("5 new answers, each sent as given with probability at most 0.73 (epsilon 1)").wait_for()
            page.get_by_text("Epsilon 1 of at most 1 by one answer, and 5 by all of yours together.").wait_for()
            assert found == ranked(str(nodes / "server"), str(state))
            page.close()
        assert not working_on(mine), "the node is left"
    finally:
        down = [*halftruth, "down", "--state", str(state)]
        subprocess.run(down, env=environment, cwd=tmp_path, check=True, capture_output=True, timeout=120)


def working_on(folder: Path) -> list[bytes]:
    """Command lines of processes that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            found.append(path.read_bytes())
    return [words for words in found if str(folder).encode() in words]


def ranked(server: str, state: str) -> dict[str, Any]:
    """What `halftruth federate` says once both nodes are there: the labeler's needs a moment to come."""
    words = (
        "federate",
        server,
        "--federation",
        state,
        "--epsilon",
        "1",
        "--mode",
        "live",
        "--deadline",
        "90",
        "--json",
    )
    for _ in range(60):
        done = subprocess.run(
            [sys.executable, "-m", "studies", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=540,
            check=False,
        )
        if "expected 2 nodes" not in done.stderr:
            assert done.returncode == 0, done.stderr
            found: dict[str, Any] = json.loads(done.stdout)
            return found
        time.sleep(1)
    pytest.fail(done.stderr)
