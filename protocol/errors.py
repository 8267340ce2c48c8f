"""Errors of the wire."""

from collections.abc import Iterator
from contextlib import contextmanager

MOST_CHARACTERS = 200


class WireError(ValueError):
    """Bytes that are not a message of the schema: malformed, not canonical, or out of range.

    The text is cut short: part of it was written by whoever sent the bytes, and it ends in a log.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason if len(reason) <= MOST_CHARACTERS else reason[:MOST_CHARACTERS] + " ...")


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn a bad field's ValueError into a WireError that names the message."""
    try:
        yield
    except WireError:
        raise
    except ValueError as error:
        raise WireError(f"bad {what}: {error}") from None
