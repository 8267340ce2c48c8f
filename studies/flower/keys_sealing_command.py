"""`halftruth keys sealing`: the key pair of sealed reports, which go through a shuffler."""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  halftruth keys sealing sealing.key     makes sealing.key for the server, and sealing.key.pub for every node

Nodes seal shuffled reports to the public half, so that the shuffler reads none of them: name it in [shuffler] of a
node's file. The private half stays with the server, away from the shuffler: name it in shuffler.toml of the server's
state folder. A key that is there is kept."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth keys sealing`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("path", metavar="PATH", help="where the private key is, or shall be")


def main(args: argparse.Namespace) -> int:
    """Make or keep a key and show its fingerprint: exit code 0; StudyError where PATH holds something else."""
    from deploy.node_keys import public_path
    from deploy.sealing_keys import ensure_sealing_key

    path = Path(args.path)
    fingerprint, made = ensure_sealing_key(path)
    print(f"{'Made' if made else 'Kept'}: {path}, readable by you alone, and {public_path(path)} for the nodes")
    print(f"SHA-256 of the public half: {fingerprint}")
    return 0
