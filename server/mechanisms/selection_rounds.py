"""Selections that are made in every round of an algorithm: how much noise each needs, and what all of them cost.

Scales are those of lambda = 1: coordinates that move by at most lambda between neighbours need lambda times as much.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from protocol.coins import Floats, Words
from server.mechanisms.composition import split
from server.mechanisms.gaussian import delta_float, epsilon_float
from server.mechanisms.selection_noise import Cost, Selected
from server.mechanisms.selections import SELECTIONS, Selection
from server.mechanisms.top_k import one_shot, one_shot_cost, shared_scales
from server.mechanisms.zcdp import zcdp_delta_bound

ONE_SHOT = "gumbel-gaussian"
PRESCRIBED = frozenset({"peeling-paper", "peeling-cai"})  # scales proved for one release at (epsilon, delta)
_ANY = Decimal("1e-5")  # a pure scale does not depend on delta
_DOWN = Context(prec=30, rounding=ROUND_FLOOR)


@dataclass(frozen=True)
class Rounds:
    """`rounds` selections of `sparsity` coordinates by the selection `name`, noise on sizes and on values."""

    name: str
    sparsity: int
    rounds: int
    scale: float
    value_scale: float

    @property
    def cost(self) -> Cost:
        """Of all rounds together; both levels rounded up. Source: Bun, Steinke 2016, Lemma 1.7."""
        if self.name == ONE_SHOT:
            one = one_shot_cost(self.sparsity, self.scale, self.value_scale)
        else:
            one = SELECTIONS[self.name].cost(self.sparsity, self.scale)
        return Cost(*(math.nextafter(self.rounds * each, math.inf) for each in (one.rho, one.pure)))

    def select(self, vector: Floats, change: float, words: Words) -> Selected:
        """One round's: `change` is lambda; words (`word_rows`, d)."""
        if self.name == ONE_SHOT:
            return one_shot(vector, self.sparsity, self.scale * change, words, self.value_scale * change)
        return SELECTIONS[self.name].select(vector, self.sparsity, self.scale * change, words)

    @property
    def word_rows(self) -> int:
        """Rows of words that a round takes."""
        return SELECTIONS[self.name].word_rows(self.sparsity)

    @property
    def deviation(self) -> float:
        """The standard deviation of a value's noise: Gaussian of that scale, or Laplace."""
        return self.value_scale * (1.0 if self.name == ONE_SHOT else math.sqrt(2))


def shared_rounds(
    name: str, epsilon: Decimal, delta: Decimal | None, sparsity: int, rounds: int = 1, share: Decimal | None = None
) -> Rounds:
    """How `rounds` selections that share a claim are made; they may be chosen one after another.

    Scales that come from rho are sqrt(rounds) times those of one release; pure ones are those of epsilon / rounds; the
    prescribed ones are those of (epsilon', delta') by advanced composition. `share` of rho, in (0, 1), is for the
    choice of coordinates where noise is one-shot (None: half); the rest is for values. `delta` None: a pure claim.

    Guarantee: (epsilon, delta) over all rounds for the unit and neighbours of lambda: the cost of the result shows it,
    whatever the formula. Raises ValueError where it does not, and for what is out of range.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithms 4 and 5; Bun, Steinke 2016; derived, see docs/HEAVY_TAILS.md.
    """
    if name not in SELECTIONS or not (sparsity >= 1 and rounds >= 1):
        raise ValueError(f"expected a selection out of {sorted(SELECTIONS)}, and sparsity, rounds >= 1, got {name!r}")
    selection = SELECTIONS[name]
    if selection.pure != (delta is None):
        raise ValueError(f"expected {'no delta' if selection.pure else 'a delta'} for {name}, got {delta}")
    if share is not None and name != ONE_SHOT:
        raise ValueError(f"expected no share of rho for {name}: its scale is one")
    found = Rounds(name, sparsity, rounds, *_scales(selection, epsilon, delta or _ANY, sparsity, rounds, share))
    level = epsilon_float(epsilon)
    kept = found.cost.pure <= level
    if delta is not None:
        kept = kept or zcdp_delta_bound(found.cost.rho, level) <= delta_float(delta)
    if not kept:
        raise ValueError(f"expected a claim that {rounds} rounds of {name} keep, got ({epsilon}, {delta})")
    return found


def _scales(
    selection: Selection, epsilon: Decimal, delta: Decimal, sparsity: int, rounds: int, share: Decimal | None
) -> tuple[float, float]:
    if selection.name == ONE_SHOT:
        scales = shared_scales(epsilon, delta, sparsity, Fraction(1, 2) if share is None else Fraction(share))
        return _longer(scales[0], rounds), _longer(scales[1], rounds)
    if rounds == 1:
        scale = selection.formula(epsilon, delta, sparsity)
    elif selection.pure:
        scale = selection.formula(_DOWN.divide(epsilon, Decimal(rounds)), delta, sparsity)
    elif selection.name in PRESCRIBED:
        level, limit = split(epsilon, delta, rounds)
        scale = selection.formula(Decimal(repr(level)), Decimal(repr(limit)), sparsity)
    else:
        scale = _longer(selection.formula(epsilon, delta, sparsity), rounds)
    return scale, scale


def _longer(scale: float, rounds: int) -> float:
    """sqrt(rounds) times a scale, never less; the scale itself for one round."""
    return scale if rounds == 1 else scale * math.sqrt(rounds) * (1 + 2.0**-50)
