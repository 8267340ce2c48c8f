"""What is audited: a claim, inputs that are neighbours, and how outputs of them come about."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.audit.coins import AuditCoins
from studies.audit.exact import Law

Floats = NDArray[np.float64]
Outputs = Floats | Sequence[Hashable]  # numbers (draws, width), or anything that can be compared
View = Callable[[Hashable], Hashable]
Coins = NDArray[np.bool_]


@dataclass(frozen=True)
class Claim:
    """P(output in S | input) <= e^epsilon P(output in S | neighbour) + delta; neighbours differ in the unit."""

    epsilon: Decimal
    delta: Decimal
    unit: str


@dataclass(frozen=True, eq=False)
class Subject:
    """One mechanism at one claim, `inputs` by name, and the `pairs` of them that are neighbours.

    `draw(input, count, coins)` gives so many independent outputs. `laws` gives, in place of draws, the exact law of an
    output by the input's name, where it is a finite table of integers: by running the sampler on every class of coins.
    `run(count, coins)` gives, in place of both, the coins of so many canaries in one run and a score of each, which is
    high where the coin was probably 1.
    `reals`: the claim is about real numbers, as of mechanisms for simulations: last bits of doubles are rounded off.
    `normal`: noise is Gaussian, so that neighbours are told apart no better than two normal laws: see
    `studies.audit.bound:normal_bound`.
    `views` are what else of an output to compare, by name. `pace`: how many of the usual draws are made, since some are
    slow. `asked`: the level that was asked for. `note` says in a few words what is run.
    """

    name: str
    claim: Claim
    inputs: Mapping[str, Any] = field(repr=False)
    pairs: tuple[tuple[str, str], ...]
    note: str
    draw: Callable[[Any, int, AuditCoins], Outputs] | None = None
    laws: Callable[[], Mapping[str, Law]] | None = None
    run: Callable[[int, AuditCoins], tuple[Coins, Floats]] | None = None
    views: Mapping[str, View] = field(default_factory=dict, repr=False)
    pace: float = 1.0
    reals: bool = False
    normal: bool = False
    asked: Decimal | None = None

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.draw, self.laws, self.run)) != 1:
            raise ValueError(f"{self.name}: expected draws, exact laws or one run, and one of the three")
        unknown = {name for pair in self.pairs for name in pair} - set(self.inputs)
        if unknown or not self.pairs:
            raise ValueError(f"{self.name}: expected pairs of the inputs {sorted(self.inputs)}, got {self.pairs}")


def outputs_of(subject: Subject, name: str, count: int, coins: AuditCoins) -> Outputs:
    """Outputs of an input by its name, without their last bits where the claim is about real numbers."""
    assert subject.draw is not None
    found = subject.draw(subject.inputs[name], count, coins)
    if subject.reals and isinstance(found, np.ndarray):
        return found.astype(np.float32).astype(np.float64)
    return found


def all_pairs(inputs: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Every two inputs, once each: both directions of a pair are tried."""
    names = list(inputs)
    return tuple((one, other) for place, one in enumerate(names) for other in names[place + 1 :])
