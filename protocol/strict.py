"""Strict reading of nested tables: an unknown key or a wrong type names its place and the nearest valid key."""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


class StudyError(ValueError):
    """A study that does not say what to do: names the place, what was expected and what was got."""


def unopened(error: OSError) -> str:
    """Why a file does not open, as the end of an error's text.

    >>> unopened(FileNotFoundError(2, "No such file or directory"))
    'found none'
    """
    if isinstance(error, FileNotFoundError):
        return "found none"
    return "got a folder" if isinstance(error, IsADirectoryError) else f"but the system says: {reason(error)}"


def reason(error: Exception) -> str:
    """What an error says, one of the system without its number and without the path, which whoever asks knows.

    >>> reason(PermissionError(13, "Permission denied", "/etc/x")), reason(ValueError("no"))
    ('Permission denied', 'no')
    """
    return str(getattr(error, "strerror", None) or error)


def told(error: Exception) -> str:
    """The same with the path, where an error of the system has one.

    >>> told(PermissionError(13, "Permission denied", "/etc/x"))
    '/etc/x: Permission denied'
    """
    return ": ".join(str(part) for part in (getattr(error, "filename", None), reason(error)) if part)


def folder(path: Path, place: str) -> Path:
    """A folder that is there, or can be made: no part of its path is a file.

    Raises StudyError.
    """
    try:
        there = next((part for part in (path, *path.parents) if part.exists()), path)
        if there.exists() and not there.is_dir():
            raise StudyError(f"{place}: expected a folder, got the file {there}: name another one")
    except OSError as error:
        raise _unmade(path, place, error) from None
    return path


def make_folder(path: Path, place: str, mode: int = 0o777) -> Path:
    """A folder that is there when this returns, and takes files; `mode` is that of a new one.

    Raises StudyError that says why not.
    """
    folder(path, place)
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise _unmade(path, place, error) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise StudyError(f"{place}: expected a folder that takes files, got {path}, which does not: name another one")
    return path


def _unmade(path: Path, place: str, error: OSError) -> StudyError:
    return StudyError(f"{place}: expected a folder that can be made, got {path} ({reason(error)}): name another one")


def table(value: Any, place: str, keys: Iterable[str], needed: Iterable[str] = ()) -> Mapping[str, Any]:
    """A table with only `keys`, holding all of `needed`.

    >>> table({"sed": 7}, "study", ["seed", "name"])
    Traceback (most recent call last):
    protocol.strict.StudyError: [study] unknown key 'sed'; did you mean 'seed'?
    """
    if not isinstance(value, Mapping):
        raise StudyError(f"[{place}] expected a table, got {value!r}")
    allowed = sorted(keys)
    for key in value:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {allowed}"
            raise StudyError(f"[{place}] unknown key {key!r}; {hint}")
    for key in needed:
        if key not in value:
            raise StudyError(f"[{place}] expected the key {key!r}, found only {sorted(value)}")
    return value


def text(value: Any, place: str, choices: Iterable[str] | None = None) -> str:
    """A non-empty string, out of `choices` where given."""
    if not isinstance(value, str) or not value:
        raise StudyError(f"{place}: expected a non-empty string, got {value!r}")
    if choices is not None:
        allowed = sorted(choices)
        if value not in allowed:
            near = difflib.get_close_matches(value, allowed, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise StudyError(f"{place}: expected one of {allowed}, got {value!r}{hint}")
    return value


def integer(value: Any, place: str, least: int, most: int) -> int:
    """An integer in least..most; booleans and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise StudyError(f"{place}: expected an integer in {least}..{most}, got {value!r}")
    return value


def boolean(value: Any, place: str) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise StudyError(f"{place}: expected true or false, got {value!r}")
    return value


def sequence(value: Any, place: str) -> list[Any]:
    """A non-empty list without repeated entries."""
    if not isinstance(value, list) or not value:
        raise StudyError(f"{place}: expected a non-empty list, got {value!r}")
    for index, item in enumerate(value):
        if item in value[:index]:
            raise StudyError(f"{place}: expected different entries, got {item!r} twice")
    return value
