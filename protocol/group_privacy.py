"""What a claim for one says about several that change together."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext

DIGITS = 12  # of a group's delta, which is rounded up
_UP = Context(prec=DIGITS, rounding=ROUND_CEILING)
_WORKING = 160  # products of a parameter and a count are exact
_FARTHEST = 400  # exp(400) is beyond 1 over any delta that a task can name


def group_delta(epsilon: Decimal, delta: Decimal, count: int) -> Decimal:
    """The delta at which `count` units are protected together at count * epsilon, where each is at (epsilon, delta).

    delta (e^(count epsilon) - 1) / (e^epsilon - 1), rounded up, and at most 1: at 1 nothing is promised.

    Guarantee: (count * epsilon, the result); unit: any `count` of the given units; neighbours: replace all of them.
    Raises ValueError for epsilon <= 0, delta outside [0, 1] or count < 1.
    Source: Dwork, Roth 2014, Theorem 2.2, for delta > 0: derived, see docs/PRIVACY.md.

    >>> [group_delta(Decimal(1), Decimal("1e-5"), count) for count in (1, 2, 100)]
    [Decimal('0.00001'), Decimal('0.0000371828182846'), Decimal('1')]
    """
    if not (epsilon.is_finite() and epsilon > 0):
        raise ValueError(f"expected epsilon > 0, got {epsilon}")
    if not (delta.is_finite() and 0 <= delta <= 1):
        raise ValueError(f"expected 0 <= delta <= 1, got {delta}")
    if count < 1:
        raise ValueError(f"expected a group of at least 1, got {count}")
    if not delta or count == 1:
        return delta
    if (count - 1) * epsilon > _FARTHEST:
        return Decimal(1)
    with localcontext(Context(prec=_WORKING)) as context:  # exp is rounded to nearest: a step outwards bounds it
        many, one = (count * epsilon).exp().next_plus(), epsilon.exp().next_minus()
        context.rounding = ROUND_FLOOR
        below = one - 1
        context.rounding = ROUND_CEILING
        total = delta * ((many - 1) / below)
    return min(Decimal(1), _UP.plus(total))
