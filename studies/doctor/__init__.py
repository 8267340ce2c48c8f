"""`halftruth doctor`: whether this machine has what studies and federations need, and what to do where it has not."""

import argparse
import json
from dataclasses import asdict

EXAMPLES = """\
examples:
  halftruth doctor
  halftruth doctor --port 8443            is the port free for halftruth server?
  halftruth doctor --state /var/lib/halftruth --json

It changes nothing that stays. Exit code 0 where everything needed is there, 1 where something is missing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth doctor`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--port", metavar="N", type=int, help="a port that a server is to listen on, or any free one")
    parser.add_argument("--state", metavar="DIR", help="folder for ledgers and federations (the user's state folder)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")


def main(args: argparse.Namespace) -> int:
    """Look at everything and say it: 0 where nothing fails, else 1. StudyError is wrong use."""
    from protocol.strict import StudyError
    from studies.doctor.checks import FAIL, Asked, examine
    from studies.own_flags import state_of
    from studies.terminal import print_line, print_table

    if args.port is not None and not 1 <= args.port <= 65535:
        raise StudyError(f"--port: expected 1 to 65535, got {args.port}")
    findings = examine(Asked(state_of(args.state), args.port))
    failed = [each for each in findings if each.verdict == FAIL]
    if args.json:
        print(json.dumps([asdict(each) for each in findings], indent=1))
        return 1 if failed else 0
    rows = [(each.verdict, each.name, each.found) for each in findings]
    print_table(("", "what", "found"), rows, left=("", "what", "found"))
    for each in findings:
        if each.advice:
            print_line(f"{each.name}: {each.advice}")
    missing = ", ".join(each.name for each in failed)
    print_line(f"What is needed and missing: {missing}." if failed else "Everything needed is there.")
    return 1 if failed else 0
