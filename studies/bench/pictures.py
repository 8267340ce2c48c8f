"""`halftruth bench --scaling` and `--round`: measured, shown, drawn, and kept as JSON."""

import argparse
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

from protocol.strict import StudyError, make_folder
from studies.bench import growth_show, parts_show
from studies.bench.cores import core_points
from studies.bench.growth import points
from studies.bench.machine import facts, load, told
from studies.bench.parts import SHOWN, parts
from studies.bench.row import dump
from studies.flower.measured import Work
from studies.terminal import print_line

SMALL = {"warm-careful": Work(clients=2, rounds=4, records=2_000, dimension=4)}


def pictures(args: argparse.Namespace) -> int:
    """Measure what was asked for: exit code 0, or 1 on Ctrl-C, when what was measured is shown and kept.

    Raises StudyError for wrong use, RunFailed where a run fails.
    """
    if args.out is None:
        raise StudyError("expected --out DIR with --scaling or --round, got none")
    if args.names or args.against is not None:
        raise StudyError("expected --scaling or --round without figures and without --against, got them together")
    make_folder(args.out, "--out")
    code = 0
    if args.scaling:
        words, runs = f"--scaling --runs {args.runs}", args.runs
        code = _kept(
            "scaling", words, args, chain(points(runs, args.small), core_points(runs, args.small)), growth_show
        )
    if args.round and not code:
        works = SMALL if args.small else SHOWN
        code = _kept("round", "--round", args, (parts(name, work) for name, work in works.items()), parts_show)
    return code


def _kept(name: str, words: str, args: argparse.Namespace, measured: Iterable[Any], shown: Any) -> int:
    before, folder, found, code = load(), args.out, list[Any](), 0
    try:
        for one in measured:
            found.append(one)
            print_line(shown.line(one), style="dim")
    except KeyboardInterrupt:
        print(f"halftruth: --{name}: interrupted", file=sys.stderr)
        code = 1
    if not found:
        return code
    where = facts(before, f"halftruth bench {words}{' --small' if args.small else ''} --out {folder}")
    shown.show(found)
    paths = shown.draw(found, folder)
    path = folder / f"{name}.json"
    dump(found, where, path)
    print_line(f"{told(where)}\n{where['command']}\n{', '.join(map(str, [*paths, path]))}")
    return code
