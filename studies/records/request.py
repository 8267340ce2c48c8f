"""What is asked of a file of records: a model, whom holders trust, at which level, by which algorithm."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from protocol import strict
from protocol.arms import Arm, Option, OptionRule
from protocol.decimals import decimal
from protocol.numeric import NUMERIC, VOTES, numeric_channel
from protocol.problem import RECORDS, Problem
from protocol.record_arms import is_pure
from protocol.record_study import CLAIMING, needs_moment, record_arm
from protocol.strict import StudyError
from protocol.trust import Trust


@dataclass(frozen=True)
class Request:
    """One estimate: `arm` at `epsilon` and `delta`, None where it claims none; `seed` None: the system's coins.

    Every coordinate of a contribution is assumed to have E|g|^(1 + tail) <= moment, both None where the arm says its
    threshold. `threshold` of a clear request is none of its arm: what it would do is counted. Ledgers live in `state`.
    """

    arm: Arm
    epsilon: Decimal | None
    delta: Decimal | None
    tail: Decimal | None
    moment: Decimal | None
    bound: Decimal | None
    state: Path
    seed: int | None = None
    threshold: Decimal | None = None

    def __post_init__(self) -> None:
        if (self.tail is None or self.moment is None) and needs_moment(self.arm):
            raise StudyError("--threshold: expected a bound known beforehand, or --tail and --moment")
        if (self.tail is None) != (self.moment is None):
            raise StudyError("--tail, --moment: expected both, or neither")
        if self.seed is None:
            _check_exact(self.arm)

    @property
    def trust(self) -> Trust:
        """Whom holders trust."""
        assert self.arm.trust is not None
        return self.arm.trust

    @property
    def live(self) -> bool:
        """Whether the system's coins could draw all that is drawn; else it can only be simulated."""
        try:
            _check_exact(self.arm)
        except StudyError:
            return False
        return True

    @property
    def budgeted(self) -> bool:
        """Whether records pay, and answers are kept: clear ones claim nothing, addressed coins repeat by themselves."""
        return self.trust is not Trust.CLEAR and self.seed is None


def problem_of(model: str, dimension: int, bound: Decimal | None) -> Problem:
    """The public problem of records with so many coordinates."""
    return Problem(dimension, RECORDS, sum_zero=False, bound=bound, kind=RECORDS, model=model)


def arm_of(content: Mapping[str, Any], place: str, problem: Problem) -> Arm:
    """An arm from a table of trust, estimator, mechanism and options. Raises StudyError that names the place."""
    arm = record_arm(content, place, problem, option)
    if arm.trust is None:
        raise StudyError(f"[{place}] trust: expected clear, local, central or distributed, got none")
    return arm


def needs_delta(arm: Arm) -> bool:
    """Whether an arm's claim has a delta."""
    return arm.trust in CLAIMING and not is_pure(arm)


def option(rule: OptionRule, value: Any, place: str) -> Option:
    """An option by its rule: one of its words, or a number > 0. Raises StudyError."""
    if not rule.number or value in rule.words:
        return strict.text(value, place, rule.words)
    try:
        number: Decimal = decimal(value, place)
    except ValueError:
        words = "".join(f", or {word}" for word in sorted(rule.words))
        raise StudyError(f"{place}: expected a number of at most 64 digits{words}, got {value!r}") from None
    if number < 0 or (number == 0 and not rule.zero):
        raise StudyError(f"{place}: expected a number > 0, got {value!r}")
    return number


def _check_exact(arm: Arm) -> None:
    """With secret coins every draw has to be exact: a curator's are. Raises StudyError before anybody is asked."""
    more = "with --public-data --coins addressed it can be simulated"
    if arm.trust is Trust.LOCAL and not _live(arm.mechanism):
        live = ", ".join(name for name in NUMERIC if _live(name))
        raise StudyError(f"--mechanism: expected one of {live}, whose draws are exact, got {arm.mechanism}: {more}")


def _live(mechanism: str) -> bool:
    one = {"epsilon": Decimal(1), "threshold": Decimal(1), "dimension": Decimal(1), "delta": Decimal("1e-5")}
    for names in (("epsilon", "threshold", "dimension"), tuple(one)):
        try:
            return numeric_channel(mechanism, {name: one[name] for name in names}).live
        except ValueError:
            continue
    return mechanism in VOTES
