"""The server's folder of a split file: written once, and read strictly, since it comes from somebody else's machine."""

import csv
import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client.sources.item_features import read_item_features
from client.sources.loading import read_items
from client.sources.ranking_labels import RankingAs
from client.sources.reading import SourceError
from client.table_file import parse_asked
from protocol import strict
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.study import MOST
from protocol.trust import Trust
from studies.federate.facts import Facts, Terms
from studies.fit.request import WAYS
from studies.terminal import printable

FACTS, DESIGN, ROWS, GROUPS, TIES = "server.toml", "design.npy", "rows.npy", "groups.npy", "ties.npy"
ITEMS, FEATURES = "items.csv", "features.csv"
UNITS = (Unit.LABEL, Unit.LABELER)


def write_facts(folder: Path, facts: Facts) -> None:
    """Write a new folder: pairs, rows, groups and ties as .npy, items and their features as CSV, the rest as TOML."""
    folder.mkdir(mode=0o700, parents=True)
    arrays: tuple[tuple[str, NDArray[Any] | None], ...]
    arrays = (DESIGN, facts.pairs), (ROWS, facts.rows), (GROUPS, facts.groups), (TIES, facts.ties)
    for name, array in arrays:
        if array is not None:
            np.save(folder / name, array, allow_pickle=False)
    write_items(folder, facts.items, facts.feature_names, facts.features)
    asked = "" if facts.terms.asked is None else f"ranking_as = {json.dumps(str(facts.terms.asked))}\n"
    with open_private(folder / FACTS) as file:
        file.write(f"""\
# What the nodes of this split answer to, and what a server is told of their labels. All of it is public.
[split]
trust = {json.dumps(facts.terms.trust.label)}
unit = {json.dumps(facts.terms.unit.label)}
cap = {facts.terms.cap}
ties_public = {json.dumps(facts.terms.ties_public)}
nodes = {facts.nodes}
labelers = {len(facts.labelers)}
labels = {facts.label_count}
whose = "{facts.whose.hex()}"
{asked}""")


def write_items(folder: Path, items: Sequence[str], names: Sequence[str], features: NDArray[np.float64] | None) -> None:
    """The public list of items, and where items are described the numbers that do so, digit for digit."""
    write_csv(folder / ITEMS, ("item",), [(item,) for item in items])
    if features is not None:
        numbers = ((item, *map(repr, row)) for item, row in zip(items, features.tolist(), strict=True))
        write_csv(folder / FEATURES, ("id", *names), numbers)


def write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """A new file of records that only its owner reads."""
    with open_private(path) as file:
        # Quoted all: before Python 3.13 a lone carriage return in a name would end the line.
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(header)
        writer.writerows(lines)


def open_private(path: Path) -> Any:
    """A new file that only its owner reads."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(handle, "w", encoding="utf-8", newline="")


def read_facts_file(folder: Path) -> dict[str, Any]:
    """The tables of the TOML file of a server's folder. Raises StudyError that names it."""
    try:
        with (folder / FACTS).open("rb") as file:
            return tomllib.load(file, parse_float=Decimal)
    except OSError as error:
        raise StudyError(
            f"{folder / FACTS}: expected the server's folder of a split file, {strict.unopened(error)}: "
            "make one with halftruth data split"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{folder / FACTS}: expected TOML, {error}") from None


def read_facts(folder: Path) -> Facts:
    """The facts of a folder. Raises StudyError that names the file, what was expected and what was got."""
    content = read_facts_file(folder)
    try:
        return _read(folder, content)
    except SourceError as error:
        raise StudyError(printable(str(error))) from None
    except ValueError as error:
        raise StudyError(f"{folder}: {error}") from None


def _read(folder: Path, content: dict[str, Any]) -> Facts:
    keys = ("trust", "unit", "cap", "ties_public", "nodes", "labelers", "labels", "whose")
    split = strict.table(content, "top level", ("split",), ("split",))["split"]
    top = strict.table(split, "split", (*keys, "ranking_as"), keys)
    terms = Terms(
        trust=Trust.parse(strict.text(top["trust"], "[split] trust", [trust.label for trust in WAYS])),
        unit=next(u for u in UNITS if u.label == strict.text(top["unit"], "[split] unit", [u.label for u in UNITS])),
        cap=strict.integer(top["cap"], "[split] cap", 0, MOST),
        ties_public=strict.boolean(top["ties_public"], "[split] ties_public"),
        asked=parse_asked(top["ranking_as"], "[split] ranking_as") if "ranking_as" in top else None,
    )
    items, features, names = _items(folder)
    pairs = _array(folder / DESIGN, "int32", 2)
    facts = Facts(
        terms=terms,
        nodes=strict.integer(top["nodes"], "[split] nodes", 1, MOST),
        labelers=range(strict.integer(top["labelers"], "[split] labelers", 1, MOST)),
        label_count=strict.integer(top["labels"], "[split] labels", 1, MOST),
        whose=bytes.fromhex(strict.text(top["whose"], "[split] whose")),
        items=items,
        pairs=pairs,
        rows=_array(folder / ROWS, "int64", 1),
        groups=_array(folder / GROUPS, "int32", 1, len(pairs)) if terms.unit is Unit.LABELER else None,
        ties=_array(folder / TIES, "bool", 1, len(pairs)) if (folder / TIES).exists() else None,
        features=features,
        feature_names=names,
    )
    _check(facts)
    return facts


def _items(folder: Path) -> tuple[tuple[str, ...], NDArray[np.float64] | None, tuple[str, ...]]:
    items = read_items(folder / ITEMS)
    if not (folder / FEATURES).exists():
        return items, None, ()
    found = read_item_features(folder / FEATURES)
    return items, found.of(items), found.columns


def _array(path: Path, dtype: str, axes: int, length: int | None = None) -> NDArray[Any]:
    try:
        found = np.load(path, allow_pickle=False)
    except OSError as error:
        raise StudyError(f"{path.name}: expected an array, {strict.unopened(error)}") from None
    except (ValueError, EOFError):
        raise StudyError(f"{path.name}: expected an .npy file, got another") from None
    if not isinstance(found, np.ndarray) or found.dtype != dtype or found.ndim != axes or not len(found):
        raise StudyError(f"{path.name}: expected an array of {dtype} with {axes} axes")
    if length is not None and len(found) != length:
        raise StudyError(f"{path.name}: expected {length} numbers, one for each pair of {DESIGN}, got {len(found)}")
    return found


def _check(facts: Facts) -> None:
    rows, last = facts.rows, len(facts.items) - 1
    if (
        facts.pairs.min() < -(facts.terms.asked == RankingAs()) or facts.pairs.max() > last
    ):  # before features are looked up
        raise StudyError(f"{DESIGN}: expected item numbers in 0..{last}")
    assert facts.problem.design is not None  # which checks the pairs
    if rows[0] < 0 or rows[-1] >= len(facts.pairs) or (np.diff(rows) <= 0).any():
        raise StudyError(f"{ROWS}: expected increasing row numbers below {len(facts.pairs)}")
    if (facts.terms.cap > 0) != (facts.terms.unit is Unit.LABELER):
        raise StudyError("[split] cap: expected one > 0 exactly for the unit labeler")
