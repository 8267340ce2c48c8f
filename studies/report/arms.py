"""How arms look and what they are called: one family of hues per trust model, safe for colour-blind eyes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.arms import Arm

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


def looks(arms: Sequence[Arm]) -> dict[str, Look]:
    """Arm name -> look. Arms that would share a label carry their options in it; unknown ones get a spare colour."""
    found = {arm.name: _KNOWN.get((arm.mechanism, arm.estimator)) or _spare(arm, i) for i, arm in enumerate(arms)}
    shared = Counter((arm.trust, found[arm.name].label) for arm in arms)
    for index, arm in enumerate(arms):
        look = found[arm.name]
        if shared[arm.trust, look.label] > 1:
            options = arm.name[arm.name.index("[") :] if arm.options else "[defaults]"
            colour = _SPARE[index % len(_SPARE)]
            found[arm.name] = Look(f"{look.label} {options}", colour, look.marker, look.hollow)
    return found


def _spare(arm: Arm, index: int) -> Look:
    return Look(f"{arm.mechanism}, {arm.estimator}", _SPARE[index % len(_SPARE)], "h")
