"""What `halftruth data check` has found out about a file, as it goes along."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from studies.data.findings import ERROR, Finding


@dataclass
class Report:
    """A file's format, what is read as what, counts, findings, and columns of numbers; filled step by step.

    `kind` is what the file holds: comparisons, rankings or records; `error` is why it was read no further.
    """

    path: Path
    kind: str | None = None
    file: dict[str, Any] = field(default_factory=dict)
    mapping: list[tuple[str, list[str], bool]] = field(default_factory=list)
    flags: str | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    numbers: list[dict[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    error: str | None = None

    @property
    def usable(self) -> bool:
        """Whether a command can use the file as it is read here."""
        return self.error is None and not any(finding.kind.severity == ERROR for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """One JSON document."""
        return {
            "path": str(self.path),
            "usable": self.usable,
            "error": self.error,
            "kind": self.kind,
            "file": self.file,
            "columns": [{"what": what, "names": names, "guessed": not said} for what, names, said in self.mapping],
            "flags": self.flags,
            "counts": self.counts,
            "numbers": self.numbers,
            "findings": [finding.as_json() for finding in self.findings],
        }
