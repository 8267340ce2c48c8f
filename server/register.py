"""The nodes that a server knows: a name, a key, Flower's number, and which rows are theirs; a strict file."""

import re
import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from numpy.typing import NDArray

from protocol import strict
from protocol.strict import StudyError
from server.signatures import KeyUnusable, public_key

KEYS = ("name", "key", "id", "rows", "revoked")
NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
NUMBER = re.compile(r"[1-9][0-9]{0,19}")
ROWS = re.compile(r"(0|[1-9][0-9]{0,15}):([1-9][0-9]{0,15})")
MOST_NODES_ID = (1 << 64) - 1


class RegisterError(ValueError):
    """A register that does not say who is who: names file, node, field, what was expected and what was got."""


@dataclass(frozen=True)
class Known:
    """A node: `rows` are (start, stop) of those that it may answer for, increasing, None for any; `id` is Flower's."""

    name: str
    key: EllipticCurvePublicKey = field(repr=False)
    id: int
    rows: tuple[tuple[int, int], ...] | None = None
    revoked: bool = False

    def holds(self, rows: NDArray[np.int64]) -> bool:
        """Whether all of these rows are the node's."""
        if self.rows is None:
            return True
        edges = np.array(self.rows, dtype=np.int64).reshape(-1, 2)
        place = np.searchsorted(edges[:, 0], rows, side="right") - 1
        return bool((place >= 0).all() and (rows < edges[place, 1]).all())

    @property
    def count(self) -> int | None:
        """How many rows are the node's; None where that is not said."""
        return None if self.rows is None else sum(stop - start for start, stop in self.rows)


@dataclass(frozen=True)
class Register:
    """All nodes that a server knows, those whose keys are revoked among them."""

    nodes: tuple[Known, ...]

    def of(self, node: int) -> Known | None:
        """The node with this number of Flower's; None for a stranger."""
        return self._by_id.get(node)

    def welcome(self, node: int) -> bool:
        """Whether a node is known and its key is not revoked."""
        known = self.of(node)
        return known is not None and not known.revoked

    @cached_property
    def _by_id(self) -> dict[int, Known]:
        return {known.id: known for known in self.nodes}


def read_register(path: Path) -> Register:
    """Read the register's file. Raises RegisterError.

    ```
    [[node]]
    name = "hospital-a"                      # letters, digits, . _ -
    key = "ecdsa-sha2-nistp384 AAAA..."      # OpenSSH, without a comment
    id = "1234567890123456789"               # that Flower gave the key when it was registered
    rows = "0:720, 1440:2160"                # optional: the only rows it answers for, start:stop
    revoked = true                           # optional: known by name, no longer heard
    ```

    A key and an id occur once. Of a name there may be revoked keys beside the one that is heard, so that none of them
    ever comes back under another. No two nodes that are heard have a row in common.
    """
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise RegisterError(f"{path}: expected a register of nodes, {strict.unopened(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RegisterError(f"{path}: expected TOML, {error}") from None
    try:
        return _register(content)
    except (StudyError, KeyUnusable) as error:
        raise RegisterError(f"{path}: {error}") from None


def _register(content: Mapping[str, Any]) -> Register:
    tables = strict.table(content, "top level", ("node",)).get("node", [])
    if not isinstance(tables, list):
        raise StudyError(f"[[node]] expected tables [[node]], got {tables!r}")
    nodes = tuple(_node(table, f"node {number}") for number, table in enumerate(tables, 1))
    heard = [node for node in nodes if not node.revoked]
    _check_once("name", heard, lambda node: node.name)
    _check_once("key", nodes, lambda node: node.key.public_numbers())
    _check_once("id", nodes, lambda node: node.id)
    _check_rows(heard)
    return Register(nodes)


def _check_once(what: str, nodes: Sequence[Known], of: Callable[[Known], Hashable]) -> None:
    """Raise StudyError where two of these nodes have the same."""
    seen: dict[Hashable, str] = {}
    for node in nodes:
        if (value := of(node)) in seen:
            raise StudyError(f"[node {node.name!r}] {what}: expected one of its own, got that of {seen[value]!r}")
        seen[value] = node.name


def _node(content: Any, place: str) -> Known:
    top = strict.table(content, place, KEYS, ("name", "key", "id"))
    name = strict.text(top["name"], f"[{place}] name")
    if not NAME.fullmatch(name):
        raise StudyError(f"[{place}] name: expected 1 to 64 letters, digits, '.', '_', '-', got {name[:80]!r}")
    place = f"node {name!r}"
    number = strict.text(top["id"], f"[{place}] id")
    if not NUMBER.fullmatch(number) or int(number) > MOST_NODES_ID:
        raise StudyError(f"[{place}] id: expected Flower's node id, an integer as a string, got {number[:80]!r}")
    return Known(
        name,
        public_key(strict.text(top["key"], f"[{place}] key"), f"[{place}] key"),
        int(number),
        _rows(strict.text(top["rows"], f"[{place}] rows"), place) if "rows" in top else None,
        strict.boolean(top.get("revoked", False), f"[{place}] revoked"),
    )


def _rows(text: str, place: str) -> tuple[tuple[int, int], ...]:
    spans, last = [], 0
    for part in text.split(","):
        found = ROWS.fullmatch(part.strip())
        start, stop = (int(found[1]), int(found[2])) if found else (0, 0)
        if not last <= start < stop:
            raise StudyError(f"[{place}] rows: expected increasing runs such as '0:720, 1440:2160', got {text[:80]!r}")
        spans.append((start, stop))
        last = stop
    return tuple(spans)


def _check_rows(nodes: Sequence[Known]) -> None:
    """Raise StudyError where two nodes that are heard have a row in common."""
    spans = sorted((start, stop, node.name) for node in nodes for start, stop in node.rows or ())
    for (_, stop, one), (start, _, other) in pairwise(spans):
        if start < stop:
            raise StudyError(f"[node {other!r}] rows: expected rows of its own, got row {start}, which {one!r} has")
