"""What theory predicts for top choices, without a constant fitted to results: sandwich and Fisher covariances."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from protocol.arms import Arm
from protocol.choice_features import default_span, reduce_blocks, spans
from protocol.choice_law import CHOICE_LOCAL, PAIR, ChoiceLaw
from protocol.choice_pairs import scaled
from protocol.coins import Address, Floats, Stream, words
from protocol.features import coordinates
from protocol.trust import Trust
from server.choice_view import View, clear_view, view
from server.kernels_choice import choice_cumulant, choice_spread
from server.kernels_choice_reports import EXPECTED, ONE_CHOICE, SETS, choice_likelihood
from server.mechanisms import CENTRAL
from studies.moments import fresh_blocks
from studies.theory.between import noise_in_shares

if TYPE_CHECKING:
    from studies.theory.sandwich import Theory

_ROWS = 1 << 14
_NONE = np.empty(0)


@dataclass(frozen=True, eq=False)
class ChoiceTheory:
    """Second moments at the truth over a fixed draw of 2^14 rows; see docs/CHOICES.md for H, V and I.

    Source: derived; the sandwich covariance, and the Fisher information of a randomised top choice.
    """

    theory: "Theory"

    @cached_property
    def draw(self) -> tuple[Floats, NDArray[np.int32]]:
        """Rows in reduced coordinates, and their sizes."""
        x, sizes = fresh_blocks(self.theory.problem, self.theory.seed, _ROWS, repetition=1)
        return np.ascontiguousarray(reduce_blocks(self.theory.problem, x)), sizes

    @cached_property
    def lengths(self) -> Floats:
        """How far a label moves a sum, by row."""
        return spans(*self.draw)

    @cached_property
    def u(self) -> Floats:
        """The truth in reduced coordinates."""
        return coordinates(self.theory.problem, self.theory.theta)

    def sandwich(self, law: View, radius: float | None = None) -> tuple[Floats, Floats]:
        """H^-1 V H^-1 of the de-biased minimiser, and H^-2; with clipping weights w = min(1, radius / span)."""
        (v, sizes), scales = self.draw, _NONE
        if radius is not None:
            with np.errstate(divide="ignore"):
                scales = 1.0 / np.minimum(1.0, radius / self.lengths)
            v = v / scales[:, None, None]
        inverse = np.asarray(np.linalg.inv(choice_cumulant(v, sizes, scales, self.u)[2]), dtype=np.float64)
        middle = choice_spread(v, sizes, scales, law.spread, self.u)
        return inverse @ middle @ inverse, inverse @ inverse

    def efficient(self, law: View) -> Floats | None:
        """I^-1, the least possible covariance from such reports; None for sets, whose information has no short sum."""
        v, sizes = self.draw
        if law.reports == SETS:
            return None
        marks = np.zeros(v.shape[:2], dtype=np.uint8)
        if law.reports != ONE_CHOICE:  # every row has a pair of its own
            drawn = words(Address(self.theory.seed, Stream.METRICS, 0, 2), 0, 2 * len(v)).reshape(-1, 2)
            left, right = scaled(drawn[:, 0], sizes.astype(np.int64)), scaled(drawn[:, 1], sizes.astype(np.int64) - 1)
            marks[:] = 1
            marks[np.arange(len(v)), left] = 2
            marks[np.arange(len(v)), right + (right >= left)] = 0
        information = choice_likelihood(v, sizes, marks, law.law, law.reports, EXPECTED, self.u)[2]
        return np.asarray(np.linalg.inv(information), dtype=np.float64)

    def sensitivity_squared(self, n: int, radius: float | None) -> float:
        """E max^2 of the spans of n rows out of the draw; of a file the largest of its first n rows."""
        lengths = self.lengths if radius is None else np.minimum(self.lengths, radius)
        if self.theory.problem.design is not None:
            return float(lengths[:n].max()) ** 2
        below = (np.arange(len(lengths) + 1) / len(lengths)) ** n
        return float((np.sort(lengths) ** 2 * np.diff(below)).sum())


def choice_covariance(
    theory: "Theory", arm: Arm, n: int, epsilon: Decimal | None, delta: Decimal | None
) -> Floats | None:
    """The predicted covariance of an arm's estimate in reduced coordinates, shape (p, p), or None: no formula is known.

    Raises numpy.linalg.LinAlgError where features do not span the space.
    """
    own = _own(theory)
    if arm.trust is Trust.CLEAR and arm.estimator == "mle":
        return own.sandwich(clear_view())[0] / n
    if epsilon is None:
        return None
    if arm.trust is Trust.LOCAL and arm.mechanism in CHOICE_LOCAL:
        problem = theory.problem
        sizes = (problem.choices,) if problem.sizes is None else tuple(np.unique(problem.sizes).tolist())
        law = view(ChoiceLaw(arm.mechanism, epsilon, sizes, b"pairs" if arm.mechanism == PAIR else b""))
        covariance = None
        if arm.estimator == "debiased":
            covariance = own.sandwich(law)[0]
        elif arm.estimator == "rr-mle":
            covariance = own.efficient(law)
        return None if covariance is None else covariance / n
    if arm.trust is Trust.DISTRIBUTED and delta is not None:
        stddev, length, _ = noise_in_shares(theory.problem, arm, n, epsilon, delta)
        sampling, noise = own.sandwich(clear_view(), length)
        return sampling / n + stddev**2 * noise / n**2
    if arm.trust is not Trust.CENTRAL or delta is None:
        return None
    mechanism, radius = CENTRAL[arm.mechanism], None
    if mechanism.clipped:
        chosen = arm.get("radius")
        radius = float(chosen) if isinstance(chosen, Decimal) else default_span(theory.problem, n)
    sampling, noise = own.sandwich(clear_view(), radius)
    variance = mechanism.noise_multiplier(epsilon, delta) ** 2 * own.sensitivity_squared(n, radius)
    return sampling / n + variance * noise / n**2


@lru_cache(maxsize=8)
def _own(theory: "Theory") -> ChoiceTheory:
    return ChoiceTheory(theory)
