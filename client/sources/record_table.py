"""Records of a holder's file, as a source: numbers by column, in rows that are records or holders.

Public is how many rows there are, and nothing else: how many records a holder has is its own. Rows stand in the order
of hashes of their ids or holders, or as a column of row numbers says: an order of lines may follow from values. The
whole file is validated when it is read; errors are for the holder's own terminal.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.records import Records
from client.sources import Facts, ProblemUnknown, reading
from client.sources.identities import Identities
from client.sources.numbers import Floats, absent_texts, filled, missing_columns, number_columns
from client.sources.reading import SourceError
from client.sources.record_columns import DROP, REFUSE, RecordColumns
from protocol.messages import Runs, Task
from protocol.privacy import Unit
from protocol.problem import RECORDS
from protocol.strict import StudyError
from protocol.study import MOST
from protocol.trust import Trust

DOMAIN = b"halftruth record v1\n"
MOST_HELD = 1 << 28  # numbers, padding included


@dataclass(frozen=True, eq=False)
class RecordTable:
    """Records of one file. `rows_held` are the global numbers of its rows, increasing: 0, 1, ... or a column's.

    `labelers` are whose the rows are, by name: holders, or without a column of holders each record is somebody else's.
    `lasting` says that identities come from ids or holders, and not from places in the file: without it a claim is
    refused unless the records are `public`. `dropped` counts records left out because a value is missing. `absent` are
    wanted NAME=TEXT of which no cell is TEXT, and how many texts there are: for the holder's own terminal alone.
    """

    path: Path
    public: bool
    columns: RecordColumns
    rows_held: NDArray[np.int64]
    dropped: int
    lasting: bool
    held: Records = field(repr=False)
    labelers: tuple[str, ...] = field(repr=False)
    owners: NDArray[np.int64] = field(repr=False)
    identities: Identities = field(repr=False)
    absent: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    synthetic = False

    def check(self, task: Task) -> None:
        """The task must be about this model, these coordinates and this unit; claims need identities that last."""
        asked, own = task.problem, self.columns
        if (asked.kind, asked.model, asked.dimension) != (RECORDS, own.model, len(own.names)):
            raise ProblemUnknown(f"expected the model {own.model} of {len(own.names)} coordinates")
        if task.unit is not own.unit:
            raise ProblemUnknown(f"expected the unit {own.unit.label}, which a row of this file is")
        if task.trust is not Trust.CLEAR and not (self.lasting or self.public):
            raise ProblemUnknown("expected no claim about records without ids: they could be charged as others later")

    def rows(self, task: Task) -> Runs:
        """Rows held below n."""
        return Runs.of(self.rows_held[self.rows_held < task.n].tolist())

    def facts(self, rows: NDArray[np.int64]) -> Facts | None:
        """Whose records these rows are."""
        places = np.searchsorted(self.rows_held, rows)
        return Facts(self.identities.at(places), self.owners[places], self.labelers)

    def levels(self, task: Task, rows: NDArray[np.int64]) -> None:
        """Nothing is drawn here: the node's policy says which levels its holders ask for."""

    def records(self, task: Task, repetition: int, rows: NDArray[np.int64]) -> Records:
        """Records of these rows."""
        if len(rows) == len(self.rows_held):
            return self.held
        return _some(self.held, np.searchsorted(self.rows_held, rows))

    def part(self, rows: NDArray[np.int64]) -> "RecordTable":
        """The same with some of the rows, by their global numbers in order."""
        places = np.searchsorted(self.rows_held, rows)
        held, identities = _some(self.held, places), self.identities.at(places)
        return replace(self, rows_held=rows, held=held, owners=self.owners[places], identities=identities)


def read_record_table(path: Path, public: bool, columns: RecordColumns) -> RecordTable:
    """Read and validate a file of records. Raises SourceError for the first cell that does not fit."""
    records = reading.read_records(path)
    try:
        columns = columns.within(records.names)
    except StudyError as error:
        raise SourceError(f"{path}, header: {error}") from None
    if wrong := missing_columns(records, columns.named()):
        listed = ", ".join(records.names)
        raise SourceError(f"{path}, header: expected one column {wrong[0]!r}, found the columns {listed}")
    features, responses, places = _values(records, columns)
    names = None if columns.id is None else _ids(records, columns.id)
    owners = None if columns.holder is None else filled(records, columns.holder)
    named = [f"row {place}" for place in range(len(records))] if names is None else names
    holders = [(named if owners is None else owners)[place] for place in places.tolist()]
    ids = [named[place] for place in places.tolist()]
    if columns.unit is Unit.HOLDER:
        held, rows, keys = _by_holder(features, responses, holders)
    else:
        held = Records(features[:, None], None if responses is None else responses[:, None])
        rows, keys = np.arange(len(ids)), ids
    who = [holders[row] for row in rows.tolist()] if columns.unit is Unit.RECORD else keys
    labelers = tuple(sorted(set(who)))
    number = {name: index for index, name in enumerate(labelers)}
    table = RecordTable(
        path=path,
        public=public,
        columns=columns,
        rows_held=_row_numbers(records, columns, places, holders, rows),
        dropped=len(records) - len(places),
        lasting=columns.unit is Unit.HOLDER or names is not None,
        held=held,
        labelers=labelers,
        owners=np.array([number[name] for name in who], dtype=np.int64),
        identities=Identities.of(record_identity(columns.unit, key) for key in keys),
        absent=tuple(absent_texts(records, columns.named())),
    )
    return by_hash(table) if table.lasting and columns.row is None else table


