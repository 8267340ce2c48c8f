"""`halftruth watch`: how far a run is, from what it writes while it runs, and what nodes have left. Reads only."""

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.strict import StudyError

if TYPE_CHECKING:
    from rich.console import Console

    from studies.watch.budgets import Budgets
    from studies.watch.look import Watch

PORT = 8470
EXAMPLES = """\
examples:
  halftruth watch out/figure1
  halftruth watch out/figure1 --once
  halftruth watch out/figure1 --json
  halftruth watch out/figure1 --serve                  the same as a page, on this machine alone
  halftruth watch out/ranking                          a federation from files: halftruth federate --out out/ranking
  halftruth watch --budgets nodes                      what nodes on this machine have left, while they answer
  halftruth watch --budgets node.toml --once

It reads the folder of a run that goes on, was stopped or is finished, and may start before it: units by n, the time
left, errors so far with 95 % intervals, and messages of nodes where it runs over Flower. It ends when the run is
finished, or with Ctrl-C, which does nothing to the run. Without a terminal it looks once. Budgets are read from nodes'
own ledgers, under their own policies: of each total the one that is nearest to its cap, and no labeler's name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth watch`."""
    from studies.cli import seconds

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("out", metavar="OUT", nargs="?", help="the folder that halftruth run, or federate, writes to")
    parser.add_argument(
        "--budgets",
        metavar="PATH",
        action="append",
        default=[],
        help="show what is left, too: a node file, a folder of nodes, or a ledger; repeatable",
    )
    parser.add_argument("--once", action="store_true", help="look once")
    parser.add_argument("--json", action="store_true", help="look once, and print one JSON document")
    parser.add_argument("--serve", action="store_true", help="serve a page instead, which goes on looking")
    parser.add_argument("--host", metavar="ADDRESS", help="--serve: where to listen (127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, help="--serve: the port (8470; 0: any that is free)")
    parser.add_argument("--every", metavar="S", type=seconds, default=1.0, help="seconds between two looks (1)")


def main(args: argparse.Namespace) -> int:
    """Look at a run: exit code 0. Raises StudyError for a folder that is no run's, where it looks once."""
    from studies.folder import one_run
    from studies.terminal import Terminal
    from studies.watch.budgets import Budgets
    from studies.watch.look import Watch
    from studies.watch.show import document, shown

    _check_flags(args)
    watch = None if args.out is None else Watch(one_run(Path(args.out)))
    budgets, console = Budgets.of([Path(path) for path in args.budgets]), Terminal(highlight=False)
    if args.serve:
        from studies.watch.serve import serve

        serve(watch, budgets, args.every, args.host or "127.0.0.1", PORT if args.port is None else args.port)
    elif args.json or args.once or not console.is_terminal:
        seen, found = None if watch is None else watch.look(time.time()), budgets.look()
        if args.json:
            print(json.dumps(document(seen, found), indent=1, ensure_ascii=False))
        else:
            wide = console if console.is_terminal else Terminal(highlight=False, width=max(console.width, 120))
            wide.print(shown(seen, found))
    else:
        _live(console, watch, budgets, args.every)
    return 0


def _check_flags(args: argparse.Namespace) -> None:
    """Raise StudyError for flags that do not go together."""
    if args.out is None and not args.budgets:
        raise StudyError("expected OUT, the folder that halftruth run writes to, or --budgets PATH, got neither")
    if args.serve and (args.once or args.json):
        raise StudyError("expected --serve, or --once or --json, got both")
    if not args.serve and (args.host is not None or args.port is not None):
        raise StudyError("expected --host and --port with --serve")
    if args.port is not None and not 0 <= args.port <= 65535:
        raise StudyError(f"--port: expected 0 to 65535, got {args.port}")


def _live(console: "Console", watch: "Watch | None", budgets: "Budgets", every: float) -> None:
    """Look again and again until the run is finished; where there is none yet, or it is begun anew, wait for it."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from studies.terminal import printable
    from studies.watch.look import FINISHED
    from studies.watch.show import shown

    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        while True:
            try:
                seen = None if watch is None else watch.look(time.time())
            except StudyError as error:
                waits = Text(f"Waits for a run: {printable(str(error))}")
                live.update(Group(waits, shown(None, budgets.look())), refresh=True)
            else:
                live.update(shown(seen, budgets.look()), refresh=True)
                if seen is not None and seen.state == FINISHED:
                    return
            time.sleep(every)
