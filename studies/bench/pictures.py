"""`halftruth bench --scaling` and `--round`: measured, shown, drawn, and kept as JSON."""

import argparse
from collections.abc import Callable
from typing import Any

from protocol.strict import StudyError, make_folder
from studies.bench import growth_show, parts_show
from studies.bench.growth import points
from studies.bench.machine import facts, load, told
from studies.bench.parts import SETTINGS_SHOWN, WORK, parts
from studies.bench.row import dump
from studies.flower.measured import Work
from studies.terminal import print_line

SMALL = Work(clients=2, rounds=4, records=2_000, dimension=4)  # on one setting


def pictures(args: argparse.Namespace) -> int:
    """Measure what was asked for: exit code 0. Raises StudyError for wrong use, RunFailed where a federation fails."""
    if args.out is None:
        raise StudyError("expected --out DIR with --scaling or --round, got none")
    if args.names or args.against is not None:
        raise StudyError("expected --scaling or --round without figures and without --against, got them together")
    make_folder(args.out, "--out")
    if args.scaling:
        words = f"--scaling --runs {args.runs}"
        _kept("scaling", words, args, lambda: list(points(args.runs, args.small)), growth_show)
    if args.round:
        names, work = (SETTINGS_SHOWN[:1], SMALL) if args.small else (SETTINGS_SHOWN, WORK)
        _kept("round", "--round", args, lambda: [parts(name, work) for name in names], parts_show)
    return 0


def _kept(name: str, words: str, args: argparse.Namespace, measure: Callable[[], list[Any]], shown: Any) -> None:
    before, folder = load(), args.out
    found = measure()
    where = facts(before, f"halftruth bench {words}{' --small' if args.small else ''} --out {folder}")
    shown.show(found)
    paths = shown.draw(found, folder)
    path = folder / f"{name}.json"
    dump(found, where, path)
    print_line(f"{told(where)}\n{where['command']}\n{', '.join(map(str, [*paths, path]))}")
