"""`python -m studies.real_records`: models of real records, private ones beside what the files say; none is private."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from protocol.strict import StudyError
from studies.real_records.evaluate import UPPER, Far, Right, level_text, measured, read, without_mean
from studies.real_records.study_file import Cells, RecordStudy, load_record_study, shipped
from studies.terminal import printable
from studies.told import told

HEADS = "| way | epsilon | estimate | error: median, 90 % | excess loss: median |\n|---|---|---|---|---|"


def main(arguments: Sequence[str]) -> int:
    """Print one Markdown table a study: exit code 0 done, 2 wrong use."""
    parser = argparse.ArgumentParser(prog="python -m studies.real_records", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of the data")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="NAME", action="append", help="some of the studies that come along (all)")
    which.add_argument("--study", metavar="FILE", type=Path, action="append", help="a study of your own (TOML)")
    parser.add_argument("--coins", metavar="N", type=int, help="coins of each line (as the study says)")
    args = parser.parse_args(arguments)
    known = shipped()
    try:
        if unknown := [name for name in args.only or [] if name not in known]:
            raise StudyError(f"--only: expected one of {', '.join(known)}, got {unknown[0]!r}")
        for path in args.study or [known[name] for name in args.only or known]:
            study = load_record_study(path, args.folder)
            study = study if args.coins is None else replace(study, coins=args.coins)
            print("\n".join(("", f"## {printable(study.name)}", "", *map(printable, table_of(study)))), flush=True)
    except StudyError as error:
        print(f"halftruth: {printable(str(error))}", file=sys.stderr)
        return 2
    return 0


def table_of(study: RecordStudy) -> list[str]:
    """The lines of a study's table, what follows from it, and what may mislead in it; or why there is none."""
    table = read(study)
    if none := without_mean(study, table):
        return [
            f"Not averaged. {'; '.join(none)}: below 1 a law has no mean, and the mean of these "
            f"{len(table.identities):,} records says nothing of others."
        ]
    right, found = measured(study, table)
    lines = HEADS.split("\n")
    lines.append(f"| {'the file' if study.reference is None else study.reference} | - | {_estimate(right)} | - | - |")
    for name, _, level in study.cells():
        cells = (name, level_text(level))
        if cells != (study.reference, "-"):
            lines.append(_line(cells, found[cells]))
    misleading = told(warnings for far in found.values() for warnings in far.warnings)
    return [*lines, *(line for said in (*verdicts(study, found), *misleading) for line in ("", said))]


def verdicts(study: RecordStudy, found: dict[Cells, Far]) -> list[str]:
    """One line on each thing that was expected: whether it is so."""
    said = []
    for expected in study.expected:
        better, than = (float(np.median(found[cells].excess)) for cells in (expected.better, expected.than))
        said.append(
            f"Expected: {expected}. {'So it is' if better < than else 'It is not so'}: {better:.3g}, {than:.3g}."
        )
    return said


def _estimate(right: Right) -> str:
    return f"{right.answer[0]:.4g}" if len(right.answer) == 1 else f"{len(right.answer)} coefficients"


def _line(cells: Cells, far: Far) -> str:
    middle, upper = np.quantile(far.error, (0.5, UPPER))
    mean = f"{far.mean[0]:.4g}" if len(far.mean) == 1 else "-"
    return f"| {' | '.join(cells)} | {mean} | {middle:.3g}, {upper:.3g} | {np.median(far.excess):.3g} |"
