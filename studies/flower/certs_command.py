"""`halftruth certs`: a certificate authority and a server's certificate for a federation."""

import argparse
from pathlib import Path

from studies.cli import count

EXAMPLES = """\
examples:
  halftruth certs certs                                              for this machine alone
  halftruth certs certs --host federation.example.org --host 10.0.0.5
  halftruth certs certs --host new.example.org --renew               a new certificate by the same authority

Nodes get DIR/ca.crt, which is no secret; DIR/server.crt and DIR/server.key stay with the server, and DIR/ca.key where
nobody else reads it: whoever has it can be the server. A second run keeps what is there and good."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth certs`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("folder", metavar="DIR", help="where the files are, or shall be")
    parser.add_argument(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name or address by which nodes reach the server, beside those of this machine's loopback; repeatable",
    )
    parser.add_argument("--days", metavar="N", type=count, default=365, help="how long the certificate is valid (365)")
    parser.add_argument("--renew", action="store_true", help="issue a new certificate of the server")


def main(args: argparse.Namespace) -> int:
    """Make or keep the certificates and say which: exit code 0; StudyError for files that are not usable."""
    from deploy.certs import CERTIFICATE, ensure

    found, made = ensure(Path(args.folder), tuple(args.host), days=args.days, renew=args.renew)
    print(f"{'Made' if CERTIFICATE in made else 'Kept'}: {found.certificate}, for {', '.join(found.hosts)}")
    print(f"Valid until {found.until:%Y-%m-%d}. For nodes: {found.authority}")
    if args.renew:
        print("A server that runs serves the old one until it is started again")
    return 0
