"""How far liars among fifty holders move each aggregator: `python -m studies.attacks.vector_errors`, half a minute.

Every holder reports 1 + noise in ten coordinates. Draws have addresses, the same whatever the attack and whoever
lies, so that all figures of one noise are paired.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from protocol.coins import Address, Floats, Stream, Words, normal, uniform, words
from server.aggregators import AGGREGATORS
from server.aggregators.arithmetic import distances
from server.aggregators.base import Options
from studies.attacks.vectors import VECTOR_ATTACKS, Aim

HOLDERS, DIMENSION, REPETITIONS, SEED = 50, 10, 100, 20260  # the seed was chosen before the first look
LIARS = (5, 12, 20)
MOST_GROUPS = 49
ATTACKS = ("sign-flip", "gross-outlier", "small-shift")
_NOISE, _ORDER = range(2)  # rounds of a repetition's sequences


def _heavy(drawn: Words) -> Floats:
    return np.asarray(stdtrit(1.5, uniform(drawn)), dtype=np.float64)


NOISES: dict[str, Callable[[Words], Floats]] = {
    "normal": normal,
    "student-t(1.5)": _heavy,
    "normal, sd 8": lambda drawn: 8.0 * normal(drawn),
}


@dataclass(frozen=True, eq=False)
class Cell:
    """Errors in l2 norm of every aggregator under one attack, shape (repetitions,) each."""

    noise: str
    attack: str
    liars: int
    errors: dict[str, Floats]


def cells() -> Iterator[Cell]:
    """All cells of the table: for each noise nobody lying, then each attack by each number of liars."""
    for noise in NOISES:
        for attack, liars in [("none", 0), *((attack, liars) for attack in ATTACKS for liars in LIARS)]:
            yield play(noise, attack, liars)


def play(noise: str, attack: str, liars: int, order: NDArray[np.intp] | None = None) -> Cell:
    """The first `liars` of fifty holders lie.

    order: in which order groups are cut from the holders; None: a public random one, another in each repetition.
    """
    found = [_errors(noise, attack, liars, order, repetition) for repetition in range(REPETITIONS)]
    return Cell(noise, attack, liars, {name: np.array([one[name] for one in found]) for name in AGGREGATORS})


def settings(liars: int) -> Options:
    """As many groups, cuts and expected liars as there are liars; centred clipping from the coordinate median."""
    return Options(groups=min(2 * liars + 1, MOST_GROUPS), trim=liars, faulty=liars)


def _errors(noise: str, attack: str, liars: int, order: NDArray[np.intp] | None, repetition: int) -> dict[str, float]:
    truth = np.ones(DIMENSION)
    drawn = words(Address(SEED, Stream.LABELS, HOLDERS, repetition, _NOISE), 0, HOLDERS * DIMENSION)
    said = truth + NOISES[noise](drawn).reshape(HOLDERS, DIMENSION)
    own, honest = said[:liars], said[liars:]
    reports = np.concatenate([VECTOR_ATTACKS[attack](honest, own, Aim(truth)), honest])
    if order is None:
        coins = words(Address(SEED, Stream.MISBEHAVIOUR, HOLDERS, repetition, _ORDER), 0, HOLDERS)
        order = np.argsort(coins, kind="stable")
    reports = reports[order]
    return {
        name: float(distances(one.function(reports, settings(liars))[None, :], truth)[0])
        for name, one in AGGREGATORS.items()
    }


def main() -> None:
    """Print mean and median error of every cell as a table of Markdown."""
    print(f"| noise | attack | f | {' | '.join(AGGREGATORS)} |")
    print("|---|---|---|" + "---|" * len(AGGREGATORS))
    for cell in cells():
        shown = [f"{errors.mean():.2f} ({np.median(errors):.2f})" for errors in cell.errors.values()]
        print(f"| {cell.noise} | {cell.attack} | {cell.liars} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
