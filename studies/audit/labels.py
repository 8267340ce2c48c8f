"""Mechanisms of one label: their exact laws, by running the border on every class of coins."""

from collections.abc import Mapping
from decimal import Decimal
from functools import partial

import numpy as np

from client.choice_randomizer import randomize_choices
from client.randomizer import randomize
from protocol.channel import DiscreteChannel
from protocol.choice_law import PAIR, SUBSET, ChoiceLaw
from protocol.choice_pairs import BITS
from protocol.coins import Words
from protocol.mechanisms import LOCAL, channel
from protocol.messages import Mechanism, Ties
from protocol.terms import three_way, with_coin
from studies.audit.exact import Axis, Law, enumerated
from studies.audit.given import GivenDraws
from studies.audit.subject import Claim, Subject, all_pairs

UNIT = "label"
CHOICES = 5
TIED = {Ties.NONE: "", Ties.COIN: "+ties", Ties.RANDOMIZED: "+randomized-ties"}
_BORDER = "client.randomizer on all classes of 63-bit coins"


def of_label(name: str, epsilon: Decimal, ties: Ties = Ties.NONE) -> Subject:
    """A mechanism of `protocol.mechanisms`; of five outcomes where it has a number of them, with a tie if asked."""
    needed, _ = LOCAL[name]
    table = channel(name, {"epsilon": epsilon, **({"outcomes": Decimal(CHOICES)} if "outcomes" in needed else {})})
    return of_table(f"label/{name}{TIED[ties]}", epsilon, with_ties(table, name, epsilon, ties))


def with_ties(table: DiscreteChannel, name: str, epsilon: Decimal, ties: Ties) -> DiscreteChannel:
    """The table of a mechanism with what a task says of ties."""
    if ties is Ties.RANDOMIZED:
        return three_way(Mechanism.of(name, epsilon=epsilon))
    return with_coin(table) if ties is Ties.COIN else table


def of_table(name: str, epsilon: Decimal, table: DiscreteChannel) -> Subject:
    """What `client.randomizer` makes of a table, whatever it is."""
    inputs = {f"value {value}": value for value in range(len(table.table))}

    def laws() -> Mapping[str, Law]:
        axis = Axis.cut(coin_cuts(table))
        return {name: enumerated(partial(report_of, table, value), [[axis]]) for name, value in inputs.items()}

    return Subject(name, Claim(epsilon, Decimal(0), UNIT), inputs, all_pairs(inputs), _BORDER, laws=laws)


def of_choice(name: str, epsilon: Decimal) -> Subject:
    """A mechanism of the top one of five choices, by `client.choice_randomizer`."""
    law = ChoiceLaw(name, epsilon, (CHOICES,), b"s" * 32 if name == PAIR else b"")
    inputs = {f"choice {value}": value for value in range(CHOICES)}
    pair = np.array([[1, 3]]) if name == PAIR else None

    def report(value: int, words: Words) -> Words:
        rows = np.arange(len(words))
        values, sizes = np.full(len(words), value, dtype=np.uint8), np.full(len(words), CHOICES, dtype=np.int32)
        pairs = None if pair is None else np.repeat(pair, len(words), axis=0)
        found: Words = randomize_choices(values, law, sizes, pairs, GivenDraws(words), rows).astype(np.uint64)
        return found

    def laws() -> Mapping[str, Law]:
        box = subset_box(law) if name == SUBSET else [Axis.cut(coin_cuts(law.table(CHOICES)))]
        return {name: enumerated(partial(report, value), [box]) for name, value in inputs.items()}

    claim = Claim(epsilon, Decimal(0), UNIT)
    return Subject(
        f"choice/{name}",
        claim,
        inputs,
        all_pairs(inputs),
        _BORDER.replace("r on", "r, client.choice_randomizer on"),
        laws=laws,
    )


def coin_cuts(table: DiscreteChannel) -> set[int]:
    """Words at which the coin meets a threshold of any value, or the border of a threshold's lane."""
    cuts = set()
    for threshold in table.thresholds.ravel().tolist():
        lane = threshold >> 47 << 47
        cuts |= {threshold << 1, lane << 1, (lane + (1 << 47)) << 1}
    return cuts


def report_of(table: DiscreteChannel, value: int, words: Words) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Reports of one value, a coin each."""
    values = np.full(len(words), value, dtype=np.uint8)
    return randomize(values, table, GivenDraws(words), range(len(words)))


def subset_box(law: ChoiceLaw) -> list[Axis]:
    """The coin, and a word a step of the shuffle: floor(u count / 2^56) of its top 56 bits."""
    channel = law.subsets(CHOICES)
    steps = []
    for step in range(channel.subset):
        count = CHOICES - 1 - step
        steps.append(Axis.cut(-(-(place << BITS) // count) << 64 - BITS for place in range(1, count)))
    return [Axis.cut([channel.hit << 1]), *steps]
