"""Ways to choose the largest coordinates of a vector privately, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from protocol.coins import Floats, Words
from server.mechanisms.gaussian import delta_float, epsilon_float
from server.mechanisms.peeling import (
    cai_scale,
    paper_scale,
    peel,
    peel_and_flip,
    peeling_cost,
    pure_scale,
    zcdp_scale,
)
from server.mechanisms.selection_noise import Cost, Selected
from server.mechanisms.top_k import one_shot, one_shot_cost, one_shot_scale
from server.mechanisms.zcdp import epsilon_of, zcdp_delta_bound


@dataclass(frozen=True)
class Selection:
    """One way, for coordinates that move by at most 1 between neighbours; `noise_scale` has to be multiplied by lambda.

    select(vector, sparsity, scale, words) chooses, with `word_rows(sparsity)` rows of words; `formula` is the scale
    that the source prescribes, `cost` what a scale costs. `pure`: the claim does not need delta.
    All are for simulation: noise is made of doubles.
    """

    name: str
    select: Callable[[Floats, int, float, Words], Selected]
    formula: Callable[[Decimal, Decimal, int], float]
    cost: Callable[[int, float], Cost]
    word_rows: Callable[[int], int]
    pure: bool = False

    def noise_scale(self, epsilon: Decimal, delta: Decimal, sparsity: int) -> float:
        """The prescribed scale, where it keeps the claim.

        Guarantee: (epsilon, delta), (epsilon, 0) if `pure`, for the unit and neighbours of lambda.
        Raises ValueError where the cost of the prescribed scale does not show that.
        """
        scale = self.formula(epsilon, delta, sparsity)
        found, level = self.cost(sparsity, scale), epsilon_float(epsilon)
        kept = found.pure <= level
        if not self.pure:
            kept = kept or zcdp_delta_bound(found.rho, level) <= delta_float(delta)
        if not kept:
            raise ValueError(f"expected a claim that the noise of {self.name} keeps, got ({epsilon}, {delta})")
        return scale

    def computed_epsilon(self, delta: Decimal, sparsity: int, scale: float) -> float:
        """The smaller of the pure level and that of zCDP, rounded up: what a scale (over lambda) is worth.

        Guarantee: (result, delta), (result, 0) if `pure`. Raises ValueError for what is not positive.
        """
        found = self.cost(sparsity, scale)
        return found.pure if self.pure else min(found.pure, epsilon_of(found.rho, delta))


def _one_more(sparsity: int) -> int:
    return sparsity + 1


def _two(sparsity: int) -> int:
    return 2


SELECTIONS: dict[str, Selection] = {
    selection.name: selection
    for selection in (
        Selection("gumbel-gaussian", one_shot, one_shot_scale, one_shot_cost, _two),
        Selection("peeling-paper", peel, paper_scale, peeling_cost, _one_more),
        Selection("peeling-cai", peel, cai_scale, peeling_cost, _one_more),
        Selection("peeling-zcdp", peel, zcdp_scale, peeling_cost, _one_more),
        Selection("peeling-pure", peel, pure_scale, peeling_cost, _one_more, pure=True),
        Selection("permute-and-flip", peel_and_flip, pure_scale, peeling_cost, _one_more, pure=True),
    )
}
