"""A random pair of choices, then binary randomised response: which of the two is the label, a coin if neither."""

from decimal import Decimal

from protocol.channel import TOTAL, DiscreteChannel
from protocol.mechanisms.randomized_response import randomized_response


def random_pair(epsilon: Decimal) -> DiscreteChannel:
    """The law of one bit about a public pair (j, k), given how the label stands to it.

    Values: 0 the label is j, 1 it is k, 2 it is neither. P(1 | k) = P(0 | j) = e^epsilon / (1 + e^epsilon), and
    P(0 | neither) = 1/2, which lies between the other two of its column: the level is that of two values.

    Guarantee: epsilon-label-LDP, whatever the pair, if it was fixed without the label; unit: one label; neighbours:
    replace one label. Raises ValueError for epsilon < 1e-9.
    Source: derived, see docs/PRIVACY.md.

    >>> random_pair(Decimal(1)).level == randomized_response(Decimal(1)).level
    True
    """
    return DiscreteChannel((*randomized_response(epsilon).table, (TOTAL // 2, TOTAL // 2)))
