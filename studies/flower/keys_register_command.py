"""`halftruth keys register`: lets a node come to a server that runs on this machine."""

import argparse
from pathlib import Path

from studies.flower.state_flag import add_state_argument, state_of

EXAMPLES = """\
examples:
  halftruth keys register anna anna.pub --state /var/lib/halftruth
  halftruth keys register anna anna.pub --rows 0:720,1440:2160          the only rows that anna answers for
  halftruth keys register anna new.pub --replaces anna                  a new key; the old one is revoked
  halftruth keys register ward-b b.pub --replaces ward-a                another node takes over, with ward-a's rows

The server has to run (halftruth server, or up --tls). The same key again changes nothing but its rows; a name has one
key that is heard and a key one name. A revoked key stays in the register and never comes back."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth keys register`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("name", metavar="NAME", help="what the node is called in the server's summaries")
    parser.add_argument("key", metavar="PUBKEY", help="its public key, of halftruth keys new")
    parser.add_argument("--rows", metavar="A:B,...", help="the only rows that it answers for, start:stop (any)")
    parser.add_argument(
        "--replaces", metavar="OLD", help="the node whose key is revoked now, and whose rows this one has"
    )
    add_state_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Register it and say its id: exit code 0, 1 where the server does not take it; StudyError is wrong use."""
    from deploy.look import keyed_link
    from deploy.node_keys import read_public
    from deploy.register_file import change, read, registered

    state, key = state_of(args.state), read_public(Path(args.key))
    before = read(state.register)
    link = keyed_link(state)
    entries = change(state, link, lambda now: registered(now, args.name, key, args.rows, args.replaces))
    (entry,) = (entry for entry in entries if entry.key == key)
    how = "Registered already" if entry in before else "Registered"
    print(f"{how}: {entry.name}, {key.fingerprint}, id {entry.node}" + (f", rows {entry.rows}" if entry.rows else ""))
    return 0
