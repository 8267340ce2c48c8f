"""The law of a report about the top choice of a row, for rows of any size: one name, one level, one law a size."""

import hashlib
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np

from protocol.channel import DiscreteChannel
from protocol.decimals import canonical
from protocol.mechanisms.random_pair import random_pair
from protocol.mechanisms.randomized_response import k_randomized_response
from protocol.mechanisms.subset_selection import SubsetChannel, subset_selection
from protocol.messages import Mechanism, Task
from protocol.problem import MOST_CHOICES
from protocol.shuffled_terms import report_mechanism

ONE, SUBSET, PAIR = "k-randomized-response", "subset-selection", "random-pair"
CHOICE_LOCAL = (ONE, SUBSET, PAIR)


@dataclass(frozen=True)
class ChoiceLaw:
    """What the label of a row of K choices goes through, by the name of its mechanism; `sizes` are the K that occur.

    A report is one choice (`k-randomized-response`), a set of choices (`subset-selection`), or which of a public pair
    (`random-pair`, whose pairs are named by `study`).

    Guarantee: `level`-label-LDP for a row of any of the sizes; unit: one label; neighbours: replace one label.
    Raises ValueError for another mechanism. Source: derived, see docs/PRIVACY.md.
    """

    name: str
    epsilon: Decimal
    sizes: tuple[int, ...]
    study: bytes = b""

    def __post_init__(self) -> None:
        if self.name not in CHOICE_LOCAL:
            raise ValueError(f"expected a mechanism for choices out of {CHOICE_LOCAL}, got {self.name!r}")
        if (self.name == PAIR) != bool(self.study):
            raise ValueError(f"expected the study that names the pairs exactly for {PAIR}, got {self.name!r}")

    def table(self, size: int) -> DiscreteChannel:
        """The channel of a row of `size` choices, where a report is a symbol. Raises ValueError for sets."""
        return _table(self.name, self.epsilon, size)

    def subsets(self, size: int) -> SubsetChannel:
        """The channel of a row of `size` choices, where a report is a set. Raises ValueError for symbols."""
        if self.name != SUBSET:
            raise ValueError(f"expected {SUBSET}, got {self.name!r}")
        return _subsets(self.epsilon, size)

    @property
    def outcomes(self) -> int:
        """How many symbols a report can be; of a set, each choice is one of two."""
        return max(self.sizes) if self.name == ONE else 2

    @property
    def symbol_type(self) -> type[np.uint8] | type[np.uint64]:
        """What holds one report: a symbol, or a set as the number with bit k for choice k."""
        return np.uint64 if self.name == SUBSET else np.uint8

    @cached_property
    def level(self) -> Decimal:
        """The largest level over the sizes that occur, rounded up."""
        build = self.subsets if self.name == SUBSET else self.table
        return max(build(size).level for size in self.sizes)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the laws of all sizes up to `MOST_CHOICES`, and of what names the pairs.

        So a label has one answer in a mechanism and level, whatever the sizes of other rows of its task.
        """
        return _digest(self.name, self.epsilon, self.study)


Channel = DiscreteChannel | ChoiceLaw


def choice_law(task: Task, mechanism: Mechanism) -> ChoiceLaw:
    """The law that the labels of a local or shuffled task about choices go through; the same on both sides.

    Raises ValueError for a mechanism that is unknown, or has other parameters than epsilon.
    """
    parameters = dict(report_mechanism(task, mechanism).parameters)
    if set(parameters) != {"epsilon"}:
        raise ValueError(f"expected the parameter epsilon for {mechanism.name}, got {sorted(parameters)}")
    problem = task.problem
    sizes = (problem.choices,) if problem.sizes is None else tuple(np.unique(problem.sizes).tolist())
    return _law(mechanism.name, parameters["epsilon"], sizes, task.study if mechanism.name == PAIR else b"")


@lru_cache(maxsize=256)
def _law(name: str, epsilon: Decimal, sizes: tuple[int, ...], study: bytes) -> ChoiceLaw:
    return ChoiceLaw(name, epsilon, sizes, study)


@lru_cache(maxsize=256)
def _table(name: str, epsilon: Decimal, size: int) -> DiscreteChannel:
    if name == SUBSET:
        raise ValueError(f"expected a mechanism whose reports are symbols, got {name!r}")
    return random_pair(epsilon) if name == PAIR else k_randomized_response(epsilon, size)


@lru_cache(maxsize=256)
def _subsets(epsilon: Decimal, size: int) -> SubsetChannel:
    return subset_selection(epsilon, size)


@lru_cache(maxsize=256)
def _digest(name: str, epsilon: Decimal, study: bytes) -> bytes:
    lines = [f"halftruth choices v1 {name} {canonical(epsilon)} {study.hex()}"]
    for size in range(2, MOST_CHOICES + 1):
        if name == SUBSET:
            law = _subsets(epsilon, size)
            lines.append(f"{law.choices} {law.subset} {law.hit}")
        elif name == ONE:
            kept, other = k_randomized_response(epsilon, size).table[0][:2]
            lines.append(f"{size} {kept} {other}")
    if name == PAIR:
        lines.append(_table(name, epsilon, 2).digest.hex())
    return hashlib.sha256("\n".join(lines).encode()).digest()
