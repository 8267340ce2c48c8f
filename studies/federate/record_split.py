"""What the server of a federation is told of a split file of records: written once, and read strictly."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from client.sources.numbers import Scales
from protocol import strict
from protocol.decimals import canonical, decimal
from protocol.privacy import Unit
from protocol.problem import MODELS, RECORDS
from protocol.strict import StudyError
from protocol.study import MOST
from protocol.trust import SIGHT, Trust
from studies.federate.folder import FACTS, open_private, read_facts_file
from studies.records.facts import RecordFacts

UNITS = {unit.label: unit for unit in (Unit.RECORD, Unit.HOLDER)}
BOUNDS = ("threshold", "tail", "moment", "bound")
LARGEST_SEED = (1 << 128) - 1
TRUSTS = [trust.label for trust in SIGHT if trust is not Trust.SHUFFLED]  # records have no questions


@dataclass(frozen=True)
class RecordSplit:
    """Public facts about a file of records that is split over nodes; no name of a holder, no number of a record.

    Nodes answer under `trust`, with `central_rows` also each row's bounded value to a curator; `held` says how many
    rows each of them has. `response` and `scales` say what the numbers mean; `assumed` has bounds that were known
    beforehand, by flag. `seed` of coins that are addressed, None for the system's.
    """

    trust: Trust
    facts: RecordFacts
    held: tuple[int, ...]
    response: str | None = None
    scales: Scales = field(default_factory=Scales)
    assumed: Mapping[str, Decimal] = field(default_factory=dict)
    seed: int | None = None
    central_rows: bool = False

    def __str__(self) -> str:
        return f"--trust {self.trust.label}, --unit {self.facts.unit.label}"


def write_record_split(folder: Path, split: RecordSplit) -> None:
    """Write the server's new folder."""
    folder.mkdir(mode=0o700, parents=True)
    facts = split.facts
    lines = [
        "# What the nodes of this split answer to, and what a server is told of their records. All of it is public.",
        "[split]",
        f"trust = {quoted(split.trust.label)}",
        f"unit = {quoted(facts.unit.label)}",
        f"central_rows = {quoted(split.central_rows)}",
        f"rows = {list(split.held)}  # of each node",
        f'whose = "{facts.whose}"',
        *([] if split.seed is None else [f"seed = {split.seed}  # of addressed coins: the records are public"]),
        "[records]",
        f"model = {quoted(facts.model)}",
        f"features = {quoted(facts.names)}",
        *([] if split.response is None else [f"response = {quoted(split.response)}"]),
        f"centre = {inline(split.scales.centre)}",
        f"scale = {inline(split.scales.scale)}",
        "[assumed]",
        *(f"{name} = {canonical(value)}" for name, value in split.assumed.items()),
    ]
    with open_private(folder / FACTS) as file:
        file.write("\n".join(lines) + "\n")


def quoted(value: Any) -> str:
    """Text, a list of texts or a truth value as TOML: JSON's strings are TOML's, but for DEL and pairs of halves."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(numbers: Mapping[str, Decimal]) -> str:
    """Numbers by column, as an inline table of TOML."""
    return "{" + ", ".join(f"{quoted(name)} = {canonical(value)}" for name, value in numbers.items()) + "}"


def holds_records(folder: Path) -> bool:
    """Whether a server's folder is about records. Raises StudyError where it does not read."""
    return RECORDS in read_facts_file(folder)


def read_record_split(folder: Path) -> RecordSplit:
    """The facts of a folder. Raises StudyError that names the file, what was expected and what was got."""
    content = read_facts_file(folder)
    try:
        return _read(content)
    except ValueError as error:
        raise StudyError(f"{folder / FACTS}: {error}") from None


def _read(content: dict[str, Any]) -> RecordSplit:
    top = strict.table(content, "top level", ("split", RECORDS, "assumed"), ("split", RECORDS, "assumed"))
    keys = ("trust", "unit", "central_rows", "rows", "whose")
    head = strict.table(top["split"], "split", (*keys, "seed"), keys)
    own = ("model", "features", "centre", "scale")
    told = strict.table(top[RECORDS], RECORDS, (*own, "response"), own)
    assumed = strict.table(top["assumed"], "assumed", BOUNDS)
    if not isinstance(head["rows"], list):
        raise StudyError(f"[split] rows: expected a list of one number a node, got {head['rows']!r}")
    held = tuple(strict.integer(count, "[split] rows", 1, MOST) for count in head["rows"])
    whose = strict.text(head["whose"], "[split] whose")
    if not re.fullmatch("[0-9a-f]{64}", whose):
        raise StudyError(f"[split] whose: expected 64 hexadecimal digits, got {whose[:80]!r}")
    names = strict.sequence(told["features"], "[records] features")
    facts = RecordFacts(
        model=strict.text(told["model"], "[records] model", MODELS[RECORDS]),
        names=tuple(strict.text(name, "[records] features") for name in names),
        unit=UNITS[strict.text(head["unit"], "[split] unit", UNITS)],
        rows=sum(held),
        whose=whose,
    )
    if not 1 <= facts.rows <= MOST:
        raise StudyError(f"[split] rows: expected 1 to {MOST} on all nodes, got {facts.rows}")
    return RecordSplit(
        trust=Trust.parse(strict.text(head["trust"], "[split] trust", TRUSTS)),
        facts=facts,
        held=held,
        response=strict.text(told["response"], "[records] response") if "response" in told else None,
        scales=Scales(*(_numbers(told[key], f"records.{key}") for key in ("centre", "scale"))),
        assumed=_numbers(assumed, "assumed"),
        seed=strict.integer(head["seed"], "[split] seed", 0, LARGEST_SEED) if "seed" in head else None,
        central_rows=strict.boolean(head["central_rows"], "[split] central_rows"),
    )


def _numbers(content: Any, place: str) -> dict[str, Decimal]:
    top = strict.table(content, place, content if isinstance(content, Mapping) else ())
    return {name: decimal(value, f"[{place}] {name}") for name, value in top.items()}
