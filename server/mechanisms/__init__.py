"""What a trusted curator adds to a sum, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from server.mechanisms.gaussian import analytic_noise_multiplier, paper_noise_multiplier


@dataclass(frozen=True)
class CentralMechanism:
    """Gaussian noise on the sum of a central task.

    noise_multiplier(epsilon, delta) is stddev / sensitivity. `clipped`: rows carry public clipping weights.
    `paper`: the noise of Theorem 5.2 as printed instead of the analytic Gaussian. `shaped`: rows go through a public
    map before they are weighted, and noise through its inverse afterwards.

    Guarantee: (epsilon, delta) for the unit whose sensitivity over all rows asked is given: one label (neighbours:
    replace one label), or one labeler (neighbours: replace all labels of one labeler).
    """

    name: str
    noise_multiplier: Callable[[Decimal, Decimal], float]
    clipped: bool
    paper: bool
    shaped: bool = False


_ANALYTIC = analytic_noise_multiplier
CENTRAL: dict[str, CentralMechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        CentralMechanism("objective-perturbation-paper", paper_noise_multiplier, clipped=False, paper=True),
        CentralMechanism("gaussian-statistic", _ANALYTIC, clipped=False, paper=False),
        CentralMechanism("gaussian-statistic-clipped", _ANALYTIC, clipped=True, paper=False),
        CentralMechanism("gaussian-statistic-shaped", _ANALYTIC, clipped=True, paper=False, shaped=True),
    )
}
