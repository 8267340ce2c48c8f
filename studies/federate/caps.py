"""Budgets of nodes as their holder reads them: the file, the field, and the flag of a split that sets it."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from client.node_file import read_node
from client.policy import Policy
from protocol.decimals import canonical
from protocol.messages import Code
from protocol.privacy import Unit
from protocol.strict import StudyError

NAMES = {  # of what a claim protects, over all tasks
    Unit.LABEL: ("label_cap",),
    Unit.LABELER: ("labeler_cap",),
    Unit.RECORD: ("label_cap", "labeler_cap"),
    Unit.HOLDER: ("label_cap",),
}
REFUSED = (Code.BUDGET_EXHAUSTED.name, Code.EPSILON_ABOVE_CAP.name)


def check_caps(unit: Unit, epsilon: Decimal | None, files: Sequence[Path]) -> None:
    """Raise StudyError, before anybody is asked, where a node whose ledger is still to be made cannot pay for a claim.

    One that has a ledger may have answered, and then repeats its answer for nothing.
    """
    for file in files:
        node = read_node(file)
        if node.ledger is not None and node.ledger.exists():
            continue
        for name, most in _bounds(node.policy, unit):
            if epsilon is not None and most is not None and epsilon > most:
                raise StudyError(
                    f"--epsilon: expected at most what nodes allow, got epsilon = {canonical(epsilon)} of a "
                    f"{unit.label}, but {file} has [policy] {name} = {canonical(most)}: {_help(name)}"
                )


def advice(error: str, unit: Unit, files: Sequence[Path]) -> str:
    """What to add to the error of a round in which nodes refused for want of budget; nothing for another one."""
    if not any(name in error for name in REFUSED):
        return ""
    name = NAMES[unit][0]
    if not files:
        return f"\nThe caps are [policy] {name} and max_epsilon of each node's node.toml: {_help(name)}"
    told = {bound: most for file in files for bound, most in _bounds(read_node(file).policy, unit)}
    said = " and ".join(f"{bound} = {'unlimited' if most is None else canonical(most)}" for bound, most in told.items())
    return f"\nThe caps are in [policy] of {files[0]} and its like, {said}: {_help(name)}"


def _bounds(policy: Policy, unit: Unit) -> Iterator[tuple[str, Decimal | None]]:
    for name in (*NAMES[unit], "max_epsilon"):
        yield name, getattr(policy, name)


def _help(name: str) -> str:
    """How a cap is changed; a node file that a split wrote has no max_epsilon, so that the default holds."""
    if name == "max_epsilon":
        return "ask for less, or write a larger one there, on every node"
    flag = name.replace("_", "-")
    return f"ask for less, raise it there on every node, or split again with halftruth data split --{flag}"
