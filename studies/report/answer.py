"""The answer of a study in one sentence, and why there is none where there is none."""

import math
from collections.abc import Sequence

from protocol.trust import Trust
from studies.report.price import Price, prices
from studies.report.view import Level, View

NO_PRICE = "This study compares no trust models, so it has no price of privacy to tell."


def times(ratio: float) -> str:
    """A ratio as people say it: two digits, or three beside 1.

    >>> times(8.04), times(1.04), times(31.4), times(1234.0)
    ('8.0', '1.04', '31', '1,200')
    """
    if not ratio < 10:
        step = 10 ** max(0, math.floor(math.log10(ratio)) - 1)
        return f"{round(ratio / step) * step:,}"
    return f"{ratio:.2f}" if ratio < 1.095 else f"{ratio:.1f}"


def spoken(price: Price, people: str) -> str:
    """What a price says, as the end of "the local model needs ...".

    >>> from studies.report.view import Level
    >>> spoken(Price(Trust.LOCAL, Level(None, None), ratio=8.04), "labelers")
    '8.0 times the labelers'
    """
    assert price.ratio is not None
    word = {"more": "more than ", "less": "less than "}.get(price.beyond, "")
    return f"{word}{times(price.ratio)} times the {people}"


def people(view: View) -> str:
    """Who is counted: labelers, or records or holders."""
    return "labelers" if view.loaded.study.records is None else view.wording.rows


def headline(view: View, found: Sequence[Price]) -> Level:
    """The level that the answer is about: epsilon = 1, or the one nearest to it."""
    told = {price.level for price in found if price.ratio is not None}
    return min(told or view.levels, key=lambda level: abs(math.log(level.epsilon or 1)))


def answer(view: View) -> str:
    """One sentence: "At ε = 1 the local model needs 8.0 times the labelers ...", or why that cannot be said."""
    found = prices(view)
    return answer_at(view, found, headline(view, found))


def answer_at(view: View, found: Sequence[Price], level: Level) -> str:
    """The same of another level of the grid, from all its prices."""
    here = [price for price in found if price.level == level]
    where = "Here" if level.epsilon is None else f"At {view.title(level)}"
    told = [price for price in here if price.ratio is not None]
    if not found:
        return NO_PRICE
    if not told:
        reasons = dict.fromkeys(price.reason for price in here)
        at = f" at {view.title(level)}" if any(price.ratio is not None for price in found) else ""
        return f"How many {people(view)} privacy costs{at} cannot be told: {'; '.join(reasons)}."
    against = f"with clear {view.wording.rows.replace('holders', 'records')}"
    if told[0].reference is not None and told[0].reference.trust is Trust.CENTRAL:
        against = "in the central model"
    parts = [f"the {told[0].trust.label} model needs {spoken(told[0], people(view))}"]
    parts += [f"the {price.trust.label} one {spoken(price, '').removesuffix(' the ')}" for price in told[1:]]
    silent = dict.fromkeys(f"of the {one.trust.label} model: {one.reason}" for one in here if one.ratio is None)
    more = f" It cannot be told {'; '.join(silent)}." if silent else ""
    return f"{where} {', '.join(parts)}, for the same error as {against}.{more}"
