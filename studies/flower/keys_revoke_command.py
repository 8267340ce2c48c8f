"""`halftruth keys revoke`: lets a node come no more."""

import argparse

from studies.flower.state_flag import add_state_argument, state_of

EXAMPLES = """\
examples:
  halftruth keys revoke anna --state /var/lib/halftruth

The node is told nothing: its next call is refused, and its reports no longer count. Where the server does not run, it
refuses the node from its next start on. A revoked key does not come back: make a new one, and register it with
--replaces NAME."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth keys revoke`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("name", metavar="NAME", help="the node's name in the register")
    add_state_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Revoke it: exit code 0, also where it was revoked before; StudyError where there is none of this name."""
    from deploy.look import keyed_link
    from deploy.register_file import change, read, revoked

    state = state_of(args.state)
    before = read(state.register)
    link = keyed_link(state, needed=False)
    entries = change(state, link, lambda now: revoked(now, args.name))
    again = all(entry.revoked for entry in before if entry.name == args.name)
    print(f"{'Revoked already' if again else 'Revoked'}: {args.name}" + ("" if link else "; the server does not run"))
    return 0 if entries else 1
