"""`halftruth keys list`: the register of a server's nodes."""

import argparse
import json

from studies.flower.state_flag import add_state_argument, state_of

EXAMPLES = """\
examples:
  halftruth keys list --state /var/lib/halftruth
  halftruth keys list --json

Whether they are online: halftruth status."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth keys list`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_state_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args: argparse.Namespace) -> int:
    """Show names, fingerprints, ids and rows: exit code 0; StudyError for a register that does not read."""
    from deploy.register_file import read

    state = state_of(args.state)
    entries = read(state.register)
    if args.json:
        shown = [
            {"name": e.name, "key": e.key.line, "id": e.node, "rows": e.rows, "revoked": e.revoked} for e in entries
        ]
        print(json.dumps(shown, indent=1))
        return 0
    for entry in entries:
        how = "revoked" if entry.revoked else f"rows {entry.rows}" if entry.rows else "any rows"
        print(f"{entry.name:16} {entry.key.fingerprint}  id {entry.node}  {how}")
    if not entries:
        print(f"No node is registered in {state.register}")
    return 0
