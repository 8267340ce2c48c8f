"""Randomised response for two and for K outcomes, as an integer table that never exceeds the asked level."""

from decimal import ROUND_CEILING, Context, Decimal, localcontext

from protocol.channel import TOTAL, DiscreteChannel
from protocol.decimals import epsilon as checked_epsilon

MOST_OUTCOMES = 4096


def randomized_response(epsilon: Decimal) -> DiscreteChannel:
    """Keep a binary label with probability e^epsilon / (1 + e^epsilon), else flip it.

    P(flip) = ceil(2^63 / (1 + e^epsilon)) / 2^63, rounded up so that the level stays at or below epsilon.

    Guarantee: epsilon-label-LDP; unit: one label; neighbours: replace one label.
    Raises ValueError for epsilon < 1e-9. Source: Chowdhury, Zhou, Natarajan 2024, equation (2).

    >>> channel = randomized_response(Decimal(1))
    >>> round(float(channel.probability(1, 1)), 12)
    0.73105857863
    >>> Decimal("0.999999999999") < channel.level <= 1
    True
    """
    return k_randomized_response(epsilon, 2)


def k_randomized_response(epsilon: Decimal, outcomes: int) -> DiscreteChannel:
    """Keep one of K labels with probability e^epsilon / (e^epsilon + K - 1), else report another one uniformly.

    P(one given other) = ceil(2^63 / (e^epsilon + K - 1)) / 2^63; the rest of the mass keeps the label.

    Guarantee: epsilon-label-LDP; unit: one label; neighbours: replace one label.
    Raises ValueError for epsilon < 1e-9 or outcomes outside 2..4096.
    Source: Chowdhury, Zhou, Natarajan 2024, equation (12).
    """
    checked_epsilon(epsilon)
    if not 2 <= outcomes <= MOST_OUTCOMES:
        raise ValueError(f"expected 2 <= outcomes <= {MOST_OUTCOMES}, got {outcomes}")
    other = _other_count(epsilon, outcomes)
    keep = TOTAL - (outcomes - 1) * other
    table = tuple(tuple(keep if symbol == value else other for symbol in range(outcomes)) for value in range(outcomes))
    return DiscreteChannel(table)


def _other_count(epsilon: Decimal, outcomes: int) -> int:
    """The smallest integer count with keep / other <= e^epsilon, at least 1."""
    if epsilon > 60:  # 2^63 / e^60 < 1: the smallest table is reached, its level is printed
        return 1
    with localcontext(Context(prec=60)) as context:
        growth = context.next_minus(epsilon.exp())  # a lower bound of e^epsilon
        exact = Decimal(TOTAL) / (growth + (outcomes - 1))
        other = int(context.next_plus(exact).to_integral_value(rounding=ROUND_CEILING))
    return max(other, 1)
