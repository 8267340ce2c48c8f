"""The law of a study's synthetic records, and what is assumed of their tails. Public; the truth is not here."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from protocol import strict
from protocol.decimals import canonical, decimal
from protocol.laws import Law
from protocol.problem import Problem
from protocol.strict import StudyError

MOST_PER_HOLDER = 1 << 20
KEYS = ("features", "noise", "per_holder", "tail", "moment")


@dataclass(frozen=True)
class RecordLaw:
    """Records (x, y): coordinates of x are independent and have the law `law`.

    Model "mean": no y. "linear": y = theta . x + e, e of the law `noise`. "logistic": P(y = 1) = sigma(theta . x).
    A row has `per_holder` records. Algorithms assume E|g_j|^(1 + tail) <= moment of every coordinate of a contribution,
    and know no more: None where arms give their own thresholds. Records of files have no law, only these assumptions:
    `law` is None, and `per_holder` 0 where a row is a holder with as many records as it has.

    Raises ValueError for numbers out of range.
    """

    law: Law | None = None
    noise: Law | None = None
    per_holder: int = 1
    tail: Decimal | None = None
    moment: Decimal | None = None

    def __post_init__(self) -> None:
        least = 0 if self.law is None else 1
        if not least <= self.per_holder <= MOST_PER_HOLDER:
            raise ValueError(f"expected per_holder in {least}..{MOST_PER_HOLDER}, got {self.per_holder}")
        if (self.tail is None) != (self.moment is None):
            raise ValueError("expected tail and moment together, or neither")
        if self.tail is not None and not 0 < self.tail <= 1:
            raise ValueError(f"expected 0 < tail <= 1, got {self.tail}")
        if self.moment is not None and not (self.moment.is_finite() and self.moment > 0):
            raise ValueError(f"expected moment > 0, got {self.moment}")

    @property
    def features(self) -> Law:
        """The law of a coordinate of x. Raises StudyError for records of files, of which nobody knows it."""
        if self.law is None:
            raise StudyError("expected records of a known law, got a file's: name what a rule would take from the law")
        return self.law

    def words(self, problem: Problem) -> int:
        """64-bit words that one record takes."""
        own = {"mean": 0, "linear": 0 if self.noise is None else self.noise.words, "logistic": 1}[problem.model]
        return problem.dimension * self.features.words + own

    def describe(self) -> dict[str, Any]:
        """The table of a study file, in its one spelling."""
        return {
            **({} if self.law is None else {"features": self.law.describe}),
            **({} if self.noise is None else {"noise": self.noise.describe}),
            "per_holder": self.per_holder,
            **({} if self.tail is None else {"tail": canonical(self.tail)}),
            **({} if self.moment is None else {"moment": canonical(self.moment)}),
        }


def parse_records(content: Any, problem: Problem, files: bool = False) -> RecordLaw:
    """Read a [records] table; with `files` one without a law is about records of files. Raises StudyError."""
    top = strict.table(content, "records", KEYS, () if files else ("features",))
    if ("noise" in top) != (problem.model == "linear" and "features" in top):
        raise StudyError('[records] noise: expected a law of it exactly for model = "linear"')
    return _read(top)


def _read(top: Mapping[str, Any]) -> RecordLaw:
    least = 1 if "features" in top else 0
    try:
        return RecordLaw(
            law=Law.parse(top["features"], "records.features") if "features" in top else None,
            noise=Law.parse(top["noise"], "records.noise") if "noise" in top else None,
            per_holder=strict.integer(top.get("per_holder", 1), "[records] per_holder", least, MOST_PER_HOLDER),
            tail=decimal(top["tail"], "tail") if "tail" in top else None,
            moment=decimal(top["moment"], "moment") if "moment" in top else None,
        )
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"[records] {error}") from None