def by_hash(table: RecordTable) -> RecordTable:
    """Rows in the order of hashes of what names them: the lines of a file may be sorted by what its records hold."""
    order = np.argsort(table.identities.array(), kind="stable")
    held = _some(table.held, order)
    return replace(table, held=held, owners=table.owners[order], identities=table.identities.at(order))


def record_identity(unit: Unit, name: str) -> bytes:
    """32 bytes that name a record by its id, or all records of a holder by the holder's name; whatever they hold."""
    return hashlib.sha256(DOMAIN + f"{unit.label} {name}".encode()).digest()


def _some(held: Records, places: NDArray[np.int64]) -> Records:
    features, responses, counts = held.reveal()
    return Records(
        features[places],
        None if responses is None else responses[places],
        None if counts is None else counts[places],
    )


def _values(records: reading.Records, columns: RecordColumns) -> tuple[Floats, Floats | None, NDArray[np.int64]]:
    """Scaled features (kept, d) and responses (kept,), and the places of the records that are kept."""
    found = number_columns(records, [name for name in (*columns.features, columns.response) if name is not None])
    response = None if columns.response is None else found.pop()
    read = [columns.scales.of(name, values) for name, values in zip(columns.features, found, strict=True)]
    kept = np.ones(len(records), dtype=np.bool_)
    for name, values in zip(columns.named(), read + ([] if response is None else [response]), strict=False):
        absent = np.isnan(values)
        if columns.missing == DROP:
            kept &= ~absent
        elif absent.any() and (columns.missing == REFUSE or name == columns.response):
            where = records.where(int(np.argmax(absent)))
            said = "a response" if name == columns.response else "a number"
            raise SourceError(f"{where}, column {name}: expected {said}, got an empty cell: {_advice(columns, name)}")
    if not kept.any():
        raise SourceError(f"{records.path}: expected at least one record without missing values, got none")
    features = np.nan_to_num(np.stack(read, axis=1), nan=0.0)[kept]
    if columns.intercept:
        features = np.append(features, np.ones((len(features), 1)), axis=1)
    places = np.flatnonzero(kept)
    if response is None:
        return features, None, places
    assert columns.response is not None
    _check_response(records, columns, response)
    return features, columns.scales.of(columns.response, response)[kept], places


def _advice(columns: RecordColumns, name: str) -> str:
    drop = f'say missing = "{DROP}" if it is no secret which records lack a value'
    return drop if name == columns.response else f'{drop}, or missing = "zero"'


def _check_response(records: reading.Records, columns: RecordColumns, response: Floats) -> None:
    wrong = ~np.isin(response, (0.0, 1.0)) & ~np.isnan(response)
    if columns.model == "logistic" and wrong.any():
        place, name = int(np.argmax(wrong)), columns.response
        where = f"{records.where(place)}, column {name}"
        raise SourceError(f"{where}: expected 0 or 1, got {response[place]:g}: or say {name}=TEXT, which is 1 at TEXT")


def _ids(records: reading.Records, name: str) -> list[str]:
    """A column of ids, all different."""
    found = filled(records, name)
    seen: set[str] = set()
    for place, text in enumerate(found):
        if text in seen:
            raise SourceError(f"{records.where(place)}, column {name}: expected different ids, got {text!r} again")
        seen.add(text)
    return found


def _by_holder(
    features: Floats, responses: Floats | None, holders: Sequence[str]
) -> tuple[Records, NDArray[np.int64], list[str]]:
    """A row for each holder, in the order in which the file first names them: records, first places, names."""
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(holders):
        groups.setdefault(name, []).append(place)
    counts = np.array([len(places) for places in groups.values()], dtype=np.int64)
    most = int(counts.max())
    if len(groups) * most * features.shape[1] > MOST_HELD:
        raise SourceError(f"expected holders with fewer records: {len(groups)} rows as long as the longest, {most}")
    x = np.zeros((len(groups), most, features.shape[1]))
    y = None if responses is None else np.zeros((len(groups), most))
    for row, places in enumerate(groups.values()):
        x[row, : len(places)] = features[places]
        if y is not None and responses is not None:
            y[row, : len(places)] = responses[places]
    first = np.array([places[0] for places in groups.values()], dtype=np.int64)
    return Records(x, y, counts), first, list(groups)


def _row_numbers(
    records: reading.Records,
    columns: RecordColumns,
    places: NDArray[np.int64],
    holders: Sequence[str],
    rows: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Global row numbers: in order, or those of their column, which rise, and are one for all records of a holder."""
    if columns.row is None:
        return np.arange(len(rows))
    texts = filled(records, columns.row)
    own = [texts[place] for place in places.tolist()]
    found: list[int] = []
    for row in rows.tolist():
        text = own[row]
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else -1
        if not (found[-1] if found else -1) < number <= MOST:
            where = f"{records.where(int(places[row]))}, column {columns.row}"
            raise SourceError(f"{where}: expected a row number above the one before, got {text!r}")
        found.append(number)
    if columns.unit is Unit.HOLDER:
        first = {holders[row]: own[row] for row in rows.tolist()}
        for place, (name, text) in enumerate(zip(holders, own, strict=True)):
            if text != first[name]:
                where = f"{records.where(int(places[place]))}, column {columns.row}"
                raise SourceError(f"{where}: expected one row number for all records of a holder, got {text!r}")
    return np.array(found, dtype=np.int64)
