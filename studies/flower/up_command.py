"""`halftruth up`: a federation on this machine, in the background."""

import argparse
from pathlib import Path

from studies.flower.state_flag import add_state_argument, state_of
from studies.transcript_flag import add_transcript_argument, transcript_of

EXAMPLES = """\
examples:
  halftruth up --nodes 4                             a server and four nodes with synthetic labels
  halftruth up --nodes 4 --tls                       encrypted, every node with a key of its own
  halftruth data split votes.csv --nodes 3 --out nodes && halftruth up --nodes nodes
  halftruth status
  halftruth run studies/toml/quick.toml --out out/up --on deployment --federation
  halftruth down

It returns when all nodes are there. What dies is started again; halftruth down ends everything and keeps keys,
certificates and logs. A second halftruth up of the same federation says that it is up."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth up`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument(
        "--nodes", metavar="K", default="4", help="how many synthetic nodes (4), or a folder of halftruth data split"
    )
    parser.add_argument("--tls", action="store_true", help="encrypt, and let only nodes with a registered key come")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="port of the server (any free one)")
    add_state_argument(parser)
    add_transcript_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Start a federation and say where it is: exit code 0, 1 where it does not start; StudyError is wrong use."""
    from deploy import certs
    from deploy.background import start
    from deploy.federation import Plan

    state = state_of(args.state).make()
    if args.tls:
        certs.ensure(state.certs)
    plan = Plan(
        str(state.folder),
        _nodes(args.nodes),
        port=args.port,
        certs=str(state.certs) if args.tls else None,
        keys=args.tls,
        transcript=str(transcript_of(args) or ""),
    )
    record, new = start(plan)
    print(f"{'Up' if new else 'Up already'} at {record.address}: {record.plan.describe()}")
    print(f"Logs: {state.logs}\nUse it: halftruth run STUDY --out OUT --on deployment --federation{_named(args.state)}")
    return 0


def _nodes(text: str) -> int | str:
    from protocol.strict import StudyError

    if text.isdecimal() and 1 <= int(text) <= 64:
        return int(text)
    if Path(text).is_dir():
        return str(Path(text).resolve())
    raise StudyError(f"--nodes: expected 1 to 64 synthetic nodes, or a folder of halftruth data split, got {text!r}")


def _named(state: str | None) -> str:
    return f" {state}" if state else ""
