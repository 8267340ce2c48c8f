"""A look at a server before a node connects to it: is it there, is it the one that is trusted, do the clocks agree."""

import ssl
import time
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

from deploy.processes import FlowerFailed

SECONDS = 10.0
AHEAD, BEHIND = 5.0, 305.0  # seconds that Flower lets a node's clock differ where nodes show keys
ROUNDING = 1.0  # an answer's date has no fractions


def look(address: str, authority: Path | None, *, keyed: bool, now: float | None = None) -> str | None:
    """Why a node cannot work with the server yet, in words: it is not there, which may change; None where all is well.

    `authority`: the certificates that are trusted, without which nothing is encrypted. `keyed`: the node shows a key,
    for which Flower compares clocks. Raises FlowerFailed for what does not change by itself: another server's
    certificate, a clock that is wrong.
    """
    try:
        date = _date(address, authority)
    except ssl.SSLCertVerificationError as error:
        raise FlowerFailed(
            f"{address}: expected a server with a certificate of {authority}, got one that does not pass: "
            f"{error.verify_message}"
        ) from None
    except ssl.SSLError as error:
        raise FlowerFailed(f"{address}: expected a server that speaks TLS, got another ({error.reason})") from None
    except (OSError, HTTPException) as error:
        return f"{address} does not answer ({error}): the node keeps trying"
    if keyed and date is not None:
        _check_clock(address, (time.time() if now is None else now) - date)
    return None


def _date(address: str, authority: Path | None) -> float | None:
    """When the server says it is, in seconds since 1970; None where it does not say."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if authority is None:
        connection = HTTPConnection(host, int(port), timeout=SECONDS)
    else:
        trusted = ssl.create_default_context(cafile=str(authority))
        connection = HTTPSConnection(host, int(port), timeout=SECONDS, context=trusted)
    try:
        connection.request("GET", "/health")
        said = connection.getresponse().getheader("Date", "")
    finally:
        connection.close()
    try:
        return parsedate_to_datetime(said).timestamp()
    except ValueError:
        return None


def _check_clock(address: str, ahead: float) -> None:
    """Raise FlowerFailed where Flower would refuse this machine's clock, `ahead` seconds before the server's."""
    if -BEHIND - ROUNDING <= ahead <= AHEAD + ROUNDING:
        return
    how = "ahead of" if ahead > 0 else "behind"
    raise FlowerFailed(
        f"this machine's clock is {abs(ahead):.0f} seconds {how} that of {address}: Flower refuses a node that is more "
        f"than {AHEAD:g} seconds ahead or {BEHIND:g} behind: set the clock"
    )
