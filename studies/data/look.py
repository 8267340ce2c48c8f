"""A look at a whole file: its format, and then comparisons, rankings or numbers, whichever it holds."""

import argparse
from pathlib import Path
from typing import Any

from client.sources.columns import NoComparison
from client.sources.reading import Records, SourceError, read_records
from client.sources.text_formats import Delimited, Objects
from studies.data.findings import MOST_SHOWN, Finding
from studies.data.look_comparisons import look_at_comparisons
from studies.data.look_names import found_at
from studies.data.look_numbers import facts_of, findings_of, look_at_numbers
from studies.data.look_rankings import look_at_rankings
from studies.data.report import Report
from studies.holder_file import column_names, holds_rankings, wanted, wanted_ranking

MOST_COLUMNS = 2000  # of numbers that are looked at


def look(args: argparse.Namespace) -> Report:
    """Look at FILE as the flags say; whatever keeps it from being read is in the report. Raises OSError, StudyError."""
    report = Report(Path(args.file))
    try:
        records = read_records(report.path)
        report.file = _format(records)
        report.file["records"] = len(records)
        report.findings += _other_keys(records)
        _look_inside(report, records, args)
    except SourceError as error:
        report.error = str(error)
        report.findings.append(Finding("cannot-be-used", 1, (), (report.error,)))
    return report


def _look_inside(report: Report, records: Records, args: argparse.Namespace) -> None:
    """What the file holds: as the flags say, else as the names of its columns do, else numbers where there are some."""
    if args.records or args.columns is not None:
        _look_at_records(report, records, column_names(args.columns))
    elif holds_rankings(args, records.names):
        look_at_rankings(report, records, wanted_ranking(args), args)
    else:
        try:
            look_at_comparisons(report, records, wanted(args), args)
        except NoComparison as error:
            said = f"{error}; where it holds rankings: --ranking long, wide or best-worst"
            if not _look_at_records(report, records, None):
                raise SourceError(said) from None
            report.findings.append(Finding("no-comparisons", 1, (), (said,)))


def _look_at_records(report: Report, records: Records, names: tuple[str, ...] | None) -> bool:
    """Columns of numbers: those that are named, else all that look so; whether there are any. Raises SourceError."""
    for name in names or ():
        if records.names.count(name) != 1:
            listed = ", ".join(records.names)
            raise SourceError(f"{records.path}, header: expected one column {name!r}, found the columns {listed}")
    single = [name for name in records.names if records.names.count(name) == 1]
    looks = look_at_numbers(records, (single if names is None else names)[:MOST_COLUMNS])
    text = [one.name for one in looks if names is None and not one.numeric]
    looks = [one for one in looks if one.name not in text]
    if not looks:
        return False
    report.kind = "records"
    report.mapping = [("numbers", [one.name for one in looks], names is not None)]
    if text:
        report.mapping.append(("text, which was not looked at", text, False))
    report.flags = f"--columns {','.join(one.name for one in looks)}"
    report.numbers = [facts_of(one) for one in looks]
    report.findings += findings_of(records, looks)
    return True


def _format(records: Records) -> dict[str, Any]:
    """How the file is written."""
    form = records.format
    text = isinstance(form, Delimited | Objects)
    return {
        "format": form.kind,
        "unit": form.unit,
        "compression": records.packed,
        "encoding": "UTF-8" if text else None,
        "delimiter": form.delimiter if isinstance(form, Delimited) else None,
        "columns": list(records.names),
    }


def _other_keys(records: Records) -> list[Finding]:
    """Records of JSONL whose keys are not those of the first one."""
    if not isinstance(records.format, Objects):
        return []
    known: set[str] | None = None
    places: list[int] = []
    shown: list[str] = []
    for place, (_, record) in enumerate(records.format.objects()):
        known = set(record) if known is None else known
        if record.keys() != known:
            places.append(place)
            if len(shown) < MOST_SHOWN:
                shown.append(", ".join(map(repr, record)))
    return [found_at("other-keys", records, places, shown)] if places else []
