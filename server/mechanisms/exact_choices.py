"""Choices made in integers, for real coins: which of some scores stand out, and noisy values of them.

Scores and noise are integers in units of one grid, so that every level below is that of the law that is sampled.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from server.mechanisms.discrete_gaussian import (
    sample_discrete_gaussian,
    sample_discrete_laplace,
    sample_geometric,
    up,
)
from server.mechanisms.exact_selection import choose_support, exponential_choice
from server.mechanisms.gaussian import delta_float, epsilon_float
from server.mechanisms.selection_rounds import ONE_SHOT, shared_rounds
from server.mechanisms.selections import SELECTIONS
from server.mechanisms.zcdp import zcdp_delta_bound

THRESHOLD, HISTOGRAM = "threshold", "histogram"
LOOKS = (THRESHOLD, HISTOGRAM)  # of counts on a grid of thresholds: pure, and made once
CHOICES = (*LOOKS, *SELECTIONS)

Randbits = Callable[[int], int]


@dataclass(frozen=True)
class Chooser:
    """One way to choose `sparsity` places among scores, in integers; `name` is out of `CHOICES`.

    A unit moves every score by at most `moved`; of a histogram, two of them by that and no other.

    * threshold: one place, with probability proportional to exp(-|score| / scale - decay place).
    * gumbel-gaussian: s times one of the places left, with probability proportional to exp(|score| / scale); values of
      the chosen with discrete Gaussian noise of stddev `value_scale`.
    * peeling-*: s times the largest |score| plus discrete Laplace noise of `scale`, the first among equals; values with
      discrete Laplace noise of `value_scale`. permute-and-flip: geometric noise, which is its law as `scale` grows.
    * histogram: all places; values with discrete Laplace noise of `value_scale`.
    """

    name: str
    sparsity: int
    moved: int
    scale: int
    value_scale: int
    decay: Fraction = Fraction(0)

    @property
    def pure(self) -> Fraction | None:
        """The level of one choice with its values at delta = 0; None where there is none.

        2 moved / scale a place, since the scores of two places can move against each other, and moved / value_scale a
        value. Guarantee: for the unit and neighbours of `moved`. Source: derived, see docs/PRIVACY.md.
        """
        place, value = self._levels()
        if self.name == ONE_SHOT:
            return None
        return 2 * value if self.name == HISTOGRAM else self.sparsity * (place + value)

    @property
    def rho(self) -> Fraction:
        """The same in zero-concentrated privacy: e^2/8 of an exponential mechanism of level e, e^2/2 of a pure level.

        Guarantee: as `pure`. Source: Cesar, Rogers 2021; Bun, Steinke 2016, Proposition 1.4; Canonne, Kamath, Steinke
        2020, Theorem 4.
        """
        place, value = self._levels()
        if self.name == HISTOGRAM:
            return (2 * value) ** 2 / 2
        bounded = self.name in (THRESHOLD, ONE_SHOT)
        return self.sparsity * (place**2 / (8 if bounded else 2) + value**2 / 2)

    def keeps(self, epsilon: Decimal, delta: Decimal | None, rounds: int) -> bool:
        """Whether `rounds` such choices together keep a claim, made one after another, whatever earlier ones said."""
        level = epsilon_float(epsilon)
        if self.pure is not None and rounds * self.pure <= Fraction(epsilon):
            return True
        return delta is not None and zcdp_delta_bound(up(rounds * self.rho), level) <= delta_float(delta)

    def choose(self, scores: Sequence[int], randbits: Randbits) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Places in the order in which they were chosen, and their noisy scores: none for a threshold.

        Guarantee: `pure` and `rho`. How long an exponential mechanism takes depends on scores; nothing else does.
        Raises ValueError for fewer scores than places.
        """
        if not self.sparsity <= len(scores):
            raise ValueError(f"expected at least {self.sparsity} scores, got {len(scores)}")
        places = self._places([abs(score) for score in scores], randbits)
        noise = self._noise(len(places), randbits) if self.value_scale else []
        return places, tuple(scores[place] + noise[i] for i, place in enumerate(places) if noise)

    def _levels(self) -> tuple[Fraction, Fraction]:
        """What one place and one value cost."""
        place = Fraction(2 * self.moved, self.scale) if self.scale else Fraction(0)
        return place, Fraction(self.moved, self.value_scale) if self.value_scale else Fraction(0)

    def _places(self, sizes: list[int], randbits: Randbits) -> tuple[int, ...]:
        if self.name == HISTOGRAM:
            return tuple(range(len(sizes)))
        if self.name == THRESHOLD:
            costs = [Fraction(size, self.scale) + self.decay * place for place, size in enumerate(sizes)]
            return (exponential_choice(costs, randbits),)
        if self.name == ONE_SHOT:
            level, moved = Fraction(2 * self.moved, self.scale), Fraction(self.moved)
            return tuple(choose_support(list(map(Fraction, sizes)), self.sparsity, level, moved, randbits))
        left, found = list(range(len(sizes))), []
        for _ in range(self.sparsity):
            draw = sample_geometric if self.name == "permute-and-flip" else sample_discrete_laplace
            noisy = [sizes[place] + z for place, z in zip(left, draw(self.scale, len(left), randbits), strict=True)]
            found.append(left.pop(noisy.index(max(noisy))))
        return tuple(found)

    def _noise(self, count: int, randbits: Randbits) -> list[int]:
        if self.name == ONE_SHOT:
            return sample_discrete_gaussian(self.value_scale**2, count, randbits)
        return sample_discrete_laplace(self.value_scale, count, randbits)


@lru_cache(maxsize=256, typed=True)
def chooser(
    name: str,
    epsilon: Decimal,
    delta: Decimal | None,
    moved: int,
    *,
    sparsity: int = 1,
    rounds: int = 1,
    share: Decimal | None = None,
    decay: Decimal = Decimal(0),
) -> Chooser:
    """The integer noise of a choice that is one of `rounds` which share a claim: scales are rounded up.

    `share` of rho is for places, of gumbel-gaussian; `decay` is a threshold's public weight against later places.

    Guarantee: (epsilon, delta) over all rounds for whatever moves scores by at most `moved`, shown by what is executed.
    Raises ValueError where it is not, and for what is out of range. Source: derived, see docs/PRIVACY.md.
    """
    if moved < 1 or decay < 0:
        raise ValueError(f"expected moved >= 1 and decay >= 0, got {moved} and {decay}")
    if name in LOOKS:
        if delta is not None or (sparsity, rounds, share) != (1, 1, None):
            raise ValueError(f"expected one {name}, alone under its claim, which has no delta")
        epsilon_float(epsilon)
        scale = math.ceil(2 * moved / Fraction(epsilon))
        scales = (0, scale) if name == HISTOGRAM else (scale, 0)
    else:
        made = shared_rounds(name, epsilon, delta, sparsity, rounds, share)
        scales = (math.ceil(Fraction(made.scale) * moved), math.ceil(Fraction(made.value_scale) * moved))
    if decay and name != THRESHOLD:
        raise ValueError(f"expected no decay of {name}, whose places are alike")
    found = Chooser(name, sparsity, moved, *scales, Fraction(decay))
    if not found.keeps(epsilon, delta, rounds):
        raise ValueError(f"expected a claim that {rounds} rounds of {name} keep, got ({epsilon}, {delta})")
    return found
