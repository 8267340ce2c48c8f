"""Whether a SuperLink or a SuperNode of this machine answers: `python -m deploy.health PORT [--certs DIR]`, for probes.

Standard library only, so that asking costs little. Exit code 0: it is well; 1: it is not.
"""

import argparse
import http.client
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.ports import HOST

SECONDS = 5.0


def is_well(port: int, authority: Path | None = None) -> bool:
    """Whether GET /health on a port of the loopback interface brings 200; with `authority`, over TLS that it signed."""
    try:
        if authority is None:
            talk = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
        else:
            trust = ssl.create_default_context(cafile=authority)
            talk = http.client.HTTPSConnection(HOST, port, timeout=SECONDS, context=trust)
        talk.request("GET", "/health")
        return talk.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):  # nobody there, no TLS, or a certificate of somebody else
        return False


def main(argv: Sequence[str] | None = None) -> int:
    """Ask once; TLS is expected exactly where the folder of certificates holds ca.crt."""
    parser = argparse.ArgumentParser(prog="python -m deploy.health", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--certs", metavar="DIR", type=Path, help="the server's folder of certificates")
    args = parser.parse_args(argv)
    authority = args.certs / "ca.crt" if args.certs is not None else None
    return 0 if is_well(args.port, authority if authority is not None and authority.exists() else None) else 1


if __name__ == "__main__":
    sys.exit(main())
