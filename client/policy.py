"""What a node allows, decided before any label is looked at: whom it trusts, which mechanisms, how much budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from protocol import strict
from protocol.arms import CENTRAL, DISTRIBUTED
from protocol.choice_law import CHOICE_LOCAL
from protocol.decimals import canonical, decimal
from protocol.mechanisms import LOCAL
from protocol.messages import Code, Mechanism, Task, Ties
from protocol.numeric import NUMERIC, VOTES
from protocol.privacy import Unit
from protocol.record_arms import RECORD_CENTRAL
from protocol.strict import StudyError
from protocol.study import MOST
from protocol.trust import SIGHT, Trust

MOST_ATTEMPTS = (1 << 32) - 1
UNLIMITED = "unlimited"
LOCAL_BOUND = "max_local"
CAPS = ("label_cap", "labeler_cap", "delta_cap", "labeler_delta_cap")
PICKS = ("highest", "lowest")
COLLUDING = Decimal("0.1")  # what docs/SECURE.md allows of members, too
FLAGS = ("ties_public", "central_rows")
BOUNDS = ("max_epsilon", LOCAL_BOUND)
KEYS = (
    "trust",
    "mechanisms",
    *BOUNDS,
    "levels",
    "pick",
    *CAPS,
    "units",
    "max_attempt",
    "least_group",
    "colluding",
    *FLAGS,
)


@dataclass(frozen=True)
class Policy:
    """A node's rules. The default answers randomised labels only; a clear or exact contribution must be written down.

    `mechanisms` None allows all that this program knows. `max_epsilon` bounds one task; beyond the default of 10 a
    randomised label is flipped once in 22,000 times and hides little. `max_local` bounds in that way what a shuffled
    report says to whoever learns whose it is: the claim of its task holds while nobody does. `levels` bound a task
    further for single labelers, by name. Where a task offers several levels, a labeler gets the one to `pick`
    ("highest" or "lowest") of those within all bounds. Caps bound totals over all tasks, kept by the ledger:
    `label_cap` and `delta_cap` of one label, `labeler_cap` and `labeler_delta_cap` of one labeler, whose m labels of
    one task spend m epsilon, and a delta that grows as e^(m epsilon) unless the task protects labelers. None is no
    bound. Clear labels have no budget, so nothing bounds a trust in CLEAR. `ties_public` declares that it is no secret
    which labels are ties: then a task under a claim may leave them out. Trust in a curator is for exact sums, over
    `least_group` labels or more, of as many labelers where the task protects those; `central_rows` lets it see each
    row's bounded value. Trust in a shuffler is for groups of at least so many. Of the rows that a masked sum has to be
    opened of, a share of `colluding` may tell the server their noise, and the claim still has to hold; of reports that
    a shuffler passes on, as many may be known, where a task's `honest` leaves room for them.

    Raises ValueError for a bound that is not positive, for a `least_group` beside `central_rows`, and for levels beside
    a trust in CLEAR: clear labels are above every level, and refusing only those whose level it is would tell who has
    an answer.
    """

    trusts: frozenset[Trust] = frozenset({Trust.LOCAL})
    mechanisms: frozenset[str] | None = None
    max_epsilon: Decimal | None = Decimal(10)
    label_cap: Decimal | None = None
    labeler_cap: Decimal | None = None
    delta_cap: Decimal | None = None
    labeler_delta_cap: Decimal | None = None
    units: frozenset[Unit] = frozenset({Unit.LABEL})
    max_attempt: int = 0
    ties_public: bool = False
    central_rows: bool = False
    least_group: int = 1
    levels: tuple[tuple[str, Decimal], ...] = field(default=(), repr=False)
    pick: str = "highest"
    max_local: Decimal | None = Decimal(10)
    colluding: Decimal = COLLUDING

    def __post_init__(self) -> None:
        for name in (*BOUNDS, *CAPS):
            value = getattr(self, name)
            if value is not None and not (value.is_finite() and value > 0):
                raise ValueError(f"expected {name} > 0 and finite, got {value}")
        if self.least_group < 1 or (self.least_group > 1 and self.central_rows):
            raise ValueError(f"expected least_group >= 1, and 1 beside central_rows, got {self.least_group}")
        if any(not (level.is_finite() and level > 0) for _, level in self.levels) or self.pick not in PICKS:
            raise ValueError(f"expected levels > 0 and finite, and pick out of {PICKS}, got {self.pick!r}")
        if not (self.colluding.is_finite() and 0 <= self.colluding < 1):
            raise ValueError(f"expected colluding, a share of rows from 0 to below 1, got {self.colluding}")
        if self.levels and Trust.CLEAR in self.trusts:
            raise ValueError("expected no trust in clear beside levels of labelers: clear labels are above every level")

    @cached_property
    def capped(self) -> bool:
        """Whether a total is bounded, which needs a ledger that outlives the process."""
        return any(getattr(self, name) is not None for name in CAPS)

    @classmethod
    def simulation(cls) -> "Policy":
        """For a client without a node file: its labels are synthetic, so every trust model is allowed."""
        units = frozenset(Unit) - {Unit.LABELER}
        trusts = frozenset(SIGHT)
        own: dict[str, Any] = {"max_attempt": MOST_ATTEMPTS, "central_rows": True, "colluding": Decimal(0)}
        return cls(trusts, max_epsilon=None, max_local=None, units=units, **own)

    @classmethod
    def parse(cls, content: Mapping[str, Any], place: str = "policy", also: Sequence[str] = ()) -> "Policy":
        """Read a node file's [policy] table. `label_cap` must be there: a number, or "unlimited".

        Keys in `also` are somebody else's to read.

        Raises StudyError naming the key.

        >>> Policy.parse({"trust": ["local"], "label_cap": 1, "max_epsilon": 0.5}).max_epsilon
        Decimal('0.5')
        """
        top = strict.table(content, place, (*KEYS, *also), ("label_cap",))
        bounds = {key: _bound(top[key], f"[{place}] {key}") for key in (*BOUNDS, *CAPS) if key in top}
        names = {
            key: frozenset(_names(top[key], f"[{place}] {key}", choices))
            for key, choices in (
                ("trust", [trust.label for trust in SIGHT]),
                ("mechanisms", [*LOCAL, *CHOICE_LOCAL, *CENTRAL, *DISTRIBUTED, *NUMERIC, *VOTES, *RECORD_CENTRAL]),
                ("units", [unit.label for unit in Unit if unit is unit.replaced]),
            )
            if key in top
        }
        flags = {key: strict.boolean(top.get(key, False), f"[{place}] {key}") for key in FLAGS}
        return cls(
            trusts=frozenset(Trust.parse(name) for name in names.get("trust", {"local"})),
            mechanisms=names.get("mechanisms"),
            units=frozenset(unit for unit in Unit if unit.name.lower() in names.get("units", {"label"})),
            max_attempt=strict.integer(top.get("max_attempt", 0), f"[{place}] max_attempt", 0, MOST_ATTEMPTS),
            ties_public=flags["ties_public"],
            central_rows=flags["central_rows"],
            least_group=strict.integer(top.get("least_group", 1), f"[{place}] least_group", 1, MOST),
            levels=_levels(top.get("levels", {}), f"{place}.levels"),
            colluding=_share(top.get("colluding", COLLUDING), f"[{place}] colluding"),
            pick=strict.text(top.get("pick", PICKS[0]), f"[{place}] pick", PICKS),
            **bounds,
        )

    def check(self, task: Task) -> Code | None:
        """Why the task is not allowed, whatever the labels are; None where it is."""
        if task.trust not in self.trusts:
            return Code.TRUST_NOT_ALLOWED
        if task.unit not in self.units:
            return Code.UNIT_NOT_ALLOWED
        if task.ties is Ties.DROP and task.trust is not Trust.CLEAR and not self.ties_public:
            return Code.TASK_INVALID  # which labels are missing would tell
        if task.attempt > self.max_attempt:
            return Code.ATTEMPT_NOT_ALLOWED
        menu = task.trust is Trust.LOCAL and len(task.menu) > 1  # of levels: `client.levels` says who may use which
        if self.max_epsilon is not None and task.epsilon is not None and task.epsilon > self.max_epsilon and not menu:
            return Code.EPSILON_ABOVE_CAP
        if task.trust is Trust.DISTRIBUTED and not all(map(self._enough, task.menu)):
            return Code.TOO_FEW_MEMBERS
        return self._check_group(task) if task.trust is Trust.SHUFFLED else None

    def _enough(self, mechanism: Mechanism) -> bool:
        """Whether honest rows are as many as noise in shares is sized for, where as few stay as may, cheats among them.

        (1 - colluding) least >= honest. What says neither is no noise in shares, and nothing is answered through it.
        """
        honest, least = mechanism.get("honest"), mechanism.get("least")
        if honest is None and least is None:
            return True
        if honest is None or least is None or not (honest.is_finite() and least.is_finite()):
            return False
        return Fraction(honest) <= (1 - Fraction(self.colluding)) * Fraction(least)

    def _check_group(self, task: Task) -> Code | None:
        """Why the groups of a shuffled task are not allowed: so few, or reports that say so much by themselves."""
        for mechanism in task.menu:
            group, local = mechanism.get("group"), mechanism.get("local")
            if group is not None and group < self.least_group:
                return Code.GROUP_TOO_SMALL
            if local is not None and self.max_local is not None and local > self.max_local:
                return Code.EPSILON_ABOVE_CAP
        return None

    def allows(self, mechanism: Mechanism) -> bool:
        """Whether a mechanism is among those that this policy names, and shows no row that it keeps from curators.

        Without a claim there is none to name.
        """
        if mechanism.get("rows") is not None and not self.central_rows:
            return False
        return self.mechanisms is None or mechanism.name == "none" or mechanism.name in self.mechanisms

    def order(self, menu: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
        """The allowed mechanisms of a menu, the preferred level first; at one level in the order of the menu."""
        allowed = [item for item in menu if self.allows(item)]
        if len(allowed) < 2:
            return tuple(allowed)
        levels = {item: item.get("epsilon") or Decimal(0) for item in allowed}
        return tuple(sorted(allowed, key=lambda item: -levels[item] if self.pick == "highest" else levels[item]))

    def level_of(self, labeler: str) -> Decimal | None:
        """The largest claim of one task that a labeler's labels may answer to; None is no bound."""
        bounds = [level for level in (self._named.get(labeler), self.max_epsilon) if level is not None]
        return min(bounds, default=None)

    @cached_property
    def _named(self) -> dict[str, Decimal]:
        return dict(self.levels)


