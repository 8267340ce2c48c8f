"""Where whole records are protected only an estimate leaves the curator: computed inside, noisy, from exact sums."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream, normal, words
from protocol.messages import Coins
from protocol.terms import only_mechanism, row_exponent
from protocol.warned import warn
from server.curator import SimulatedCurator
from server.designs import Designs
from server.estimators.base import Estimate, Evidence, Options
from server.estimators.newton import EstimationError, Minimum
from server.estimators.workspace import Workspace
from server.evidence import Heard, Server, answered_rows
from server.kernels_solve import norm, project_on_ball
from server.mechanisms.standard import Perturbation, noise_of

_SAID = (
    warn("biased", "longer rows are shrunk to the radius inside the model"),
    warn("no-claim", "what is claimed is proved for real numbers, not for doubles: for simulated labels only"),
    warn("interval-not-valid", "the curator lets nothing but the estimate out"),
)


@dataclass(frozen=True, eq=False)
class Released:
    """All that leaves the curator about one repetition."""

    estimate: Estimate


def released(known: Released, options: Options) -> Estimate:
    """What the curator let out. Its options were the task's, since they are part of the mechanism."""
    return known.estimate


def released_estimate(server: Server, heard: Heard, designs: Designs) -> Released:
    """The estimate of one repetition under the task's mechanism, with rows shrunk to its radius.

    u = argmin over ||u|| <= bound of A(u) - (S - b) . u / n + ridge ||u||^2 / 2, S = sum (y_i - 1/2) v_i,
    A(u) = (1/n) sum log(2 cosh(u . v_i / 2)); or, for the approximate minimiser, the projection on the ball of that
    without a ball, plus noise.

    Guarantee: (epsilon, delta) of the task over real numbers; unit: one record; neighbours: replace one record.
    Raises ValueError without a simulated curator, simulated labels and all n rows, EstimationError where no minimiser
    is reached.
    Source: Chowdhury, Zhou, Natarajan 2024, Theorem E.1; Iyengar et al. 2019; see docs/PRIVACY.md.
    """
    task, curator = heard.task, server.curator
    if not isinstance(curator, SimulatedCurator) or heard.collected.coins is Coins.OS:
        raise ValueError(
            "expected a simulated curator of simulated labels, got a live one: that noise in an objective protects a "
            "record is proved for real numbers, and the last bits of doubles may tell more"
        )
    if answered_rows(heard) is not None:
        raise ValueError(f"expected all {task.n} rows, for which the noise is made, got {len(heard.collected.rows)}")
    radius = only_mechanism(task).get("radius")
    assert radius is not None and heard.collected.sums is not None
    design = designs.get(row_exponent(task), float(radius))
    total = heard.collected.sums[designs.repetition - task.first_repetition] - 0.5 * design.total
    address = Address(curator.seed, Stream.CURATOR, task.n, designs.repetition, task.round)
    coins = normal(words(address, 0, 2 * len(total))).reshape(2, -1)
    noise = noise_of(task, only_mechanism(task))
    bound = math.inf if task.problem.bound is None else float(task.problem.bound)
    if isinstance(noise, Perturbation):
        found = _minimum(design.rows, total, noise, coins[0], bound)
        u = found.u.copy()
    else:
        found = _minimum(design.rows, total, noise.objective, coins[0], math.inf, noise.tolerance)
        u = found.u + noise.output * coins[1]
        project_on_ball(u, bound)
    hit = norm(u) >= bound * (1.0 - 1e-9)
    # How many steps it took depends on the records, and is no part of what the claim covers.
    return Released(Estimate(u, None, hit, _SAID, 0, math.nan))


def _minimum(
    rows: NDArray[np.float64],
    total: NDArray[np.float64],
    noise: Perturbation,
    coins: NDArray[np.float64],
    bound: float,
    tolerance: float = math.inf,
) -> Minimum:
    known = Workspace(Evidence(rows, None, None, total - noise.stddev * coins, 1.0, 0.0, 0.0))
    found = known.minimum(1.0, bound, noise.ridge)
    gradient = known.features.cumulant(found.u)[1] - known.mean(1.0) + noise.ridge * found.u
    if not found.converged or not norm(gradient) <= tolerance:
        raise EstimationError(f"expected a minimiser to a mean gradient of {tolerance}, which was not reached")
    return found
