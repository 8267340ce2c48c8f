"""The project's pages tell the truth: what they name exists, and what they quote is what the code says."""

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from protocol.arms import CHOICE_ESTIMATORS, ESTIMATORS, LINK_ESTIMATORS, MECHANISMS
from protocol.laws import LAWS
from protocol.numeric import NUMERIC
from protocol.record_arms import RECORD_ESTIMATORS, RECORD_MECHANISMS, RECORD_OPTIONS
from protocol.record_law import KEYS
from protocol.study import describe
from protocol.trust import SIGHT
from protocol.warned import WARNINGS
from server.mechanisms import CENTRAL
from studies.load import load
from studies.results import SCHEMA

ROOT = Path(__file__).resolve().parents[1]
GUIDES = (
    "ARCHITECTURE",
    "ATTACKS",
    "AUDIT",
    "BENCHMARKS",
    "BETWEEN",
    "CHOICES",
    "DATA",
    "DEFAULTS",
    "DEPLOYMENT",
    "ECOSYSTEM",
    "ESTIMATORS",
    "FAULTS",
    "GLOSSARY",
    "HEAVY_DEFAULTS",
    "HEAVY_TAILS",
    "LABELING",
    "PERSONAL_BUDGETS",
    "PLANNING",
    "POLICIES",
    "PRIVACY",
    "RANKINGS",
    "REAL_HEAVY",
    "REPORTS",
    "RECORDS",
    "REAL_STUDIES",
    "RUNTIMES",
    "SCALE",
    "SECURE",
    "SHUFFLING",
    "STUDIES",
)
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{name}.md" for name in GUIDES))
PLACES = "client|protocol|server|studies"


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def prose(name: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"(?s)```.*?```", "", page(name))


def quoted(name: str) -> list[str]:
    """What stands in single backticks."""
    return re.findall(r"`([^`\n]+)`", prose(name))


def resolve(reference: str) -> Any:
    """What `package.module:name.attribute` is; raises where a part is missing."""
    module, _, name = reference.partition(":")
    found = importlib.import_module(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_code_that_a_page_names_exists(name: str) -> None:
    for reference in quoted(name):
        if re.fullmatch(rf"({PLACES})(\.\w+)+(:\w+(\.\w+)*)?", reference) and not reference.endswith(".py"):
            resolve(reference)


@pytest.mark.parametrize("name", PAGES)
def test_files_that_a_page_names_exist(name: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", prose(name)) if "://" not in link]
    paths = [(ROOT / name).parent / link for link in links]
    paths += [ROOT / text for text in quoted(name) if re.fullmatch(rf"({PLACES}|tests|docs)/[\w./-]*", text)]
    assert not [path for path in paths if not path.exists()]


@pytest.mark.parametrize("name", PAGES)
def test_targets_of_make_that_a_page_names_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), flags=re.MULTILINE))
    assert set(re.findall(r"(?m)(?:^|`)make ([a-z-]+)", page(name))) <= targets


@pytest.mark.parametrize("name", ["README.md", "docs/ARCHITECTURE.md"])
def test_who_sees_what_is_the_table_of_the_code(name: str) -> None:
    rows = [f"| {trust.label} | {s.wire} | {s.server} | {s.published} |" for trust, s in SIGHT.items()]
    assert "\n".join(["|---|---|---|---|", *rows, ""]) in page(name)


def test_the_round_loop_is_printed_verbatim() -> None:
    source = inspect.getsource(resolve("server.rounds:play"))
    assert f"```python\n{source}```" in page("docs/ARCHITECTURE.md")


def test_every_key_of_a_study_and_every_column_of_its_results_is_explained() -> None:
    described = [describe(load(ROOT / f"studies/toml/{name}.toml").study) for name in ("quick", "choices")]
    keys = {key for one in described for table in ("study", "problem", "grid") for key in one[table]}
    known = [*ESTIMATORS.items(), *CHOICE_ESTIMATORS.items(), *LINK_ESTIMATORS.items()]
    arms = {name for (_, name), knows in known for name in (name, *knows.options)} | {
        name for names in MECHANISMS.values() for name in names
    } - {"none"}
    assert keys | arms | set(CENTRAL) | set(SCHEMA.names) | {"theta"} <= set(quoted("docs/STUDIES.md"))


def test_every_warning_is_explained() -> None:
    rows = [f"| `{code}` | {meaning} |" for code, meaning in WARNINGS.items()]
    assert "\n".join(["|---|---|", *rows, ""]) in page("docs/STUDIES.md")


def test_everything_that_an_arm_about_records_can_say_is_explained() -> None:
    said = {name for (_, name), knows in RECORD_ESTIMATORS.items() for name in (name, *knows.options)}
    said |= {name for rule in RECORD_OPTIONS.values() for name in rule.words} | set(RECORD_OPTIONS) | set(NUMERIC)
    said |= {name for names in RECORD_MECHANISMS.values() for name in names} - {"none"}
    words = {word.strip('"') for word in quoted("docs/RECORDS.md")}
    assert said | set(KEYS) <= words, sorted((said | set(KEYS)) - words)
    assert set(LAWS) <= {word.partition("(")[0] for word in words}


def test_every_fault_seen_elsewhere_has_a_source_and_tests_that_exist() -> None:
    rows = [line.split(" | ") for line in page("docs/FAULTS.md").splitlines() if line.startswith("| **")]
    assert len(rows) == 30 and all(len(row) == 3 for row in rows)
    for seen, _, tests in rows:
        assert re.search(r"[\w-]+#\d+", seen), seen
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
        assert named and len(named) == tests.count("`") // 2, seen
        lost = [name for file, name in named if not re.search(rf"(?m)^def {name}\(", page(file))]
        assert not lost, lost


def test_pages_stay_short() -> None:
    assert len(page("docs/ARCHITECTURE.md").splitlines()) <= 150
    assert len(page("CONTRIBUTING.md").splitlines()) <= 60


def test_the_lock_serves_every_requirement_and_names_no_host() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    lock = page("requirements.lock")
    pins = {name: Version(version) for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, flags=re.MULTILINE)}
    asked = project["dependencies"] + project["optional-dependencies"]["dev"]
    unmet = [text for text in asked if (need := Requirement(text)) and pins[need.name] not in need.specifier]
    assert not unmet
    assert "://" not in lock


def test_no_file_names_a_path_of_one_machine() -> None:
    folders = (*PLACES.split("|"), "tests", "docs", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
    texts = [
        path for path in files if path.suffix in {".py", ".md", ".toml", ".proto"} or path.name in {"run", "Makefile"}
    ]
    machine = re.compile(r"/(home|root|Users|work)/\w")
    assert not [path.name for path in texts if path.is_file() and machine.search(path.read_text("utf-8"))]
