"""The [source] of a node file that names a file of records: which columns are what, and what a row is."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from client.policy import Policy
from client.sources.numbers import Scales
from client.sources.record_columns import MISSING, REFUSE, RecordColumns
from client.sources.record_table import RecordTable, read_record_table
from client.table_file import path_at
from protocol import strict
from protocol.decimals import decimal
from protocol.privacy import Unit
from protocol.problem import MODELS, RECORDS
from protocol.strict import StudyError
from protocol.trust import Trust

UNITS = {unit.label: unit for unit in (Unit.RECORD, Unit.HOLDER)}
NAMES = ("response", "id", "holder", "row")
COLUMN_KEYS = ("features", "model", "unit", *NAMES, "missing", "intercept", "centre", "scale")
RECORD_KEYS = ("file", "public", *COLUMN_KEYS)


@dataclass(frozen=True)
class RecordFile:
    """A file of records; `public` declares that they are no secret."""

    file: Path
    public: bool
    columns: RecordColumns

    def read(self) -> RecordTable:
        """The table of this file. Raises SourceError."""
        return read_record_table(self.file, self.public, self.columns)

    def check(self, policy: Policy, trusts_named: bool) -> None:
        """A policy has to say whom it trusts and that it protects what a row is; claims need ids. Raises StudyError."""
        unit = self.columns.unit
        if not trusts_named or policy.units != {unit}:
            named = "names" if trusts_named else "does not name"
            raise StudyError(
                f'[policy] expected trust, and units = ["{unit.label}"], which is what a row of records is; '
                f"got {sorted(each.label for each in policy.units)}, and it {named} trust"
            )
        if unit is Unit.RECORD and self.columns.id is None and not self.public and policy.trusts != {Trust.CLEAR}:
            raise StudyError(
                "[source] id: expected a column of ids that stay with their records: without it a record that moves to "
                "another line would be charged as somebody else's, so that no claim holds"
            )


def parse_record_file(top: Mapping[str, Any], folder: Path, place: str = "source") -> RecordFile:
    """Read a [source] of kind "records"; relative paths are relative to `folder`. Raises StudyError."""
    strict.table(top, place, ("kind", *RECORD_KEYS), ("file", "features"))
    file = path_at(top, "file", f"[{place}]", folder)
    assert file is not None
    return RecordFile(file, strict.boolean(top.get("public", False), f"[{place}] public"), parse_columns(top, place))


def parse_columns(top: Mapping[str, Any], place: str) -> RecordColumns:
    """Read what the columns of a file of records are. Raises StudyError that names the place."""
    listed = strict.sequence(top["features"], f"[{place}] features")
    named = {key: strict.text(top[key], f"[{place}] {key}") for key in NAMES if key in top}
    model = strict.text(top.get("model", "mean"), f"[{place}] model", MODELS[RECORDS])
    unit = strict.text(top.get("unit", Unit.RECORD.label), f"[{place}] unit", UNITS)
    scales = Scales(*(_numbers(top.get(key, {}), f"{place}.{key}") for key in ("centre", "scale")))
    try:
        return RecordColumns(
            features=tuple(strict.text(name, f"[{place}] features") for name in listed),
            model=model,
            unit=UNITS[unit],
            missing=strict.text(top.get("missing", REFUSE), f"[{place}] missing", MISSING),
            intercept=strict.boolean(top.get("intercept", False), f"[{place}] intercept"),
            scales=scales,
            **named,
        )
    except StudyError as error:
        raise StudyError(f"[{place}] {str(error).removeprefix(f'[{place}] ')}") from None


def _numbers(content: Any, place: str) -> dict[str, Decimal]:
    top = strict.table(content, place, content if isinstance(content, Mapping) else ())
    try:
        return {name: decimal(value, f"[{place}] {name}") for name, value in top.items()}
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(str(error)) from None
