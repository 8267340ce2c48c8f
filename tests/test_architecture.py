"""The rules of docs/ARCHITECTURE.md, read off the source: the border, where coins are made, who knows the truth."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from protocol.messages import Task
from protocol.problem import Problem
from protocol.study import Study

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("client", "deploy", "protocol", "server", "studies")
GENERATED = {"protocol/halftruth_pb2.py", "protocol/shuffler_pb2.py"}

# Who may do what. A rule names its files: another file that needs the right is a decision, and is written here.
SYSTEM_COINS = {"client/draws.py", "server/release.py"}
ADDRESSED_COINS = {"protocol/coins.py"}
# What others draw, data to be timed on, the generator of a user's mechanism: nothing is randomised for anybody.
MEASURED_COINS = {"studies/bench/fits.py", "studies/bench/labels.py", "studies/audit/own.py"}
TRUTH = re.compile(r"truth|theta_?star|true_?theta|theta_?true", re.IGNORECASE)
STREAM_NAME = ("protocol/coins.py", "TRUTH")
KEY_LET_THROUGH = ("protocol/runconfig.py", "truth")  # a key of the run's configuration, named once and never looked up
MOST_LINES_OF_A_FUNCTION = 40
MOST_LINES_OF_A_FILE = 300


@cache
def modules() -> dict[str, ast.Module]:
    """Path relative to the root -> syntax tree, of every file written by hand."""
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    names = {path.relative_to(ROOT).as_posix(): path for path in files}
    return {name: ast.parse(path.read_text("utf-8")) for name, path in names.items() if name not in GENERATED}


def imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names of all that a module imports, at any depth: `from os import urandom` gives os.urandom."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.AST) -> str:
    """The dotted text of a name or attribute, numpy's short name written out; "" for anything else."""
    if isinstance(node, ast.Name):
        return "numpy" if node.id == "np" else node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Every name that a module binds, uses or could look up by a string."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=str(name)) | ast.Attribute(attr=str(name)) | ast.arg(arg=str(name)):
                yield name
            case ast.alias(name=str(name)) | ast.keyword(arg=str(name)):
                yield name
            case ast.FunctionDef(name=str(name)) | ast.ClassDef(name=str(name)):
                yield name
            case ast.Constant(value=str(name)) if name.isidentifier():
                yield name


def public_definitions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Public functions, classes and methods with their dotted names."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{prefix}{node.name}.")


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        first = function.body[0]
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def coin_makers(tree: ast.Module) -> set[str]:
    """What a module uses that makes randomness: the system's entropy, or numpy's generators."""
    found = set()
    for name in imported(tree):
        if re.match(r"(secrets|random|uuid|numpy\.random)\b|ssl\.RAND_|os\.(urandom|getrandom)$", name):
            found.add(name)
    for node in ast.walk(tree):
        name = dotted(node)
        if re.match(r"os\.(urandom|getrandom)$|numpy\.random\.|secrets\.|random\.|ssl\.RAND_", name):
            found.add(name)
        if re.search(r"\.(rvs|default_rng|SystemRandom|RandomState)$", name):
            found.add(name)
    return found


def test_the_packages_share_one_parent_folder() -> None:
    parents = {Path(importlib.import_module(package).__file__ or "").parents[1] for package in PACKAGES}
    assert parents == {ROOT}


def test_import_contracts_hold() -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_entropy_is_made_in_two_files() -> None:
    for name, tree in modules().items():
        makers = coin_makers(tree)
        if name in ADDRESSED_COINS:
            assert makers <= {"numpy.random.Philox", "numpy.random.SeedSequence"}, name
        elif name in SYSTEM_COINS:
            assert all(re.match(r"secrets|os\.urandom", maker) for maker in makers), f"{name}: {makers}"
        elif name in MEASURED_COINS:
            seeded = r"numpy\.random\.(Philox|SeedSequence|default_rng)$"
            assert all(re.match(rf"{seeded}|os\.urandom$", maker) for maker in makers), f"{name}: {makers}"
        else:
            assert not makers, f"{name} makes coins: {sorted(makers)}"


