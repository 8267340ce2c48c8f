"""`halftruth server`: a server of a federation over machines, in the foreground."""

import argparse
from pathlib import Path

from studies.flower.state_flag import add_state_argument, state_of
from studies.transcript_flag import add_transcript_argument, transcript_of

PORT = 8000
EXAMPLES = """\
examples:
  halftruth certs certs --host federation.example.org
  halftruth server --state /var/lib/halftruth --host 0.0.0.0 --port 8443 --certs certs
  halftruth keys register anna anna.pub --state /var/lib/halftruth             a node that may come
  halftruth server --state lab                                        on this machine's loopback, no encryption

It runs until it is ended, with Ctrl-C or SIGTERM. Beyond the loopback interface it wants certificates and knows its
nodes by their keys. Flower serves everything at one port, and whoever reaches it may start runs: let nodes through a
proxy that passes the fleet's paths only, and studies start on this machine, with --federation DIR. In DIR are the
register of nodes, the server's key, the curator's ledger, Flower's database, and logs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth server`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_state_argument(parser)
    add_transcript_argument(parser)
    parser.add_argument("--host", metavar="H", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", metavar="P", type=int, default=PORT, help=f"port to listen on ({PORT})")
    parser.add_argument("--certs", metavar="DIR", help="certificates, of halftruth certs")
    parser.add_argument("--no-keys", action="store_true", help="let any node come that has the CA's certificate")


def main(args: argparse.Namespace) -> int:
    """Serve until ended: exit code 0 after SIGTERM, 130 after Ctrl-C, 1 where it does not start."""
    from deploy.federation import Plan
    from deploy.keeper import keep
    from deploy.processes import Signalled

    certs = None if args.certs is None else str(Path(args.certs).resolve())
    keys = certs is not None and not args.no_keys
    state = state_of(args.state)
    kept = str(transcript_of(args) or "")
    plan = Plan(str(state.folder), 0, args.host, args.port, certs, keys, lasting=True, transcript=kept)
    try:
        keep(plan, _say)
    except Signalled:  # as systemd and Kubernetes end a service
        _say("ended")
    return 0


def _say(line: str) -> None:
    print(f"halftruth server: {line}", flush=True)
