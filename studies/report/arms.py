"""How arms look and what they are called: one family of hues per trust model, safe for colour-blind eyes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from protocol.arms import Arm
from protocol.record_arms import PRINTED, RECORD_MECHANISMS
from protocol.trust import Trust

# Okabe and Ito's palette. Warm colours: local. Cool colours: central. Black: clear. Grey: no answer worth the name.
BLACK, GREY = "#000000", "#8C8C8C"
ORANGE, VERMILLION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
SKY, BLUE, GREEN = "#56B4E9", "#0072B2", "#009E73"


@dataclass(frozen=True)
class Look:
    """An arm's label, colour and marker; `hollow` is the one-pass version of the same colour."""

    label: str
    colour: str
    marker: str
    hollow: bool = False


ZERO = Look("answer 0", GREY, "")
_KNOWN: dict[tuple[str, str], Look] = {
    ("none", "mle"): Look("MLE", BLACK, "o"),
    ("none", "sgd"): Look("SGD, one pass", BLACK, "o", hollow=True),
    ("randomized-response", "debiased-sgd"): Look("de-biased SGD, one pass", PURPLE, "s", hollow=True),
    ("randomized-response", "debiased"): Look("de-biased", PURPLE, "s"),
    ("randomized-response-menu", "debiased-sgd"): Look("own levels, de-biased SGD", BLUE, "s", hollow=True),
    ("randomized-response-menu", "debiased"): Look("own levels, de-biased", BLUE, "s"),
    ("randomized-response-menu", "rr-mle"): Look("own levels, RR-MLE", SKY, "D"),
    ("randomized-response-menu", "one-step"): Look("own levels, one Fisher step", SKY, "D", hollow=True),
    ("randomized-response-menu", "rr-map"): Look("own levels, RR-MAP", GREEN, "o"),
    ("randomized-response-menu", "naive"): Look("own levels, naive", GREY, "X"),
    ("none", "matching"): Look("matching loss", BLACK, "s"),
    ("randomized-response", "matching"): Look("matching loss", PURPLE, "s"),
    ("gaussian-statistic", "matching"): Look("Gaussian on the sum, matching", BLUE, "v"),
    ("gaussian-statistic-clipped", "matching"): Look("Gaussian, clipped sum, matching", GREEN, "P"),
    ("randomized-response", "rr-mle"): Look("RR-MLE", ORANGE, "D"),
    ("randomized-response", "one-step"): Look("one Fisher step", ORANGE, "D", hollow=True),
    ("randomized-response", "rr-map"): Look("RR-MAP", VERMILLION, "o"),
    ("randomized-response", "naive"): Look("naive", GREY, "x"),
    ("objective-perturbation-paper", "mle"): Look("objective perturbation", SKY, "^"),
    ("gaussian-statistic", "mle"): Look("Gaussian on the sum", BLUE, "v"),
    ("gaussian-statistic-clipped", "mle"): Look("Gaussian, clipped sum", GREEN, "P"),
    ("skellam", "mle"): Look("Skellam shares", BLUE, "h"),
    ("discrete-gaussian", "mle"): Look("discrete Gaussian shares", GREEN, "H"),
    ("binomial", "mle"): Look("binomial shares", SKY, "h", hollow=True),
    ("skellam", "matching"): Look("Skellam shares, matching", BLUE, "h", hollow=True),
    ("discrete-gaussian", "matching"): Look("discrete Gaussian shares, matching", GREEN, "H", hollow=True),
    ("binomial", "matching"): Look("binomial shares, matching", SKY, "H", hollow=True),
    ("none", "median-of-means"): Look("median of means", BLACK, "<", hollow=True),
    ("none", "trimmed-mean"): Look("trimmed mean", BLACK, ">", hollow=True),
    ("randomized-response", "debiased-median-of-means"): Look("de-biased, median of means", VERMILLION, "<"),
    ("randomized-response", "debiased-trimmed-mean"): Look("de-biased, trimmed mean", VERMILLION, ">", hollow=True),
    ("gaussian-statistic", "median-of-means"): Look("Gaussian on sums, median of means", GREEN, "<"),
    ("gaussian-statistic", "trimmed-mean"): Look("Gaussian on sums, trimmed mean", GREEN, ">", hollow=True),
    ("none", "zero"): ZERO,
    ("none", "notebook-sgd"): Look("notebook's steps", BLACK, "*"),
    ("randomized-response", "notebook-sgd"): Look("notebook's steps", ORANGE, "*"),
    ("k-randomized-response", "debiased-sgd"): Look("one choice, de-biased SGD", PURPLE, "s", hollow=True),
    ("k-randomized-response", "debiased"): Look("one choice, de-biased", PURPLE, "s"),
    ("k-randomized-response", "rr-mle"): Look("one choice, RR-MLE", ORANGE, "D"),
    ("k-randomized-response", "rr-map"): Look("one choice, RR-MAP", VERMILLION, "o"),
    ("k-randomized-response", "naive"): Look("one choice, naive", GREY, "x"),
    ("k-randomized-response", "literal"): Look("one choice, literal score", GREY, "X"),
    ("subset-selection", "debiased"): Look("set, de-biased", PURPLE, "v"),
    ("subset-selection", "rr-mle"): Look("set, RR-MLE", ORANGE, "^"),
    ("subset-selection", "rr-map"): Look("set, RR-MAP", VERMILLION, "h"),
    ("random-pair", "debiased"): Look("random pair, de-biased", PURPLE, "<"),
    ("random-pair", "rr-mle"): Look("random pair, RR-MLE", ORANGE, ">"),
    ("random-pair", "rr-map"): Look("random pair, RR-MAP", VERMILLION, "P"),
}
_SPARE = (ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE)
# Of records: what algorithms are called, and their markers; those that are as printed are hollow.
_ALGORITHMS: dict[str, tuple[str, str]] = {
    "mean": ("mean", "o"),
    "recentred-mean": ("recentred mean", "s"),
    "median-of-means": ("median of means", "<"),
    "descent": ("descent", "D"),
    "hard-thresholding": ("hard thresholding", "P"),
    "two-phase": ("two phases", "X"),
    "votes": ("votes", "*"),
    "algorithm-1": ("Algorithm 1", "o"),
    "algorithm-2-convex": ("Algorithm 2, convex", "D"),
    "algorithm-2-strong": ("Algorithm 2, strongly convex", "d"),
    "algorithm-3": ("Algorithm 3", "<"),
    "algorithm-5": ("Algorithm 5", "P"),
}
_FAMILIES = {
    Trust.CLEAR: (BLACK, GREY),
    Trust.CENTRAL: (BLUE, SKY, GREEN),
    Trust.DISTRIBUTED: (GREEN, SKY, BLUE),
    Trust.LOCAL: (ORANGE, VERMILLION, PURPLE),
}
_SHUFFLED = {ORANGE: SKY, VERMILLION: GREEN, PURPLE: BLUE}  # in place of colours of local reports
_MORE = ("", "^", "v", ">", "h", "p", "8")  # in the place of an algorithm's own marker


