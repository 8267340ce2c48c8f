"""A policy study's file: a contextual bandit, policies, and the grid and arms of an ordinary study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from protocol import strict
from protocol.decimals import decimal
from protocol.strict import StudyError
from server.policies import GREEDY, PESSIMISTIC
from studies.load import expect, tables

SHOWN = ("uniform", "rarely-best", "mostly-best")
REFERENCES = ("shown", "even", "zero")
BANDIT_KEYS = ("worlds", "states", "actions", "dimension", "length", "theta", "bound", "shown", "rare")
POLICY_KEYS = ("names", "level", "reference")


@dataclass(frozen=True, eq=False)
class Law:
    """The law that bandits are drawn from: `worlds` of them, each with features of norm `length` in all directions.

    `shown` names who chose the pairs: "uniform" every pair alike; "rarely-best" only pairs without the best action,
    "mostly-best" only the two best actions, but in a share `rare` of the rows, which are uniform.
    """

    worlds: int
    states: int
    actions: int
    dimension: int
    length: float
    shown: tuple[str, ...]
    rare: float


@dataclass(frozen=True, eq=False)
class PolicyStudy:
    """A policy study: the bandits' `law`, the `policies` with the confidence `level` and the `reference` of their
    regions; `theta` as plain numbers for `studies.truth`, and the tables `content` of an ordinary study.
    """

    name: str
    seed: int
    law: Law
    theta: Any = field(repr=False)
    bound: Decimal
    policies: tuple[str, ...]
    level: float
    reference: str
    content: Mapping[str, Any]

    @property
    def most_rows(self) -> int:
        """The largest n of the grid."""
        return max(int(n) for n in self.content["grid"]["n"])


def load_policy_study(path: Path, overrides: Sequence[str] = ()) -> PolicyStudy:
    """Read a policy study's file, with `table.key=value` overrides. docs/POLICIES.md has the keys.

    Raises StudyError naming the place, what was expected and what was got. The grid and the arms are read with the
    first world: see `studies.policy.worlds`.
    """
    parts = ("study", "bandit", "policy", "grid", "arm")
    content = tables(path, overrides)
    expect(content, path, "policy")
    top = strict.table(content, "top level", parts, parts)
    head = strict.table(top["study"], "study", ("name", "seed", "repetitions"), ("name", "seed", "repetitions"))
    bandit = strict.table(top["bandit"], "bandit", BANDIT_KEYS, [key for key in BANDIT_KEYS if key != "rare"])
    policy = strict.table(top["policy"], "policy", POLICY_KEYS, ("names",))
    names = strict.sequence(policy["names"], "[policy] names")
    _check_counts(top["grid"])
    return PolicyStudy(
        name=strict.text(head["name"], "[study] name"),
        seed=strict.integer(head["seed"], "[study] seed", 0, (1 << 128) - 1),
        law=_law(bandit),
        theta=bandit["theta"],
        bound=_number(bandit["bound"], "[bandit] bound"),
        policies=tuple(strict.text(name, "[policy] names", [*GREEDY, *PESSIMISTIC]) for name in names),
        level=_share(policy.get("level", Decimal("0.95")), "[policy] level"),
        reference=strict.text(policy.get("reference", "shown"), "[policy] reference", REFERENCES),
        content={"study": head, "grid": top["grid"], "arm": top["arm"]},
    )


def _law(bandit: Mapping[str, Any]) -> Law:
    shown = tuple(
        strict.text(name, "[bandit] shown", SHOWN) for name in strict.sequence(bandit["shown"], "[bandit] shown")
    )
    if shown != ("uniform",) and "rare" not in bandit:
        raise StudyError(f"[bandit] expected the key 'rare' for shown = {list(shown)}")
    actions = strict.integer(bandit["actions"], "[bandit] actions", 2, 1 << 10)
    if actions < 3 and "rarely-best" in shown:
        raise StudyError('[bandit] actions: expected at least 3 where shown has "rarely-best", got 2')
    length = _number(bandit["length"], "[bandit] length")
    if not length > 0:
        raise StudyError(f"[bandit] length: expected a number > 0, got {length}")
    return Law(
        worlds=strict.integer(bandit["worlds"], "[bandit] worlds", 1, 1000),
        states=strict.integer(bandit["states"], "[bandit] states", 1, 1 << 10),
        actions=actions,
        dimension=strict.integer(bandit["dimension"], "[bandit] dimension", 1, 1 << 10),
        length=float(length),
        shown=shown,
        rare=_share(bandit.get("rare", Decimal("0.5")), "[bandit] rare"),
    )


def _number(value: Any, place: str) -> Decimal:
    if isinstance(value, str):
        raise StudyError(f"{place}: expected a number, got {value!r}")
    try:
        return decimal(value, place)
    except ValueError as error:
        raise StudyError(str(error)) from None


def _share(value: Any, place: str) -> float:
    share = float(_number(value, place))
    if not 0.0 < share < 1.0:
        raise StudyError(f"{place}: expected a number between 0 and 1, got {value}")
    return share


def _check_counts(grid: Any) -> None:
    """The grid's n, which says how many pairs are drawn, before the rest of the grid is read."""
    for value in strict.sequence(strict.table(grid, "grid", ("n", "epsilon", "delta"), ("n",))["n"], "[grid] n"):
        strict.integer(value, "[grid] n", 1, 1 << 24)
