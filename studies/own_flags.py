"""Flags of commands about one's own files: where their state is, and whose coins are drawn."""

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
