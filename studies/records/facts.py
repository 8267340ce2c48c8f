"""What may be known of a holder's records by everybody: how many rows there are, and what their numbers mean."""

import hashlib
from dataclasses import dataclass

from client.sources.record_table import RecordTable
from protocol.privacy import Unit


@dataclass(frozen=True)
class RecordFacts:
    """Public facts about records: the model, names of its coordinates, what a row is, and how many `rows` there are.

    `whose` (hex) is a hash of what names the rows and of how columns are read: one question to it has one answer.
    """

    model: str
    names: tuple[str, ...]
    unit: Unit
    rows: int
    whose: str


def facts_of(table: RecordTable) -> RecordFacts:
    """The public facts about a table; nothing of them follows from a value."""
    columns = table.columns
    whose = hashlib.sha256(repr(columns).encode() + b"".join(table.identities)).hexdigest()
    return RecordFacts(columns.model, columns.names, columns.unit, len(table.identities), whose)
