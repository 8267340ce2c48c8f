"""Commands in the guides are commands, and do what a reader expects: each is run, here or where a table says."""

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.cli import main, parsed

ROOT = Path(__file__).parents[1]
NOT_A_WORD = re.compile(r" 2?> ?\S+| \[.*\]| &(?= |$)|\s{3,}.*$")  # where output goes, what may be left out, a caption
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
HALFTRUTH = re.compile(r"^[!$ ]*(?:\.venv/bin/)?halftruth (.*)$")


def _commands(text: str) -> Iterator[str]:
    for block in re.findall(r"(?s)```[^\n]*\n(.*?)```", text):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            for part in re.split(r" && | \|\|? ", line):
                if found := HALFTRUTH.match(part):
                    yield found[1]


def _words(command: str) -> list[str]:
    return shlex.split(NOT_A_WORD.sub("", command), comments=True)


COMMANDS = [
    pytest.param(command, id=f"{page.stem}: {command}"[:100])
    for page in PAGES
    for command in dict.fromkeys(_commands(page.read_text("utf-8")))
]
DISTINCT = sorted({shlex.join(_words(command)) for page in PAGES for command in _commands(page.read_text("utf-8"))})

FIGURE = "run studies/toml/figure1.toml --out out/figure1"
SPLIT = "data split comparisons.csv --nodes 3 --out nodes"
MEMBERS = "data split comparisons.csv --nodes 5 --out nodes --trust distributed"
RECORDS = "data split losses.csv --records --columns loss --id claim --trust central --nodes 3 --out nodes"
# What has to be there: commands that are run before, the first pattern counts.
BEFORE = {
    r"report .*sphere": (FIGURE, "run studies/toml/figure1.toml --out out/sphere --set problem.features=sphere"),
    r"report out/quick": ("run studies/toml/quick.toml --out out/quick",),
    r"report out/between-": ("run studies/toml/between-records.toml --out out/between-records",),
    r"report out/between": ("run studies/toml/between.toml --out out/between",),
    r"(report|export) out": (FIGURE,),
    r"fit .*--features vectors": ("data embed pairs.jsonl --prompt prompt --out vectors.parquet",),
    r"ledger show nodes": (SPLIT, "federate nodes/server --nodes nodes --on in-process --epsilon 1"),
    r"ledger show": ("fit votes.csv --trust local --epsilon 4 --state ledgers",),
    r"federate nodes.*--tail": (RECORDS,),
    r"federate nodes.*--out ranking": (MEMBERS,),
    r"watch ranking": (MEMBERS, "federate nodes/server --nodes nodes --on in-process --epsilon 1 --out ranking"),
    r"federate nodes": (SPLIT,),
    r"audit transcript": (SPLIT, "federate nodes/server --nodes nodes --epsilon 1 --transcript kept"),
}
# What is long is made small; the first pattern counts.
SMALL = {
    r"run studies/toml/(heavy-|panel)": "--set study.repetitions=2 --jobs 1",
    r"run studies/toml/between": "--set study.repetitions=2 --set grid.n=[1000] --set grid.epsilon=[1.0] --jobs 1",
    r"run STUDY": "--set study.repetitions=1 --set grid.n=[10000]",
    r"run \S*(figure1|planning|distributed)\.toml(?!.*deployment)": (
        "--set study.repetitions=2 --set grid.n=[200] --jobs 1"
    ),
    r"attack ": "--set study.repetitions=1 --set attack.fractions=[0,0.2] --set grid.epsilon=[1.0]",
    r"policy ": "--set bandit.worlds=1 --set study.repetitions=1 --set grid.n=[300]",
    r"audit(?! transcript)": "--draws 300",
    r"bench labels": "--small --runs 1",
    r"real ": "--seeds 2",
}
# Nothing that ends by itself, or nothing that one machine has: which tests run it, or why nobody does.
ELSEWHERE = {
    r"(up|status|down)\b|run .*--federation|federate nodes/server --federation": (
        "tests/flower_processes/test_flower_guides.py"
    ),
    r"server |node (--config|--labels)|keys register|keys list|run study.toml|federate server .*--federation": (
        "tests/flower_processes/test_flower_guides.py"
    ),
    r"federate server --superlink": "tests/flower_processes/test_flower_connection.py",
    r"shuffler --config": "tests/deploy/test_shuffler_process.py",
    r"label ": "tests/browser/test_label_in_browser.py",
    r"export .* --for mlflow": "tests/studies/export/test_trackers.py",
    r"bench .*--(scaling|round)|bench --out": "many minutes: its figures are run in small by tests/studies/bench",
    r"bench( --small)?$": "tests/studies/bench/test_bench_command.py",
    r"real FOLDER$": "an hour; one of its studies is run here",
    r"real .*--study": "tests/studies/test_real.py",
    r"audit( --json)?$|audit node/": "minutes for all subjects: tests/studies/audit runs each",
    r".*\$group": "a line of a loop in a shell: the same as keys new",
}
# Those that take a second; the rest is for `make check-slow`.
QUICK = (
    r"data (check|split)|doctor|export .*tensorboard|fit votes.*4$|keys new \w|keys seal|ledger show l|plan --l|"
    r"account study|node --show|certs c"
)
TUTORIAL = ROOT / "docs/site/tutorials/1-figure.md"
NAMES = {
    "$HALFTRUTH_CERTS": "certs",
    "$HALFTRUTH_HOST": "localhost",
    "PATH": "ledgers/ledger.sqlite",
    "a/.halftruth/health.sqlite": "ledgers/ledger.sqlite",
    "STUDY": "studies/toml/quick.toml",
    "OUT": "out/some",
    "FOLDER": "data",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_guide_is_one(command: str) -> None:
    try:
        parsed(_words(command))
    except SystemExit as ended:
        if ended.code:  # --help and --version end with 0
            pytest.fail(f"halftruth {command}")


def test_there_are_many_and_tables_are_about_them() -> None:
    assert len(COMMANDS) > 100
    idle = [pattern for pattern in (*SMALL, *ELSEWHERE) if not any(re.match(pattern, one) for one in DISTINCT)]
    assert not idle, "these say something about no command of a guide"


@pytest.mark.parametrize("where", [text.partition(":")[0] for text in ELSEWHERE.values() if text.startswith("tests/")])
def test_what_runs_elsewhere_does(where: str) -> None:
    assert (ROOT / where).is_file() and "def test_" in (ROOT / where).read_text("utf-8")


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that guides name: files, studies, results."""
    folder, coins = tmp_path_factory.mktemp("desk"), np.random.default_rng(5)
    (folder / "studies").symlink_to(ROOT / "studies")
    drinks = ["tea", "coffee", "water", "juice", "milk"]
    rows = [(f"p{place % 40}", *sorted(coins.choice(5, 2, replace=False))) for place in range(400)]
    lines = [f"{who},{drinks[a]},{drinks[b]},{drinks[a if coins.random() < 0.75 else b]}" for who, a, b in rows]
    for name in ("votes.csv", "comparisons.csv", "benchmark.csv"):
        (folder / name).write_text("\n".join(["labeler,item_a,item_b,winner", *lines]) + "\n")
    asked = [f"{who},{drinks[a]},{drinks[b]}," for who, a, b in rows]
    (folder / "pairs.csv").write_text("\n".join(["labeler,item_a,item_b,winner", *asked]) + "\n")
    losses = [f"c{place},i{place % 8},{value:.4f}" for place, value in enumerate(coins.pareto(1.7, 400) + 1)]
    (folder / "losses.csv").write_text("\n".join(["claim,insurer,loss", *losses]) + "\n")
    pairs = [
        {
            "labeler": who,
            "prompt": f"why {a}?",
            "chosen": f"since {drinks[a]} {a}{b}",
            "rejected": f"for {drinks[b]} {a}{b}",
        }
        for who, a, b in rows
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    block = re.search(r"(?s)```python\n(EPSILON.*?)```", (ROOT / "docs/AUDIT.md").read_text("utf-8"))
    assert block is not None
    (folder / "own.py").write_text(block[1])
    cell = re.search(r'(?s)Path\("small.toml"\).write_text\("""(.*?)"""\)', TUTORIAL.read_text("utf-8"))
    assert cell is not None
    (folder / "small.toml").write_text(cell[1])
    (folder / "study.toml").write_text((ROOT / "studies/toml/heavy-mean.toml").read_text("utf-8"))
    return folder


def test_the_readme_says_all_that_a_newcomer_types() -> None:
    """`make newcomer` types nothing that README.md doesn't print."""
    steps = re.findall(r'Step\(\s*f?"([^"]+)"', (ROOT / "tests/newcomer.py").read_text("utf-8"))
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(steps) == 8 and not [one for one in steps if one.replace("{FILE}", "comparisons.csv") not in readme]


def _first(table: dict[str, Any], command: str, usual: Any) -> Any:
    return next((found for pattern, found in table.items() if re.match(pattern, command)), usual)


def _run(command: str) -> tuple[int, str]:
    """Exit code and output of a command, in this process; it is made small where it is long."""
    said = io.StringIO()
    words = [*shlex.split(command), *shlex.split(_first(SMALL, command, ""))]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main([NAMES.get(word, word) for word in words])
    return code, f"halftruth {shlex.join(words)}\n{said.getvalue()}"


@pytest.fixture
def here(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the desk, where commands run, and no other."""
    for path in desk.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(one, marks=() if re.match(QUICK, one) else pytest.mark.slow)
        for one in DISTINCT
        if not any(re.match(pattern, one) for pattern in ELSEWHERE)
    ],
)
def test_a_command_of_a_guide_does_what_it_says(command: str, here: Path, request: pytest.FixtureRequest) -> None:
    if "FOLDER" in command:
        (here / "data").symlink_to(request.getfixturevalue("shared_data"))
    for before in _first(BEFORE, command, ()):
        code, said = _run(before)
        assert code == 0, said
    code, said = _run(command)
    assert code == (1 if "own.py" in command else 0), said  # the guide's own.py claims too little
