"""Noise of several releases of records that share one claim, by the name of a mechanism."""

from collections.abc import Callable
from decimal import Decimal

from server.mechanisms.composition import classical_noise_multiplier, exact_noise_multiplier, split_noise_multiplier


def printed_noise_multiplier(epsilon: Decimal, delta: Decimal, rounds: int) -> float:
    """The noise as printed: the classical multiplier in one round, that of each one's share in several.

    Guarantee: (epsilon, delta) over all rounds. Raises ValueError as `classical_noise_multiplier` and
    `split_noise_multiplier`. Source: Tao, Wu, Cheng, Wang 2022, Algorithms 1 to 3.
    """
    if rounds == 1:
        return classical_noise_multiplier(epsilon, delta)
    return split_noise_multiplier(epsilon, delta, rounds)


# stddev / sensitivity of each of T rounds that are (epsilon, delta)-private together.
ROUNDS: dict[str, Callable[[Decimal, Decimal, int], float]] = {
    "gaussian": exact_noise_multiplier,
    "gaussian-classical": printed_noise_multiplier,
}
