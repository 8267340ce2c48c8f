"""`halftruth down`: ends a federation that runs on this machine."""

import argparse

from studies.flower.state_flag import add_state_argument, state_of

EXAMPLES = """\
examples:
  halftruth down
  halftruth down --state lab        of halftruth up --state lab, or of halftruth server --state lab

It ends all processes, also what a killed federation left. Keys, certificates, the register of nodes, the curator's
ledger and logs stay. Where nothing runs it says so."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth down`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_state_argument(parser)


def main(args: argparse.Namespace) -> int:
    """End it and say so: exit code 0, also where nothing runs; 1 where something does not end."""
    from deploy.background import stop

    state = state_of(args.state)
    print(f"Ended: logs are in {state.logs}" if stop(state) else f"Nothing runs in {state.folder}")
    return 0
