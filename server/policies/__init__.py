"""What to do with an estimate: policies of a contextual bandit, by name. Post-processing of what is private already."""

from collections.abc import Callable

from server.kernels import Array
from server.policies.choice import (
    Actions,
    Bandit,
    greedy,
    pessimistic,
    pessimistic_by_state,
    pessimistic_in_ball,
)
from server.policies.region import Region

GREEDY: dict[str, Callable[[Bandit, Array], Actions]] = {"greedy": greedy}
PESSIMISTIC: dict[str, Callable[[Bandit, Region, float], Actions]] = {
    "pessimistic": pessimistic,
    "pessimistic-in-ball": pessimistic_in_ball,
    "pessimistic-by-state": pessimistic_by_state,
}
