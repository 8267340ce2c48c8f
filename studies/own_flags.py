"""Flags of commands about one's own files: where their state is, whose coins are drawn, which do not fit the file."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from protocol import strict
from protocol.strict import StudyError


def seed_of(text: str) -> int:
    """What `--seed` says. Raises StudyError."""
    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 128):
        raise StudyError(f"--seed: expected an integer from 0 to 2^128 - 1, got {text!r}")
    return int(text)


def state_of(text: str | None) -> Path:
    """What `--state` says; without it the user's folder of state. Raises StudyError."""
    if text is not None:
        return strict.folder(Path(text).expanduser(), "--state")
    from platformdirs import user_state_path

    return user_state_path("halftruth")


def refuse_flags(args: argparse.Namespace, names: Iterable[str], why: str, usual: Iterable[str] = ()) -> None:
    """Raise StudyError for the first of these flags that says anything but nothing, or one of the `usual` values."""
    for name in names:
        value = getattr(args, name)
        if value not in (None, False, [], *usual):
            raise StudyError(f"--{name.replace('_', '-')}: {why}")
