"""`halftruth ledger show`: what a labeler's ledger has charged, or what a curator has released. Never answers."""

import argparse
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol.decimals import canonical
from protocol.privacy import Unit
from protocol.strict import StudyError
from studies.ledger_words import by_run, names_of, spans

if TYPE_CHECKING:
    from server.release_file import Entry

EXAMPLES = """\
examples:
  halftruth ledger show ~/votes-state/ledger.sqlite
  halftruth ledger show ~/votes-state/curator.sqlite --json

A labeler's ledger shows every task with what it charged each label, and what each labeler has spent in total: of
records, each record and each holder. The rounds of a run, which pay once, are one line. Epsilon
and delta of a labeler protect all of their labels together, and at a delta of 1 or more nothing does. A curator's
ledger shows every release, and what they cost together as if all were about the same labels: claims added, and the same
noise counted as Gaussian, at the same delta, which says more; claims of choices are added to that. Answers, sums and
what was chosen stay in the file."""
MOST_LABELERS = 20  # in the terminal; JSON has all of them
LEFT = ("task", "rounds", "trust", "unit", "mechanism", "labeler", "holder", "coins")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth ledger show`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("path", metavar="PATH", help="a labeler's or a curator's ledger")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args: argparse.Namespace) -> int:
    """Run `halftruth ledger show`: exit code 0 done, 1 a ledger that does not read; StudyError is another file."""
    from client.ledger_store import LedgerUnavailable
    from client.ledger_view import is_label_ledger
    from server.release_file import LedgerError, is_release_ledger

    path = Path(args.path)
    if not path.is_file():
        raise StudyError(f"{path}: expected a ledger, {_instead(path)}")
    try:
        if is_label_ledger(path):
            content = label_ledger(path)
        elif is_release_ledger(path):
            content = release_ledger(path)
        else:
            raise StudyError(f"{path}: expected a labeler's or a curator's ledger, got another file")
    except (LedgerError, LedgerUnavailable) as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        _show(content)
    return 0


def label_ledger(path: Path) -> dict[str, Any]:
    """A labeler's ledger: charges by task, oldest first, and totals by labeler, largest first."""
    from client.ledger_view import read_entries, read_labelers

    labelers = sorted(read_labelers(path), key=lambda spent: (-spent.epsilon, -spent.delta, spent.labeler))
    entries = read_entries(path)
    item, owner = names_of(entry.unit for entry in entries)
    return {
        "kind": f"{owner}'s ledger",
        "tasks": [
            {
                "task": entry.task.hex(),
                "rounds": spans(entry.rounds),
                "trust": entry.trust.label,
                "unit": entry.unit.label,
                "mechanism": entry.mechanism,
                "epsilon": _text(entry.epsilon),
                "delta": _text(entry.delta),
                "level": _text(entry.level),
                **({f"{item}s": entry.labels} if item else {}),
                f"{owner}s": entry.labelers,
                "coins": entry.coins.label,
            }
            for entry in entries
        ],
        f"{owner}s": [
            {
                owner: spent.labeler,
                **({f"{item}s": spent.labels} if item else {}),
                "epsilon": _text(spent.epsilon),
                "delta": _text(spent.delta),
                **({f"most epsilon of a {item}": _text(spent.most)} if item else {}),
                **({f"most delta of a {item}": _text(spent.most_delta)} if item else {}),
            }
            for spent in labelers
        ],
    }


def release_ledger(path: Path) -> dict[str, Any]:
    """A curator's ledger: releases, oldest first, and what they cost together."""
    from server.release_file import read_releases

    releases = read_releases(path)
    item, owner = names_of(release.request.unit.replaced for release in releases)
    return {
        "kind": "curator's ledger",
        "releases": [
            {
                "task": release.request.task.hex(),
                "repetition": release.request.repetition,
                "rounds": release.request.rounds if release.request.rounds > 1 else None,
                "mechanism": release.request.mechanism,
                "epsilon": _text(release.request.epsilon),
                "delta": _text(release.request.delta),
                "unit": release.request.unit.label,
                "cap": getattr(release.request, "cap", None) or None,
                f"{item or owner}s": release.request.count,
                "reports": len(release.request.accepted),
                "stddev": _stddev(release),
                "chosen": getattr(release.request, "sparsity", None),
                "coins": release.coins.label,
            }
            for release in releases
        ],
        "together": _together(releases),
    }


def _stddev(release: "Entry") -> float | None:
    """Of a sum's noise; a choice has none, or one beside it."""
    stddev: int | None = getattr(release, "stddev", None)
    return None if stddev is None else stddev * 2.0**release.request.exponent


def _together(releases: "list[Entry]") -> list[dict[str, Any]]:
    """All releases as if about the same labels, for each unit that all of them protect."""
    from server.accountant import composition

    found = [composition(releases, unit) for unit in Unit]
    return [
        {
            "unit": one.unit.label,
            "releases": one.releases,
            "epsilon added": _text(one.basic.epsilon if one.basic else None),
            "delta added": _text(one.basic.delta if one.basic else None),
            "epsilon as Gaussian": _text(one.epsilon),
            "mu": one.mu,
        }
        for one in found
        if one is not None
    ]


def _instead(path: Path) -> str:
    """What stands where a ledger's file was expected."""
    if not path.is_dir():
        return "found no file"
    names = sorted(entry.name for entry in path.glob("*.sqlite"))
    return f"got a folder; name one of its files: {', '.join(names)}" if names else "got a folder without one"


def _show(content: dict[str, Any]) -> None:
    from studies.terminal import print_entries, print_line

    print_line(content.pop("kind"))
    for name, entries in content.items():
        shown = entries if name in ("tasks", "together") else entries[:MOST_LABELERS]
        if name == "releases":
            shown = by_run(entries)
        if not entries:
            if name != "together":
                print_line(f"No {name} yet.")
            continue
        columns = [key for key in entries[0] if any(entry[key] is not None for entry in shown)]
        cells = [[_cell(key, entry[key]) for key in columns] for entry in shown]
        print_entries(columns, cells, LEFT)
        if name == "releases" and len(shown) < len(entries):
            print_line(f"{len(entries)} releases in {len(shown)} lines: one a run, with its first round.")
        elif len(shown) < len(entries):
            print_line(f"{len(entries)} {name} in all; --json shows every one.")


def _cell(key: str, value: Any) -> str:
    """A value in few characters: ids are cut to what a person can compare, budgets rounded up."""
    from studies.terminal import rounded_up, small

    if value is None:
        return "-"
    if "delta" in key:
        return small(Decimal(value))
    if key == "level" or "epsilon" in key:
        return rounded_up(Decimal(value))
    if key == "task":
        return str(value[:12])
    if key == "mechanism":  # levels have columns of their own
        name, *parameters = value.split()
        told = (word.split("=") for word in parameters if not word.startswith(("epsilon=", "delta=")))
        return " ".join((name, *(f"{word}={float(number):.4g}" for word, number in told)))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _text(value: Decimal | None) -> str | None:
    return None if value is None else canonical(value)
