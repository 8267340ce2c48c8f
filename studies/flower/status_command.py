"""`halftruth status`: what of a federation runs on this machine."""

import argparse
import json
from typing import TYPE_CHECKING

from studies.flower.state_flag import add_state_argument, state_of

if TYPE_CHECKING:  # --help need not wait for what it runs
    from deploy.look import Status

EXAMPLES = """\
examples:
  halftruth status
  halftruth status --state /var/lib/halftruth --json

It shows processes with their CPU seconds and resident memory, nodes as the server sees them, and the last lines that
a process wrote which should run and does not. Exit code 0: all of it runs; 1: not, or not yet."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth status`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args: argparse.Namespace) -> int:
    """Show it: exit code 0 where everything runs, else 1."""
    from deploy.look import status

    found = status(state_of(args.state))
    if args.json:
        print(json.dumps(found.describe(), indent=1))
    else:
        _show(found)
    return 0 if found.phase == "running" and not found.ended else 1


def _show(found: "Status") -> None:
    from studies.terminal import print_line

    print_line(f"{found.phase}: {found.what or found.state}" + (f" at {found.address}" if found.address else ""))
    if found.reason:
        print_line(found.reason)
    if found.phase == "killed":
        print_line(f"Its keeper was killed: halftruth down --state {found.state} cleans up")
    for name, taken in sorted(found.taken.items()):
        again = found.starts.get(name, 1) - 1
        print_line(
            f"  {name:12} {taken.processes} processes {taken.cpu_seconds:8.1f} CPU s {taken.memory_mb:8.0f} MB"
            + (f"  started again {again} times" if again else "")
        )
    if found.nodes:
        print_line(f"{found.online} nodes online")
    for node in found.nodes:
        print_line(f"  {node.name or 'a node':16} {node.status:12} {node.id}")
    for name, lines in found.ended.items():
        print_line(f"{name} does not run; its log ends with:")
        for line in lines:
            print_line(f"  {line}")
