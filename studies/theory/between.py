"""What theory needs of the models between local and central: the level of a shuffled report, and noise in shares."""

import math
from decimal import Decimal

import numpy as np

from protocol.arms import Arm
from protocol.choice_features import default_span
from protocol.features import default_radius
from protocol.gaussian import analytic_noise_multiplier
from protocol.problem import DRAWN, Problem
from protocol.questions import questions
from protocol.shaping import SHAPED, default_mechanism
from protocol.shuffled_terms import outcomes_of
from protocol.shuffling import LEAST_GROUP, nearly_level
from server.task_shares import counted_on


def report_level(problem: Problem, arm: Arm, n: int, epsilon: Decimal, delta: Decimal) -> Decimal | None:
    """The level of one report of a shuffled arm, to some parts in a thousand; None where no group is large enough.

    A study's own results say the level that its claim rests on: `computed_epsilon`.
    """
    if problem.features in DRAWN or problem.design is None:
        return None
    honest = arm.get("honest")
    share = float(honest) if isinstance(honest, Decimal) else 1.0
    group = math.floor(share * int(np.bincount(questions(problem, min(n, len(problem.design)))).min()))
    if group < LEAST_GROUP:
        return None
    return min(nearly_level(epsilon, delta, group, outcomes) for outcomes in outcomes_of(problem))


def noise_in_shares(problem: Problem, arm: Arm, n: int, epsilon: Decimal, delta: Decimal) -> tuple[float, float, bool]:
    """Standard deviation per coordinate of the noise that all n rows add to a sum; the radius; whether it is shaped.

    stddev = multiplier(epsilon, delta) R sqrt(n / h): the analytic Gaussian's for a row of length R, made up by each
    set of h = honest rows, and added by all n. Laws on integers are above by parts in a thousand at most.

    Source: derived; `protocol.noise.accounting:least_variance` is what a task's noise is sized by.
    """
    shaped = default_mechanism(problem) == SHAPED
    chosen = arm.get("radius")
    if isinstance(chosen, Decimal):
        radius = float(chosen)
    elif shaped:
        radius = math.sqrt(problem.reduced_dimension)
    elif problem.kind == "choice":
        radius = default_span(problem, n)
    else:
        rows = n if problem.design is None else min(n, len(problem.design))
        radius = default_radius(problem, rows)
    honest = max(1, math.floor(counted_on(arm)["honest"] * n))
    return analytic_noise_multiplier(epsilon, delta) * radius * math.sqrt(n / honest), radius, shaped
