"""A real browser for the product's pages, without network, and what every page is held to."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
QUIET = ["gpu", "quic", "background-networking", "component-update", "sync"]
# Every text whose contrast to what is behind it is below 4.5, with that contrast: WCAG 2.2, 1.4.3.
FAINT = """() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => rgb.slice(0, 3).reduce((sum, v, i) => sum + linear(v / 255) * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || ["SCRIPT", "NOSCRIPT", "OPTION"].includes(node.tagName)) continue;
    const style = getComputedStyle(node), ink = parts(node.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(node))], contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push([text.slice(0, 40), contrast]);
  }
  return found;
}"""


def absent(reason: str) -> None:
    """A user's machine skips; continuous integration has everything, or fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"expected continuous integration to have it: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")  # while it is open, a loop of its own runs: no other test could have one
def browser() -> Iterator[Any]:
    """Headless Chromium, Debian's."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        absent("no Chromium: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("no Playwright: pip install -c requirements.lock -e '.[dev]'")
    flags = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=flags)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address in a context of its own: `visit(url, width=1400, theme="light", own=url)`.

    At the end no page may have had an error, written to its console, or asked for what does not begin with `own`.
    """
    contexts: list[Any] = []
    wrong: list[str] = []

    def opened(url: str, width: int = 1400, theme: str = "light", own: str | None = None, **more: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **more))
        page = contexts[-1].new_page()
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("request", lambda one: None if one.url.startswith(own or url) else wrong.append(f"request: {one.url}"))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong


@pytest.fixture
def serious(browser: Any) -> Callable[[Any], list[str]]:
    """Finds what axe-core calls serious or critical on a page."""
    script = HERE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        absent("no axe-core: npm ci --prefix tests/browser")
    source = script.read_text("utf-8")

    def found(page: Any) -> list[str]:
        page.evaluate(source)  # past the page's own policy, which is right to refuse it
        violations = page.evaluate("async () => (await axe.run()).violations")
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:120]}"
            for one in violations
            if one["impact"] in ("serious", "critical")
        ]

    return found


@pytest.fixture
def readable() -> Callable[[Any], None]:
    """Holds a page to its width, and its texts to their contrast."""

    def hold(page: Any) -> None:
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the window"
        assert not page.evaluate(FAINT)

    return hold
