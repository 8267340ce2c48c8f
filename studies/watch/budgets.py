"""What nodes on this machine have left of their budgets: from their own ledgers, under their own policies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from client.ledger_store import LedgerUnavailable
from client.ledger_view import Spent, is_label_ledger, read_entries, read_labelers
from client.node_file import NodeFileError, read_node
from client.policy import Policy
from protocol.counting import counted
from protocol.decimals import canonical
from protocol.strict import StudyError
from studies.ledger_words import names_of

NODE_FILE = "node.toml"


@dataclass(frozen=True)
class Left:
    """The total that comes nearest to its cap: `spent` by one of `whose`, of at most `cap`; None is no bound.

    `used_up` counts labelers or holders of whom at least one total has reached the cap. The others of the node have at
    least cap - spent left.
    """

    whose: str
    total: str
    spent: Decimal
    cap: Decimal | None
    used_up: int

    @property
    def left(self) -> Decimal | None:
        """What is left of the cap, 0 where a cap was lowered below what had been spent."""
        return None if self.cap is None else max(Decimal(0), self.cap - self.spent)


@dataclass(frozen=True)
class Budget:
    """A node: what it answered, what is left, and in words why nothing can be said."""

    node: str
    tasks: int = 0
    owners: str = ""
    lefts: tuple[Left, ...] = ()
    note: str = ""


@dataclass
class Budgets:
    """Looks at ledgers again and again, and reads one where it has changed."""

    places: Sequence[tuple[str, Path | None, Policy | None]]
    _read: dict[Path, tuple[int, Budget]] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Sequence[Path]) -> "Budgets":
        """Of node files, of folders with node files in them or in their folders, or of ledgers.

        Raises StudyError for what is none of these.
        """
        return cls([place for path in paths for place in _places(path)])

    def look(self) -> list[Budget]:
        """All of them as they are."""
        return [self._of(*place) for place in self.places]

    def _of(self, name: str, ledger: Path | None, policy: Policy | None) -> Budget:
        if ledger is None:
            return Budget(name, note="made-up labels, which have no budget")
        try:
            stamp = ledger.stat().st_mtime_ns
        except OSError:
            return Budget(name, note="no ledger yet: nothing was spent")
        if ledger not in self._read or self._read[ledger][0] != stamp:
            self._read[ledger] = stamp, _budget(name, ledger, policy)
        return self._read[ledger][1]


def budgets_as_json(budgets: Sequence[Budget]) -> list[dict[str, Any]]:
    """The same as plain JSON values; decimals are text, and no bound is None."""
    return [
        {
            "node": one.node,
            "tasks": one.tasks,
            "owners": one.owners,
            "note": one.note,
            "left": [
                {
                    "whose": each.whose,
                    "total": each.total,
                    "spent": canonical(each.spent),
                    "cap": None if each.cap is None else canonical(each.cap),
                    "left": None if each.left is None else canonical(each.left),
                    "used_up": each.used_up,
                }
                for each in one.lefts
            ],
        }
        for one in budgets
    ]


def _places(path: Path) -> list[tuple[str, Path | None, Policy | None]]:
    if path.is_dir():
        files = sorted({*path.glob(NODE_FILE), *path.glob(f"*/{NODE_FILE}")})
        if not files:
            raise StudyError(f"--budgets: expected {NODE_FILE} in {path} or in its folders, found none")
        return [_of_node(file) for file in files]
    if not path.is_file():
        raise StudyError(f"--budgets: expected a node file, a folder of nodes or a ledger, found no file {path}")
    return [(path.name, path, None)] if is_label_ledger(path) else [_of_node(path)]


def _of_node(file: Path) -> tuple[str, Path | None, Policy | None]:
    try:
        node = read_node(file)
    except NodeFileError as error:
        raise StudyError(f"--budgets: {error}") from None
    return file.resolve().parent.name, node.ledger, node.policy


def _budget(name: str, ledger: Path, policy: Policy | None) -> Budget:
    try:
        entries, spent = read_entries(ledger), read_labelers(ledger)
    except LedgerUnavailable as error:
        return Budget(name, note=f"cannot be read now: {error}")
    item, owner = names_of(entry.unit for entry in entries)
    lefts = [] if policy is None else _lefts(spent, policy, item, owner)
    if not lefts:  # nothing is bounded, or nobody says how
        lefts = _lefts(spent, Policy(), item, owner, bounded=False)
    note = "" if policy is not None else "a ledger alone does not say what its caps are: name the node file"
    return Budget(name, len(entries), counted(len(spent), owner, ","), tuple(lefts), note)


def _lefts(spent: Sequence[Spent], policy: Policy, item: str | None, owner: str, bounded: bool = True) -> list[Left]:
    """Totals under their caps; where nothing is `bounded`, the epsilon of one label."""
    totals = [
        (item or owner, "ε", policy.label_cap, [one.most for one in spent]),
        (item or owner, "δ", policy.delta_cap, [one.most_delta for one in spent]),
        (owner, "ε", policy.labeler_cap, [one.epsilon for one in spent]),
        (owner, "δ", policy.labeler_delta_cap, [one.delta for one in spent]),
    ]
    shown = [total for total in totals if total[2] is not None] if bounded else totals[:1]
    return [
        Left(whose, total, max(values, default=Decimal(0)), cap, 0 if cap is None else sum(v >= cap for v in values))
        for whose, total, cap, values in shown
    ]
