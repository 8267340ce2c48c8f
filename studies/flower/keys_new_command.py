"""`halftruth keys new`: a key for a node, with which it shows who it is and signs its reports."""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  halftruth keys new node.key        makes node.key, which stays with the node, and node.key.pub for the server

A key that is there is kept. To change a node's key: halftruth keys new OTHER on the node, then on the server
halftruth keys register NAME OTHER.pub --replaces NAME."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth keys new`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("path", metavar="PATH", help="where the private key is, or shall be")


def main(args: argparse.Namespace) -> int:
    """Make or keep a key and show its fingerprint: exit code 0; StudyError where PATH holds something else."""
    from deploy.node_keys import ensure_key, public_path

    path = Path(args.path)
    public, made = ensure_key(path)
    print(f"{'Made' if made else 'Kept'}: {path}, readable by you alone, and {public_path(path)} for the server")
    print(f"Fingerprint: {public.fingerprint}")
    return 0
