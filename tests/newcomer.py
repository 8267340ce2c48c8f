"""A newcomer's way, timed: from nothing to a plot, to an own file ranked, to a federation of four processes.

`make newcomer` clones the checkout as it is committed into a temporary folder with a home of its own, where no package
is kept, no kernel is compiled and no state is, does what README.md says, and prints a table. Every command is one that
README.md prints. Nothing is left behind.
"""

import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studies.bench.machine import processor
from studies.doctor.machine import cores

ROOT = Path(__file__).resolve().parents[1]
FILE = "comparisons.csv"


@dataclass(frozen=True)
class Step:
    """What is done: a command of README.md, what it is for, and what has to be there or be said afterwards."""

    command: str
    reached: str = ""
    there: str = ""
    said: str = ""


STEPS = (
    Step("make demo", "first plot", there="out/quick/figures/*.svg"),
    Step("source .venv/bin/activate"),
    Step(f"halftruth data check {FILE}", said="comparisons"),
    Step(f"halftruth fit {FILE} --trust local --epsilon 1", "own file ranked", said="tea"),
    Step("halftruth up --nodes 4 --tls", "federation of four processes", said="4"),
    Step("halftruth status"),
    Step(
        "halftruth run studies/toml/quick.toml --out out/up --on deployment --federation",
        "its first study",
        there="out/up/results.parquet",
    ),
    Step("halftruth down"),
)


def own_file(path: Path, seed: int = 1) -> None:
    """A file as README.md shows one: who answered, two drinks, and the winner; 60 people, 20 answers each."""
    coins, drinks = random.Random(seed), ["tea", "coffee", "water", "juice", "milk"]
    lines = ["labeler,item_a,item_b,winner"]
    for person in range(60):
        for _ in range(20):
            pair = coins.sample(drinks, 2)
            better, worse = sorted(pair, key=drinks.index)
            lines.append(f"p{person},{pair[0]},{pair[1]},{better if coins.random() < 0.8 else worse}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def walk(folder: Path) -> Iterator[tuple[str, float, str]]:
    """Clone and take all steps: what was done, its seconds, and what was reached. Raises RuntimeError."""
    clone, environment = folder / "halftruth", _environment(folder)
    yield "git clone", _timed(f"git clone --quiet '{ROOT}' '{clone}'", folder, environment)[0], ""
    own_file(clone / FILE)
    before = ""
    try:
        for step in STEPS:
            if step.command.startswith("source "):
                before = f"{step.command} && "
                continue
            seconds, said = _timed(before + step.command, clone, environment)
            if step.said not in said or (step.there and not list(clone.glob(step.there))):
                raise RuntimeError(f"{step.command}: expected {step.said or step.there}, got:\n{said}")
            yield step.command, seconds, step.reached
    finally:
        if (clone / ".venv/bin/halftruth").exists():  # whatever happened: nothing stays
            subprocess.run([clone / ".venv/bin/halftruth", "down"], env=environment, capture_output=True, check=False)


def _environment(folder: Path) -> dict[str, str]:
    """A home of its own, and of this machine no more than where programs and packages are found."""
    home = folder / "home"
    home.mkdir()
    names = ("PATH", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    kept = {key: value for key, value in os.environ.items() if key in names or key.startswith("PIP_")}
    settings = Path.home() / ".config/pip/pip.conf"
    if settings.exists():
        kept.setdefault("PIP_CONFIG_FILE", str(settings))
    if (own := os.environ.get("VIRTUAL_ENV")) is not None:
        kept["PATH"] = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if not part.startswith(own))
    return {**kept, "HOME": str(home), "PIP_NO_CACHE_DIR": "1"}


def _timed(command: str, folder: Path, environment: dict[str, str]) -> tuple[float, str]:
    print(f"$ {command}", file=sys.stderr)
    start = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{command}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return time.monotonic() - start, done.stdout


def main() -> None:
    """Walk, and print the table."""
    print(f"{cores()} cores of {processor()}, Python {platform.python_version()}, no package and no kernel kept\n")
    print("| command | seconds | since the clone began | reached |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        total = 0.0
        for command, seconds, reached in walk(Path(folder)):
            total += seconds
            print(f"| `{command}` | {seconds:.0f} | {total:.0f} | {reached} |", flush=True)


if __name__ == "__main__":
    main()
