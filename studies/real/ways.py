"""The ways that a real study compares: whom labelers trust, and what follows their reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from client.sources.ranking_labels import RankingAs
from protocol import strict
from protocol.arms import CHOICE_OPTIONS, OPTIONS, Option, OptionRule, conflict, estimators
from protocol.decimals import decimal
from protocol.problem import MODELS
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.fit.request import CHOICE_MECHANISMS, CHOICE_WAYS, OWN, WAYS

FOLLOWING = frozenset({"averaging", "interval", "ridge", "step", "tau"})  # options that do not enter a task


@dataclass(frozen=True)
class Way:
    """A trust model, an estimator with its options; `mechanism` of top choices, empty for the usual one.

    It is for each of `asked` of a study of rankings; None: for all that the study asks.
    """

    name: str
    trust: Trust
    estimator: str
    options: tuple[tuple[str, Option], ...] = ()
    mechanism: str = ""
    asked: tuple[RankingAs, ...] | None = None

    def answers(self, asked: RankingAs | None) -> bool:
        """Whether the way is for this question."""
        return asked is None or self.asked is None or asked in self.asked


def parse_way(content: Any, place: str, asked: Sequence[RankingAs | None]) -> Way:
    """Read one [[way]] of a study that asks this. Raises ValueError that names the place and the key."""
    keys = ("name", "trust", "estimator", "mechanism", "ranking_as", *FOLLOWING)
    top = strict.table(content, place, keys, ("trust", "estimator"))
    trust = Trust.parse(strict.text(top["trust"], f"[{place}] trust", [trust.label for trust in OWN]))
    chosen: tuple[RankingAs, ...] | None = None
    if "ranking_as" in top:
        words = strict.sequence(top["ranking_as"], f"[{place}] ranking_as")
        known = [str(one) for one in asked if one is not None]
        chosen = tuple(RankingAs.parse(strict.text(word, f"[{place}] ranking_as", known)) for word in words)
    tops = [one is not None and not one.pairs for one in (chosen or asked)]
    estimator = strict.text(top["estimator"], f"[{place}] estimator")
    given = {key: value for key, value in top.items() if key in FOLLOWING}
    options: dict[str, Option] = {}
    for choice in sorted(set(tops)):
        options = _following(given, place, trust, estimator, choice)
    mechanism = ""
    if "mechanism" in top:
        mechanism = strict.text(top["mechanism"], f"[{place}] mechanism", CHOICE_MECHANISMS)
        if trust is not Trust.LOCAL or not all(tops):
            raise StudyError(f'[{place}] mechanism: expected one for local top choices only: ranking_as = ["top"]')
    name = strict.text(top.get("name", f"{trust.label}: {estimator}"), f"[{place}] name")
    return Way(name, trust, estimator, tuple(sorted(options.items())), mechanism, chosen)


def _following(given: dict[str, Any], place: str, trust: Trust, estimator: str, choice: bool) -> dict[str, Option]:
    """The options of an estimator of top choices, or of pairs."""
    kind = "choice" if choice else "pairwise"
    strict.text(estimator, f"[{place}] estimator", (CHOICE_WAYS if choice else WAYS)[trust][1])
    known = estimators(trust, kind, MODELS[kind][0])[estimator].options & FOLLOWING
    top = strict.table(given, place, known)
    rules = CHOICE_OPTIONS if choice else OPTIONS
    read = {key: _option(rules[key], value, f"[{place}] {key}") for key, value in top.items()}
    if reason := conflict(estimator, read, True):
        raise StudyError(f"[{place}] {reason}")
    return read


def _option(rule: OptionRule, value: Any, place: str) -> Option:
    if isinstance(value, str) or not rule.number:
        return strict.text(value, place, rule.words)
    number: Decimal = decimal(value, place)
    if number < 0 or (number == 0 and not rule.zero):
        raise StudyError(f"{place}: expected a number > 0, got {value!r}")
    return number