def looks(arms: Sequence[Arm]) -> dict[str, Look]:
    """Arm name -> look. Arms that would share a label carry their options in it; unknown ones get a spare colour."""
    found = {arm.name: _known(arm) or _spare(arm, i) for i, arm in enumerate(arms)}
    found |= _record_looks([arm for arm in arms if (arm.mechanism, arm.estimator) not in _KNOWN and _of_records(arm)])
    shared = Counter((arm.trust, found[arm.name].label) for arm in arms)
    for index, arm in enumerate(arms):
        look = found[arm.name]
        if shared[arm.trust, look.label] > 1:
            options = arm.name[arm.name.index("[") :] if arm.options else "[defaults]"
            colour = look.colour if _of_records(arm) else _SPARE[index % len(_SPARE)]
            found[arm.name] = Look(f"{look.label} {options}", colour, look.marker, look.hollow)
    return found


def _known(arm: Arm) -> Look | None:
    """The look of a mechanism and an estimator; shuffled, in another colour than the same of local reports."""
    look = _KNOWN.get((arm.mechanism, arm.estimator))
    if look is None or arm.trust is not Trust.SHUFFLED:
        return look
    return replace(look, colour=_SHUFFLED.get(look.colour, look.colour))


def _of_records(arm: Arm) -> bool:
    return arm.estimator in _ALGORITHMS and arm.mechanism in RECORD_MECHANISMS.get(arm.trust, ())


def _record_looks(arms: Sequence[Arm]) -> dict[str, Look]:
    """Each arm's own: of its trust model's family, by mechanism, with its algorithm's marker; the next one if taken."""
    found: dict[str, Look] = {}
    for arm in arms:
        assert arm.trust is not None
        name, marker = _ALGORITHMS[arm.estimator]
        printed, names = PRINTED.get(arm.estimator), RECORD_MECHANISMS[arm.trust]
        default = arm.mechanism in ((printed,) if printed else (names[0], "gumbel-gaussian"))
        usual = default and arm.trust is not Trust.LOCAL
        family, taken = _FAMILIES[arm.trust], {(one.colour, one.marker, one.hollow) for one in found.values()}
        first = names.index(arm.mechanism)
        ways = [
            (family[(first + shift) % len(family)], other or marker, hollow)
            for other in _MORE
            for hollow in (printed is not None, printed is None)
            for shift in range(len(family))
        ]
        way = next((way for way in ways if way not in taken), ways[0])
        found[arm.name] = Look(name if usual else f"{name}, {arm.mechanism}", *way)
    return found


def _spare(arm: Arm, index: int) -> Look:
    return Look(f"{arm.mechanism}, {arm.estimator}", _SPARE[index % len(_SPARE)], "h")
