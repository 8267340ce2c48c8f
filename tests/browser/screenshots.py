"""`python tests/browser/screenshots.py FOLDER`: pictures of the pages at both widths and themes.

The runs that they show are made there, the one over Flower by real nodes. `--docs` copies those in docs/screenshots.
"""

import argparse
import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
HALFTRUTH = [sys.executable, "-m", "studies"]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
SIZES = ((400, 860), (1400, 900))
THEMES = ("light", "dark")
SHOWN = {  # in docs/screenshots -> here
    "report.png": "report-top-1400-light.png",
    "report-errors-dark.png": "report-errors-1400-dark.png",
    "report-three-runs.png": "three-together-1400-light.png",
    "report-narrow.png": "report-top-400-light.png",
    "watch.png": "watch-1400-light.png",
    "watch-narrow-dark.png": "watch-400-dark.png",
    "label.png": "label-1400-light.png",
    "label-narrow-dark.png": "label-400-dark.png",
}
COLOURS = 128  # of a picture in the documentation: a fifth of the bytes, and nobody sees it
UNITS = 72  # of the run that is watched
PAIRS = (("tea", "coffee"), ("coffee", "mate"), ("tea", "mate"))
ANSWERS = {  # to a prompt: a labeler compares each two
    "Name a bakery.": ("Crumbs & Co.", "The Daily Loaf", "Half Baked", "Rye Not?"),
    "Why is the sky blue?": (
        "Sunlight is made of all colours. Air bounces the blue ones around much more than the red ones, so that some "
        "blue light reaches your eyes from wherever you look.",
        "Because of Rayleigh scattering, whose intensity is the inverse fourth power of the wavelength.",
        "It mirrors the sea.",
    ),
}


def halftruth(*words: str) -> None:
    """Run a command to its end."""
    subprocess.run([*HALFTRUTH, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def study(out: Path, *words: str) -> Path:
    """A finished run of the quick study."""
    if not (out / "results.parquet").exists():
        halftruth("run", "studies/toml/quick.toml", "--out", str(out), "--overwrite", *words)
    return out


@contextmanager
def going(out: Path) -> Iterator[Path]:
    """A run over four real nodes that is half way, and stopped afterwards."""
    shutil.rmtree(out, ignore_errors=True)
    words = ["run", "studies/toml/quick.toml", "--out", str(out), "--set", "study.repetitions=120"]
    over = ["--on", "deployment", "--clients", "4", "--block", "5"]
    with subprocess.Popen([*HALFTRUTH, *words, *over], cwd=ROOT, stderr=subprocess.DEVNULL) as child:
        while child.poll() is None and len(list(out.glob("parts/*.parquet"))) < UNITS / 2:
            time.sleep(0.2)
        try:
            yield out
        finally:
            child.send_signal(signal.SIGINT)


def nodes(folder: Path) -> Path:
    """Three nodes with files of their own that have answered twice; the cap of one is used up by that."""
    if not folder.exists():
        file = folder.with_suffix(".csv")
        rows = [f"p{i % 40},{a},{b},{a if (i * 7) % 10 < 7 else b}" for i in range(600) for a, b in [PAIRS[i % 3]]]
        file.write_text("labeler,item_a,item_b,winner\n" + "\n".join(rows) + "\n", encoding="utf-8")
        halftruth("data", "split", str(file), "--nodes", "3", "--label-cap", "2", "--out", str(folder))
        own = folder / "node-1" / "node.toml"
        own.write_text(own.read_text("utf-8").replace("label_cap = 2", "label_cap = 1.5"), encoding="utf-8")
        for epsilon in ("1", "0.5"):
            where = ("--nodes", str(folder), "--on", "in-process")
            halftruth("federate", str(folder / "server"), *where, "--epsilon", epsilon)
    return folder


def pairs(folder: Path) -> tuple[str, ...]:
    """Flags of a labeler with nine pairs, who has answered nothing yet."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lines = [
        {"prompt": prompt, "output_1": one, "output_2": other}
        for prompt, answers in ANSWERS.items()
        for one, other in itertools.combinations(answers, 2)
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    policy = '[policy]\ntrust = ["local"]\nlabel_cap = 2\nmax_epsilon = 1\n'
    (folder / "policy.toml").write_text(policy, encoding="utf-8")
    return ("--pairs", str(folder / "pairs.jsonl"), "--policy", str(folder / "policy.toml"))


def label(browser: Any, folder: Path) -> None:
    """Pictures of a labeler's page: a pair of texts after some answers, and what is there after a release."""
    with served("label", *pairs(folder / "labeler")) as url:
        page = browser.new_page()
        page.goto(url)
        for done, key in enumerate(("ArrowLeft", "=", "s", *["ArrowRight"] * 3)):
            page.locator("#progress-words", has_text=f", {done} of 9").wait_for()
            page.keyboard.press(key)
        page.locator("#progress-words", has_text=", 6 of 9").wait_for()
        take(browser, folder, "label", url, "#side-0.long", full=False)
        page.locator("#release").click()
        page.locator("#yes").click()
        page.get_by_text("5 released").wait_for()
        page.close()
        take(browser, folder, "label-released", url, "#command")


@contextmanager
def served(*words: str) -> Iterator[str]:
    """The address that a command prints: of a live view, or of a labeler's page."""
    with subprocess.Popen([*HALFTRUTH, *words, "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield next(found[0] for line in child.stdout if (found := re.search(r"http://\S+", line)))
        finally:
            child.send_signal(signal.SIGINT)


def take(browser: Any, folder: Path, name: str, url: str, until: str, part: str = "", full: bool = True) -> None:
    """Pictures of a page once it shows `until`: all of it, or a `part`."""
    for width, height in SIZES:
        for theme in THEMES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
            page.goto(url)
            page.locator(until).first.wait_for()
            page.wait_for_timeout(400)
            path = folder / f"{name}-{width}-{theme}.png"
            if part:
                page.locator(part).first.screenshot(path=path)
            else:
                page.screenshot(path=path, full_page=full)
            page.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Make the runs and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--docs", action="store_true", help="copy those that the documentation shows")
    args = parser.parse_args(argv)
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    runs = [study(folder / "quick"), study(folder / "sphere", "--set", "problem.features=sphere")]
    runs.append(study(folder / "few", "--set", "study.repetitions=10"))
    pages = {"report": [runs[0]], "three": runs}
    for name, found in pages.items():
        halftruth("report", *map(str, found), "--html", str(folder / f"{name}.html"))
    _take_all(folder, list(pages))
    if args.docs:
        for name, here in SHOWN.items():
            picture = Image.open(folder / here).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            picture.save(ROOT / "docs" / "screenshots" / name, optimize=True)
    return 0


def _take_all(folder: Path, pages: Sequence[str]) -> None:
    from playwright.sync_api import sync_playwright

    report, three = ((folder / f"{name}.html").as_uri() for name in pages)
    path = next(filter(None, map(shutil.which, NAMES)), None)
    budgets = nodes(folder / "nodes")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        take(browser, folder, "report", report, ".holder svg .mark")
        take(browser, folder, "report-top", report, ".holder svg .mark", full=False)
        take(browser, folder, "report-errors", report, "#errors-0 .mark", "#errors-0")
        take(browser, folder, "three", three, ".holder svg .mark")
        take(browser, folder, "three-together", three, ".holder svg .mark", "main > section")
        with (
            going(folder / "deployment") as out,
            served("watch", str(out), "--budgets", str(budgets), "--serve") as live,
        ):
            take(browser, folder, "watch", live, "#errors tr")
        label(browser, folder)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
