"""The file of a study of real records: data, assumptions, claims, ways, and what it should show; read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from client.record_file import COLUMN_KEYS, RecordFile, parse_record_file
from client.sources.reading import read_records
from protocol import strict
from protocol.arms import Arm
from protocol.decimals import decimal, delta, epsilon
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.record_law import RecordLaw
from protocol.strict import StudyError, told
from protocol.study import Grid, Study
from protocol.trust import Trust
from studies.load import tables
from studies.records.request import arm_of, needs_delta, problem_of

TOML = Path(__file__).parents[1] / "toml"
PREFIX = "records-"  # of the studies that come along
NO_CLAIM = "-"
MOST = 10_000
Cells = tuple[str, str]


@dataclass(frozen=True)
class Expected:
    """That the median excess loss of the line `better`, (way, epsilon), is below that of another one."""

    better: Cells
    than: Cells

    def __str__(self) -> str:
        better, than = (
            f"{way}{'' if level == NO_CLAIM else f' at {level}'}" for way, level in (self.better, self.than)
        )
        return f"{better} better than {than}"


@dataclass(frozen=True)
class RecordStudy:
    """A study of a file of records: each way at each level, `coins` times. `ways` are pairs of a name and an arm.

    Estimates are compared with the least mean loss over the file, plus `ridge` |theta|^2 / 2; or with those of the way
    `reference`, where a model has more coordinates than records can tell.
    """

    name: str
    coins: int
    data: RecordFile
    law: RecordLaw
    levels: tuple[Decimal, ...]
    delta: Decimal
    bound: Decimal | None
    ridge: Decimal
    reference: str | None
    ways: tuple[tuple[str, Arm], ...]
    expected: tuple[Expected, ...]

    def study(self, rows: int) -> Study:
        """The study that is played about so many rows."""
        arms = tuple(arm for _, arm in self.ways)
        grid = Grid((rows,), self.levels, (self.delta,))
        return Study(self.name, 0, self.coins, _problem(self.data, self.bound), grid, arms, records=self.law)

    def cells(self) -> list[tuple[str, Arm, Decimal | None]]:
        """The lines of the table, in its order."""
        found: list[tuple[str, Arm, Decimal | None]] = []
        for name, arm in self.ways:
            levels: tuple[Decimal | None, ...] = (None,) if arm.trust is Trust.CLEAR else self.levels
            found += [(name, arm, level) for level in levels]
        return found


def shipped() -> dict[str, Path]:
    """The studies that come along, by name."""
    return {path.stem.removeprefix(PREFIX): path for path in sorted(TOML.glob(f"{PREFIX}*.toml"))}


def load_record_study(path: Path, folder: Path) -> RecordStudy:
    """Read the file of a study, whose data lies under `folder`. docs/REAL_HEAVY.md has the keys.

    Raises StudyError that names the file and the key.
    """
    try:
        return parse(tables(path), folder)
    except ValueError as error:
        raise StudyError(f"{path}: {error}") from None


def parse(content: Mapping[str, Any], folder: Path) -> RecordStudy:
    """A study from nested tables. Raises ValueError that names the key."""
    needed = ("study", "data", "claim", "way")
    top = strict.table(content, "top level", (*needed, "assume", "problem", "expect"), needed)
    head = strict.table(top["study"], "study", ("name", "coins", "reference"), ("name", "coins"))
    strict.table(top["data"], "data", ("file", *COLUMN_KEYS), ("file", "features"))
    data = _resolved(parse_record_file({**top["data"], "public": True}, folder, "data"))
    bounded = strict.table(top.get("problem", {}), "problem", ("bound", "ridge"))
    bound = _positive(bounded, "bound", "problem")
    claim = strict.table(top["claim"], "claim", ("epsilon", "delta"), ("epsilon",))
    levels = strict.sequence(claim["epsilon"], "[claim] epsilon")
    problem = _problem(data, bound)
    ways = tuple(
        _way(item, f"way {at}", problem) for at, item in enumerate(strict.sequence(top["way"], "way"), start=1)
    )
    names = [name for name, _ in ways]
    if len(set(names)) < len(names):
        raise StudyError("[way] name: expected different names")
    reference = strict.text(head["reference"], "[study] reference", names) if "reference" in head else None
    lines = {(name, str(level)) for name in names for level in (*levels, NO_CLAIM)}
    told = strict.sequence(top["expect"], "expect") if "expect" in top else []
    return RecordStudy(
        name=strict.text(head["name"], "[study] name"),
        coins=strict.integer(head["coins"], "[study] coins", 2, MOST),
        data=data,
        law=_law(top.get("assume", {}), data.columns.unit),
        levels=tuple(epsilon(level, "[claim] epsilon") for level in levels),
        delta=delta(claim.get("delta", "1e-5"), "[claim] delta"),
        bound=bound,
        ridge=_positive(bounded, "ridge", "problem") or Decimal(0),
        reference=reference,
        ways=ways,
        expected=tuple(_expected(item, f"expect {at}", lines) for at, item in enumerate(told, start=1)),
    )


def _resolved(data: RecordFile) -> RecordFile:
    """The file with every feature by its own name: ways are checked against how many there are."""
    if not any(name.endswith("*") for name in data.columns.features):
        return data
    try:
        return replace(data, columns=data.columns.within(read_records(data.file).names))
    except OSError as error:
        raise StudyError(told(error)) from None


def _problem(data: RecordFile, bound: Decimal | None) -> Problem:
    return problem_of(data.columns.model, len(data.columns.names), bound)


def _law(content: Any, unit: Unit) -> RecordLaw:
    top = strict.table(content, "assume", ("tail", "moment"))
    tail, moment = _positive(top, "tail", "assume"), _positive(top, "moment", "assume")
    return RecordLaw(per_holder=0 if unit is Unit.HOLDER else 1, tail=tail, moment=moment)


def _way(content: Any, place: str, problem: Problem) -> tuple[str, Arm]:
    if not isinstance(content, Mapping):
        raise StudyError(f"[{place}] expected a table, got {content!r}")
    arm = arm_of({key: value for key, value in content.items() if key != "name"}, place, problem)
    usual = f"{arm.trust_name}: {arm.estimator}"
    if needs_delta(arm) and arm.trust is Trust.LOCAL:
        usual += ", " + arm.mechanism
    return strict.text(content.get("name", usual), f"[{place}] name"), arm


def _expected(content: Any, place: str, lines: set[Cells]) -> Expected:
    top = strict.table(content, place, ("better", "than"), ("better", "than"))

    def cells(key: str) -> Cells:
        line = strict.table(top[key], f"{place} {key}", ("way", "epsilon"), ("way",))
        found = (str(line["way"]), str(line.get("epsilon", NO_CLAIM)))
        if found not in lines:
            raise StudyError(f"[{place}] {key}: expected a way and a level of the study, got {found}")
        return found

    return Expected(cells("better"), cells("than"))


def _positive(table: Mapping[str, Any], key: str, place: str) -> Decimal | None:
    if key not in table:
        return None
    value = decimal(table[key], f"[{place}] {key}")
    if value <= 0:
        raise StudyError(f"[{place}] {key}: expected a number > 0, got {value}")
    return value
