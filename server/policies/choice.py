"""Policies of a contextual bandit: which action to take in each state, given an estimate or a region for it."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from server.kernels import Array
from server.policies.ball import lowest_in_ball
from server.policies.region import Region, inner

MOST_POLICIES = 1 << 18
Actions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bandit:
    """States with features of their actions, all public: rewards are u . phi(s, a) for a parameter u that is not here.

    features phi (states, actions, p); chances rho (states,), adding up to 1; reference nu_s (states, p): the feature
    that a state's choice is compared with, since pairs only say something about differences.
    Raises ValueError for a wrong shape, values that are not finite, or chances that are none.
    """

    features: Array = field(repr=False)
    chances: Array = field(repr=False)
    reference: Array = field(repr=False)

    def __post_init__(self) -> None:
        if self.features.ndim != 3 or 0 in self.features.shape:
            raise ValueError(f"expected features of shape (states, actions, p), got {self.features.shape}")
        states, _, p = self.features.shape
        if self.chances.shape != (states,) or self.reference.shape != (states, p):
            raise ValueError(
                f"expected {states} chances and references, got {self.chances.shape} and {self.reference.shape}"
            )
        if not (np.isfinite(self.features).all() and np.isfinite(self.reference).all()):
            raise ValueError("expected finite features and references, got NaN or inf")
        if not ((self.chances >= 0).all() and abs(float(self.chances.sum()) - 1.0) < 1e-9):
            raise ValueError("expected chances >= 0 that add up to 1")

    @property
    def shape(self) -> tuple[int, int]:
        """(states, actions)."""
        return self.features.shape[0], self.features.shape[1]

    @cached_property
    def shifted(self) -> Array:
        """phi(s, a) - nu_s, shape (states, actions, p)."""
        return self.features - self.reference[:, None, :]

    def value(self, actions: Actions, u: Array) -> float:
        """J = E_s u . phi(s, pi(s)), for actions of shape (states,)."""
        rewards = inner(self.features[np.arange(len(actions)), actions], u)
        return float((self.chances * rewards).sum())

    def means(self, actions: Actions) -> Array:
        """w_pi = E_s [phi(s, pi(s)) - nu_s], shape (p,)."""
        total: Array = (self.chances[:, None] * self.shifted[np.arange(len(actions)), actions]).sum(axis=0)
        return total

    @cached_property
    def all_means(self) -> Array:
        """w_pi of all actions ** states deterministic policies, the last state's action changing fastest.

        Raises ValueError for more than `MOST_POLICIES`.
        """
        states, actions = self.shape
        if actions**states > MOST_POLICIES:
            raise ValueError(
                f"expected at most {MOST_POLICIES} policies, got {actions}^{states}: use pessimistic-by-state"
            )
        means = np.zeros((1, self.features.shape[2]))
        for chance, row in zip(self.chances, self.shifted, strict=True):
            means = (means[:, None, :] + chance * row).reshape(-1, row.shape[1])
        return means

    def policy(self, number: int) -> Actions:
        """The actions (states,) of a row of `all_means`."""
        states, actions = self.shape
        return np.array(np.unravel_index(number, (actions,) * states), dtype=np.int64)


def greedy(bandit: Bandit, u: Array) -> Actions:
    """pi(s) = argmax_a u . phi(s, a), the first of equals.

    For ||phi|| <= L: J(pi*) - J(pi) <= 2 L ||u - u*||.
    Source: Chowdhury, Zhou, Natarajan 2024, Section 4; the bound: derived, see docs/POLICIES.md.
    """
    best: Actions = np.argmax(inner(bandit.features, u), axis=1)
    return best


def pessimistic(bandit: Bandit, region: Region, bound: float) -> Actions:
    """argmax_pi of w_pi . centre - radius ||P^(-1/2) w_pi||, over all deterministic policies: `bound` does not matter.

    Where the parameter u* lies in the region: J(pi*) - J(pi) <= 2 radius ||P^(-1/2) w_pi*||.
    Raises ValueError for more than `MOST_POLICIES` policies.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (9) without the ball.
    """
    return bandit.policy(int(np.argmax(region.lowest(bandit.all_means))))


def pessimistic_in_ball(bandit: Bandit, region: Region, bound: float) -> Actions:
    """argmax_pi of min w_pi . u over the points u of the region with ||u|| <= bound: exact, by cutting planes.

    For every finite set of such points, max_pi min_u w_pi . u over the set is an upper bound of the maximum. Take its
    best policy, find that policy's worst point; where the two values agree the policy is optimal, otherwise the point
    joins the set. No policy comes twice, so it ends.
    The same bound holds as for `pessimistic`. Raises ValueError as `pessimistic` and `lowest_in_ball` do.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (9); the method: derived, see docs/POLICIES.md.
    """
    means = bandit.all_means
    ceiling = inner(means, region.centre)
    seen: set[int] = set()
    while True:
        number = int(np.argmax(ceiling))
        worst = lowest_in_ball(region, bound, means[number])
        if number in seen or worst.value >= ceiling[number]:
            return bandit.policy(number)
        seen.add(number)
        ceiling = np.minimum(ceiling, inner(means, worst.u))
        ceiling[number] = worst.value


def pessimistic_by_state(bandit: Bandit, region: Region, bound: float) -> Actions:
    """pi(s) = argmax_a of the least (phi(s, a) - nu_s) . u over the region, in each state alone: for many states.

    E_s ||P^(-1/2) (phi - nu_s)|| is at least ||P^(-1/2) w_pi||, so this is more pessimistic. Where u* lies in the
    region: J(pi*) - J(pi) <= 2 radius E_s ||P^(-1/2) (phi(s, pi*(s)) - nu_s)||. `bound` does not matter.
    Source: derived, see docs/POLICIES.md.
    """
    best: Actions = np.argmax(region.lowest(bandit.shifted), axis=1)
    return best