def test_an_address_always_names_its_seed() -> None:
    seeds = [
        node
        for node in ast.walk(modules()["protocol/coins.py"])
        if isinstance(node, ast.Call) and dotted(node.func) == "numpy.random.SeedSequence"
    ]
    assert seeds
    assert all(node.args for node in seeds), "SeedSequence() without a seed takes the system's entropy"


def test_the_truth_is_named_in_two_places() -> None:
    for name, tree in modules().items():
        if name.startswith("studies/") or name == "client/sources/synthetic.py":
            continue
        found = {word for word in identifiers(tree) if TRUTH.search(word) and not re.match("halftruth", word, re.I)}
        if name == STREAM_NAME[0]:
            found.discard(STREAM_NAME[1])
        if name == KEY_LET_THROUGH[0]:
            assert list(identifiers(tree)).count(KEY_LET_THROUGH[1]) == 1
            found.discard(KEY_LET_THROUGH[1])
        assert not found, f"{name} names the truth: {sorted(found)}"


def test_no_public_description_holds_a_truth() -> None:
    held = {field.name for holder in (Problem, Study) for field in fields(holder)}
    assert not {name for name in held if name == "theta" or TRUTH.search(name)}
    # A task's theta is the current iterate, which the server made from reports.
    assert not {field.name for field in fields(Task) if TRUTH.search(field.name)}


def test_only_synthetic_labels_know_a_parameter_on_the_client() -> None:
    for name, tree in modules().items():
        if name.startswith("client/") and name != "client/sources/synthetic.py":
            bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
            assert "theta" not in bound, name


def test_the_protocol_stands_on_few_packages() -> None:
    allowed = {"protocol", "numpy", "scipy", "google"} | sys.stdlib_module_names
    for name, tree in modules().items():
        if name.startswith("protocol/"):
            assert {module.split(".")[0] for module in imported(tree)} <= allowed, name


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("flwr", r"(client|server)/app\.py|(deploy(/flower_private|/plugin)?|studies/flower)/\w+\.py"),
        ("ray", r"(deploy(/flower_private)?|studies/flower)/\w+\.py"),
        ("numba", r"client/kernels(_gradients)?\.py|(server|studies)/.*"),
        ("sqlite3", r"(client|server)/.*|deploy/shuffler_store\.py|studies/text/cache\.py"),
        ("grpc", r"(client|server)/shuffler_link\.py|deploy/shuffler\.py"),
        ("pyarrow", r"client/sources/parquet\.py|studies/.*"),
        ("pickle", r"$"),
    ],
)
def test_a_package_is_imported_where_it_belongs(package: str, allowed: str) -> None:
    for name, tree in modules().items():
        if any(module.split(".")[0] == package for module in imported(tree)):
            assert re.fullmatch(allowed, name), f"{name} imports {package}"


def test_every_public_name_has_a_docstring() -> None:
    missing = [name for name, tree in modules().items() if ast.get_docstring(tree) is None]
    for name, tree in modules().items():
        for where, node in public_definitions(tree.body, ""):
            if ast.get_docstring(node) is None:
                missing.append(f"{name}: {where}")
    assert not missing


def test_files_and_functions_stay_short() -> None:
    long = []
    for name, tree in modules().items():
        lines = len((ROOT / name).read_text("utf-8").splitlines())
        if lines > MOST_LINES_OF_A_FILE:
            long.append(f"{name}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and length(node) > MOST_LINES_OF_A_FUNCTION:
                long.append(f"{name}: {node.name} has {length(node)} lines")
    assert not long


@pytest.mark.parametrize(
    "source",
    [
        "import secrets",
        "from os import urandom",
        "import os\nos.urandom(8)",
        "import numpy as np\nnp.random.default_rng()",
        "from numpy.random import default_rng",
        "import random\nrandom.random()",
        "import ssl\nssl.RAND_bytes(8)",
        "from ssl import RAND_bytes",
        "from scipy.stats import norm\nnorm.rvs(3)",
    ],
)
def test_the_entropy_rule_sees_it(source: str) -> None:
    assert coin_makers(ast.parse(source))
