"""What the page of a report draws: a study's numbers as plain values for JSON, rounded to six digits."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from protocol.arms import Arm
from studies.report.answer import answer_at, headline, people
from studies.report.arms import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, ZERO, Look
from studies.report.bounds import BROWN, NAVY, lower_bounds
from studies.report.price import Price, prices
from studies.report.view import View
from studies.results import METRICS
from studies.summary import Moments, Setting, paired, summarise

CURVE_POINTS = 13  # smooth on logarithmic axes, and half the time of a printed plot
MOST_PAIRS = 6000  # rows of differences of all metrics in one page; beyond, those of the error alone
COLOURS = {
    BLACK: "black",
    GREY: "grey",
    ORANGE: "orange",
    VERMILLION: "vermillion",
    PURPLE: "purple",
    SKY: "sky",
    BLUE: "blue",
    GREEN: "green",
    BROWN: "brown",
    NAVY: "navy",
}
NAMES = {
    "error_l2": "L2 error",
    "error_sigma": "error in the features' metric",
    "excess_log_loss": "excess log-loss",
    "accuracy": "accuracy",
    "excess_risk": "excess risk",
}

Curve = list[list[float]]  # points (x, y)


def payload(view: View) -> dict[str, Any]:
    """All that the page's charts and tables need of one study; arms, levels and n by their index."""
    metrics, found = METRICS[view.loaded.study.problem.kind], prices(view)
    index = _Index(view)
    pairs = {metric: [*index.pairs(metric)] for metric in metrics}
    if sum(map(len, pairs.values())) > MOST_PAIRS:
        pairs = {"error_l2": pairs["error_l2"]}
    return {
        "name": view.loaded.study.name,
        "truth": view.wording.truth,
        "rows": view.wording.rows,
        "people": people(view),
        "repetitions": view.loaded.study.repetitions,
        "counts": list(view.counts),
        "levels": [{"epsilon": _float(level.epsilon), "title": view.title(level)} for level in view.levels],
        "headline": view.levels.index(headline(view, found)),
        "answers": [answer_at(view, found, level) for level in view.levels],
        "metrics": [{"key": key, "label": NAMES[key], "more": key == "accuracy"} for key in metrics],
        "zero": _round(view.zero()),
        "groups": [
            {"heading": view.wording.headings[trust], "arms": [view.arms.index(arm) for arm in arms]}
            for trust, arms in view.sections()
        ],
        "arms": [_arm(arm, view.looks[arm.name]) for arm in view.arms],
        "summaries": {metric: [*index.summaries(metric)] for metric in metrics},
        "pairs": pairs,
        "theory": {str(index.arms[arm.name]): lines for arm in view.arms if (lines := _theory(view, arm))},
        "bounds": [
            {"trust": bound.trust.label, "label": bound.look.label, "colour": COLOURS[bound.look.colour]}
            | _lines(view, bound.at)
            for bound in lower_bounds(view)
        ],
        "prices": [_price(view, price) for price in found],
    }


class _Index:
    """Where arms, n and levels are in their lists; -1 is the level of arms without a claim."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.arms = {arm.name: index for index, arm in enumerate(view.arms)}
        self._counts = {n: index for index, n in enumerate(view.counts)}
        self._levels = {(_float(one.epsilon), _float(one.delta)): index for index, one in enumerate(view.levels)}

    def _place(self, setting: Setting) -> tuple[int, int]:
        level = -1 if setting.epsilon is None else self._levels[setting.epsilon, setting.delta]
        return self._counts[setting.n], level

    def summaries(self, metric: str) -> Iterator[list[Any]]:
        """[arm, n, level, mean, standard error, low, high, median, quartiles, boundary, coverage] of each setting."""
        for one in summarise(self._view.table, metric, self._view.loaded.theta):
            spread = (one.median, one.lower_quartile, one.upper_quartile, one.boundary_rate, one.coverage)
            yield [self.arms[one.arm], *self._place(one.setting), *_moments(one.moments), *map(_round, spread)]

    def pairs(self, metric: str) -> Iterator[list[Any]]:
        """[left, right, n, level, mean, standard error, low, high] of left - right."""
        for one in paired(self._view.table, metric):
            yield [self.arms[one.left], self.arms[one.right], *self._place(one.setting), *_moments(one.moments)]


def _arm(arm: Arm, look: Look) -> dict[str, Any]:
    trust = "none" if arm.trust is None else arm.trust.label
    way = {"label": look.label, "colour": COLOURS[look.colour], "marker": look.marker, "hollow": look.hollow}
    return {"name": arm.name, "trust": trust, "zero": look is ZERO, **way}


def _price(view: View, price: Price) -> dict[str, Any]:
    numbers = {"ratio": _round(price.ratio), "low": _round(price.low), "high": _round(price.high)}
    labels = {
        key: None if arm is None else view.looks[arm.name].label
        for key, arm in (("arm", price.arm), ("reference", price.reference))
    }
    where = {"trust": price.trust.label, "level": view.levels.index(price.level)}
    return {**where, **labels, **numbers, "beyond": price.beyond, "reason": price.reason, "rough": price.rough}


def _theory(view: View, arm: Arm) -> dict[str, Any] | None:
    if view.predicted(arm, view.counts[-1], view.levels[0]) is None:
        return None
    return _lines(view, lambda n, level: view.predicted(arm, n, level))


def _lines(view: View, at: Any) -> dict[str, Any]:
    """A law's curves: `by_n` one for each level, `by_epsilon` one for each n and delta, keyed "n index"."""
    ns = [round(x) for x in np.geomspace(view.counts[0], view.counts[-1], CURVE_POINTS)]
    by_n = [_curve((n, at(n, level)) for n in ns) for level in view.levels]
    return {"by_n": by_n, "by_epsilon": [_by_epsilon(view, n, at) for n in view.counts]}


def _by_epsilon(view: View, n: int, at: Any) -> Curve:
    """At the first delta of the grid, over the range of its epsilon."""
    first = [level for level in view.levels if level.delta == view.levels[0].delta]
    ends = [float(level.epsilon) for level in first if level.epsilon is not None]
    if len(ends) < 2:
        return []
    between: Sequence[float] = np.geomspace(min(ends), max(ends), CURVE_POINTS).tolist()
    return _curve((x, at(n, replace(first[0], epsilon=Decimal(repr(x))))) for x in between)


def _curve(points: Iterable[tuple[float, float | None]]) -> Curve:
    return [[_round(x) or 0.0, found] for x, y in points if (found := _round(y)) is not None]


def _moments(moments: Moments) -> list[float | None]:
    return [_round(value) for value in (moments.mean, moments.se, moments.low, moments.high)]


def _round(value: float | None) -> float | None:
    """Six digits; None for what is no number, which JSON has no word for."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
