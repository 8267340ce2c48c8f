"""`halftruth watch`: how far a run is, from what it writes while it runs. Reads only."""

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.strict import StudyError

if TYPE_CHECKING:
    from rich.console import Console

    from studies.watch.look import Watch

PORT = 8470
EXAMPLES = """\
examples:
  halftruth watch out/figure1
  halftruth watch out/figure1 --once
  halftruth watch out/figure1 --json
  halftruth watch out/figure1 --serve                  the same as a page, on this machine alone

It reads the folder of a run that goes on, was stopped or is finished, and may start before it: units by n, the time
left, errors so far with 95 % intervals, and messages of nodes where it runs over Flower. It ends when the run is
finished, or with Ctrl-C, which does nothing to the run. Without a terminal it looks once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth watch`."""
    from studies.cli import seconds

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("out", metavar="OUT", help="the folder that halftruth run writes to")
    parser.add_argument("--once", action="store_true", help="look once")
    parser.add_argument("--json", action="store_true", help="look once, and print one JSON document")
    parser.add_argument("--serve", action="store_true", help="serve a page instead, which goes on looking")
    parser.add_argument("--host", metavar="ADDRESS", help="--serve: where to listen (127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, help="--serve: the port (8470; 0: any that is free)")
    parser.add_argument("--every", metavar="S", type=seconds, default=1.0, help="seconds between two looks (1)")


def main(args: argparse.Namespace) -> int:
    """Look at a run: exit code 0. Raises StudyError for a folder that is no run's, where it looks once."""
    from rich.console import Console

    from studies.folder import one_run
    from studies.watch.look import Watch
    from studies.watch.show import document, shown

    _check_flags(args)
    watch, console = Watch(one_run(Path(args.out))), Console(highlight=False)
    if args.serve:
        from studies.watch.serve import serve

        serve(watch, args.every, args.host or "127.0.0.1", PORT if args.port is None else args.port)
    elif args.json:
        print(json.dumps(document(watch.look(time.time())), indent=1, ensure_ascii=False))
    elif args.once or not console.is_terminal:
        wide = console if console.is_terminal else Console(highlight=False, width=max(console.width, 120))
        wide.print(shown(watch.look(time.time())))
    else:
        _live(console, watch, args.every)
    return 0


def _check_flags(args: argparse.Namespace) -> None:
    """Raise StudyError for flags that do not go together."""
    if args.serve and (args.once or args.json):
        raise StudyError("expected --serve, or --once or --json, got both")
    if not args.serve and (args.host is not None or args.port is not None):
        raise StudyError("expected --host and --port with --serve")
    if args.port is not None and not 0 <= args.port <= 65535:
        raise StudyError(f"--port: expected 0 to 65535, got {args.port}")


def _live(console: "Console", watch: "Watch", every: float) -> None:
    """Look again and again until the run is finished; where there is none yet, or it is begun anew, wait for it."""
    from rich.live import Live
    from rich.text import Text

    from studies.terminal import printable
    from studies.watch.look import FINISHED
    from studies.watch.show import shown

    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        while True:
            try:
                seen = watch.look(time.time())
            except StudyError as error:
                live.update(Text(f"Waits for a run: {printable(str(error))}"), refresh=True)
            else:
                live.update(shown(seen), refresh=True)
                if seen.state == FINISHED:
                    return
            time.sleep(every)
