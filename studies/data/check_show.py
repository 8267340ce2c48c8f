"""A report about a holder's file on the holder's terminal."""

from collections.abc import Iterator
from typing import Any

from protocol.counting import counted
from studies.data.findings import ERROR, NOTE, WARNING, Finding
from studies.data.report import Report
from studies.terminal import print_line, print_table, printable

MARKS = {ERROR: "!!", WARNING: "! ", NOTE: "  "}
STYLES = {ERROR: "bold red", WARNING: "yellow", NOTE: ""}
MOST_COLUMNS = 30  # of numbers, in a table
LONGEST = 300  # characters of an example


def show(report: Report) -> None:
    """Format, columns, counts, findings by gravity, and at last whether the file can be used."""
    print_line(printable(f"{report.path}: {_format(report)}"))
    if report.mapping:
        said = [f"{what}: {', '.join(names)}{'' if known else ' (guessed)'}" for what, names, known in report.mapping]
        print_line(printable(f"Read as {report.kind}; {'; '.join(said)}"))
    if report.flags and report.kind != "rankings":
        print_line(printable(f"The same in flags: {report.flags}"))
    if report.counts:
        print_line("; ".join(f"{what}: {_number(value)}" for what, value in report.counts.items()))
    if report.numbers:
        names = tuple(report.numbers[0])
        rows = [[_number(facts[name]) for name in names] for facts in report.numbers[:MOST_COLUMNS]]
        print_table(names, rows, left=("column",))
    for severity in (ERROR, WARNING, NOTE):
        for finding in report.findings:
            if finding.kind.severity == severity:
                for line in _lines(finding, str(report.file.get("unit", "line"))):
                    print_line(printable(line), STYLES[severity])
    print_line("Findings depend on answers: they are for you alone.")
    verdict = "can be used as it is read here" if report.usable else "cannot be used as it is: see the lines with !!"
    print_line(printable(f"{report.path} {verdict}."))


def _format(report: Report) -> str:
    file = report.file
    if not file:
        return "not read"
    parts = [file["format"], file["compression"], file["encoding"]]
    parts += [f"delimiter {file['delimiter']!r}"] if file["delimiter"] else []
    parts += [counted(file["records"], "record", ",")] if "records" in file else []
    return ", ".join(part for part in parts if part)


def _lines(finding: Finding, unit: str) -> Iterator[str]:
    """A finding in one line, and what it means in another."""
    where = f" ({unit} {', '.join(map(str, finding.lines))}{', ...' if finding.count > len(finding.lines) else ''})"
    shown = "; ".join(text if len(text) <= LONGEST else text[:LONGEST] + "..." for text in finding.examples)
    count = f" {finding.count:,}" if finding.count > 1 else ""
    yield f"{MARKS[finding.kind.severity]} {finding.code}:{count}{where if finding.lines else ''} {shown}".rstrip()
    todo = f". Do: {finding.kind.todo}" if finding.kind.todo else ""
    yield f"     {finding.kind.means}{todo}."


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{what} {_number(part)}" for what, part in value.items())
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
