"""Sums of rows that were rounded coarsely, and estimates that the rounding does not bias: by deferred correction."""

from collections.abc import Callable

import numpy as np

from protocol.links import LINKS, Link
from server.estimators.base import Evidence
from server.estimators.choice_base import ChoiceEvidence, ChoiceWorkspace
from server.estimators.newton import EstimationError, Minimum
from server.estimators.workspace import Workspace
from server.kernels import Array, mean_product
from server.kernels_choice import mean_feature
from server.kernels_solve import norm

_LIMIT = 60
_SETTLED = 1e-13  # of a step, relative
_STUCK = 1e-10

Minimise = Callable[[Array, Array | None], Minimum]  # argmin A(u) - mean . u on the ball, from a start


def deferred(minimise: Minimise, missing: Callable[[Array], Array], mean: Array) -> Minimum:
    """Where (1/n) sum_i (y_i - P(u . x_i)) q_i + noise is 0 on the ball, q_i the coarsely rounded rows v_i.

    `mean` is what was summed, so that E[y_i] = P(u . x_i) makes the equation exactly unbiased, whatever q_i is. A's
    gradient has v_i in the place of q_i: u_{k+1} minimises A(u) - (mean + missing(u_k)) . u, with missing(u) =
    (1/n) sum_i P(u . x_i) (v_i - q_i). Each step leaves about ||v - q|| / ||v|| of what was left.
    Raises EstimationError as `minimise` does, and where steps do not settle: the grid is too coarse for that.
    Source: derived, see docs/PRIVACY.md.
    """
    found, last = minimise(mean, None), np.inf
    for _ in range(_LIMIT):
        again = minimise(mean + missing(found.u), found.u)
        step = norm(again.u - found.u) / (1.0 + norm(again.u))
        found = again
        if step <= _SETTLED or (step <= _STUCK and step >= last):  # as near as rounding lets it come
            return found
        last = step
    raise EstimationError("expected rows on a grid that is fine enough for an estimate, got one too coarse")


class SummedWorkspace(Workspace):
    """Evidence whose labels were summed on other rows, `Evidence.summed`, than estimators see."""

    def __init__(self, evidence: Evidence, link: Link = LINKS["btl"]) -> None:
        super().__init__(evidence)
        assert evidence.summed is not None
        self._link, self._gaps = link, np.ascontiguousarray(evidence.rows - evidence.summed)

    def minimum(self, contrast: float, bound: float, ridge: float, start: Array | None = None) -> Minimum:
        """Where the equation of `deferred` holds, with a ridge added as to any minimum."""

        def minimise(mean: Array, begin: Array | None) -> Minimum:
            return self.of_mean(mean, bound, ridge, start if begin is None else begin)

        key = (contrast, bound, ridge)
        if start is not None:
            return deferred(minimise, self._missing, self.mean(contrast))
        if key not in self._minima:
            self._minima[key] = deferred(minimise, self._missing, self.mean(contrast))
        return self._minima[key]

    def _missing(self, u: Array) -> Array:
        """(1/n) sum_i (F(u . x_i) - 1/2) (v_i - q_i)."""
        z = np.zeros(self.count)
        for value, column in zip(u, self.evidence.rows.T, strict=True):
            z += value * column
        if self.evidence.weights is not None:
            z /= self.evidence.weights
        return mean_product(self._gaps, self._link.cdf(z) - 0.5)


class SummedChoices(ChoiceWorkspace):
    """The same of top choices: `ChoiceEvidence.summed` are the blocks that a label's own was summed of."""

    def __init__(self, evidence: ChoiceEvidence) -> None:
        super().__init__(evidence)
        assert evidence.summed is not None
        self._gaps = np.ascontiguousarray(self.features.blocks - evidence.summed)

    def minimum(self, bound: float, ridge: float) -> Minimum:
        """Where the equation of `deferred` holds, P(k) the chance of choice k."""
        if (bound, ridge) not in self._minima:
            self._minima[bound, ridge] = deferred(
                lambda mean, _: self.features.minimum(mean, bound, ridge), self._missing, self.mean
            )
        return self._minima[bound, ridge]

    def _missing(self, u: Array) -> Array:
        """(1/n) sum_i sum_k P(k) (v_ik - q_ik)."""
        blocks, sizes = self.features.blocks, self.features.sizes
        z = np.zeros(blocks.shape[:2])
        for axis, value in enumerate(u):
            z += value * blocks[:, :, axis]
        if self.features.scales.size:
            z *= self.features.scales[:, None]
        z[np.arange(blocks.shape[1]) >= sizes[:, None]] = -np.inf
        chances = np.exp(z - z.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return mean_feature(self._gaps, sizes, chances)
