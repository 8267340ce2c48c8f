"""Wald covariances, and when not to give one."""

import math
from collections.abc import Callable

import numpy as np

from protocol.warned import warn
from server.estimators.base import Estimate
from server.estimators.newton import Minimum
from server.kernels import Array
from server.kernels_solve import inverse

_LARGEST_BIAS = 0.25  # in standard errors, in the worst direction: a 95 % interval still covers 94.3 %


class NoInterval(ValueError):
    """Why no interval can be given."""


class Singular(NoInterval):
    """No interval can be given, since the rows leave a direction open."""


def sandwich(bread: Array, meat: Array, count: int) -> Array:
    """bread^-1 meat bread^-1 / count, all (p, p); raises NoInterval where bread is singular."""
    inverted, definite = inverse(bread, 0.0)
    if not definite:
        raise Singular("the features do not span the space")
    covariance: Array = inverted @ meat @ inverted / count
    return 0.5 * (covariance + covariance.T)


def refuse_biased(covariance: Array, bread: Array, ridge: float, u: Array, width: float = 0.0) -> None:
    """Raise NoInterval where the ridge shifts the estimate, by bread^-1 ridge u, further than sampling noise allows.

    That u happens to be small proves nothing: a ridge that stands for a prior of a `width` must not shift a typical u
    either.
    """
    if ridge == 0.0:
        return
    precision, definite = inverse(covariance, 0.0)
    if not definite:
        raise Singular("the features do not span the space")
    pull = ridge * inverse(bread, 0.0)[0]
    own = float(u @ pull @ precision @ pull @ u)
    typical = width**2 * float(np.trace(pull @ precision @ pull))
    if math.sqrt(max(own, typical)) > _LARGEST_BIAS:
        raise NoInterval("the ridge shifts the estimate by more than a quarter of a standard error")


def with_interval(minimum: Minimum, covariance: Callable[[], Array] | None, notes: tuple[str, ...] = ()) -> Estimate:
    """The estimate at a minimum, with a covariance where an interval from it is valid, else a warning that says why.

    Without a function `covariance` no interval is claimed, and none is missed. `notes` come first.
    """
    warnings, found = [*notes], None
    if not minimum.converged:
        warnings.append(warn("not-converged", f"{minimum.iterations} steps, decrement {minimum.decrement:.1e}"))
    try:
        if covariance is not None:
            if minimum.hit_boundary:
                raise NoInterval("the ball constraint is active")
            if not minimum.converged:
                raise NoInterval("this is no minimum")
            found = covariance()
    except NoInterval as reason:
        if isinstance(reason, Singular):
            warnings.append(warn("singular", "the covariance has no inverse"))
        warnings.append(warn("interval-not-valid", str(reason)))
    return Estimate(
        minimum.u.copy(), found, minimum.hit_boundary, tuple(warnings), minimum.iterations, minimum.decrement
    )
