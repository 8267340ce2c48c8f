"""`halftruth shuffler`: a shuffler between nodes and a server, in the foreground."""

import argparse
import sys
from pathlib import Path

from protocol.counting import counted

EXAMPLES = """\
examples:
  halftruth shuffler --config shuffler.toml

shuffler.toml:
  [shuffler]
  address = "0.0.0.0:9443"
  certificate = "server.crt"       # and key, as halftruth certs makes them; or insecure = true
  key = "server.key"
  state = "shuffler.sqlite"
  nodes = "nodes.toml"             # the nodes whose reports are taken: a register as the server's
  server_key = "server.key.pub"    # under which the server fetches
  least = 50                       # the fewest reports of a question that are passed on

It takes sealed reports of these nodes, waits until every question has as many as they want to be among, and passes
them on in an order that nobody knows; once, to one server. Run it where whoever runs the server has no say: together
they see who answered what, but for each label's own randomisation. It ends with Ctrl-C or SIGTERM, and goes on where it
was. docs/SHUFFLING.md says the rest."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth shuffler`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--config", metavar="FILE", required=True, help="the shuffler's own file")


def main(args: argparse.Namespace) -> int:
    """Serve until ended: exit code 0; StudyError for a wrong file, RunFailed where it does not start."""
    from deploy.shuffler import serving, until_ended
    from deploy.shuffler_file import read_shuffler

    asked = read_shuffler(Path(args.config))
    open_ended = sum(node.count is None and not node.revoked for node in asked.register.nodes)
    if open_ended:
        print(f"halftruth shuffler: {_warned(open_ended)}", file=sys.stderr, flush=True)
    with serving(asked) as address:
        print(f"halftruth shuffler: takes sealed reports at {address} (Ctrl-C ends it)", flush=True)
        until_ended()
    print("halftruth shuffler: ended", flush=True)
    return 0


def _warned(nodes: int) -> str:
    """What a register without rows lets a node do."""
    return f"{counted(nodes, 'node')} of the register without rows: such a node can fill any question by itself"
