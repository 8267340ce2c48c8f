"""Errors of the wire."""

from collections.abc import Iterator
from contextlib import contextmanager


class WireError(ValueError):
    """Bytes that are not a message of the schema: malformed, not canonical, or out of range."""


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Turn a bad field's ValueError into a WireError that names the message."""
    try:
        yield
    except WireError:
        raise
    except ValueError as error:
        raise WireError(f"bad {what}: {error}") from None