def _levels(content: Any, place: str) -> tuple[tuple[str, Decimal], ...]:
    """Levels of labelers by name; "unlimited" leaves one to `max_epsilon`."""
    top = strict.table(content, place, content if isinstance(content, Mapping) else ())
    bounds = {name: _bound(value, f"[{place}] a labeler's level") for name, value in top.items()}
    return tuple((name, level) for name, level in bounds.items() if level is not None)


def _bound(value: Any, place: str) -> Decimal | None:
    if value == UNLIMITED:
        return None
    if isinstance(value, str):
        raise StudyError(f"{place}: expected a number or {UNLIMITED!r}, got {value!r}")
    try:
        number = decimal(value, place)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if number <= 0:
        raise StudyError(f"{place}: expected a number > 0 or {UNLIMITED!r}, got {canonical(number)}")
    return number


def _share(value: Any, place: str) -> Decimal:
    if isinstance(value, str):
        raise StudyError(f"{place}: expected a number, got {value!r}")
    try:
        number = decimal(value, place)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if not 0 <= number < 1:
        raise StudyError(f"{place}: expected a share from 0 to below 1, got {canonical(number)}")
    return number


def _names(value: Any, place: str, choices: list[str]) -> list[str]:
    return [strict.text(item, place, choices) for item in strict.sequence(value, place)]
