"""All of the texts that names stand for, as their names have them: which column a text came from is not to be seen."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from client.sources.column_names import plain
from client.sources.reading import EMPTY, SourceError, read_records, text_of, whole_text
from protocol.strict import StudyError
from studies.terminal import printable

PROMPT = "prompt"
ROLES = {"human": "user", "gpt": "assistant"}  # of conversations that write from and value
Text = str | list[dict[str, str]]  # or a conversation


def prompt_column(path: Path, said: str | None) -> str | None:
    """The column of prompts: as it is said, else the one called prompt. Raises StudyError."""
    if not path.is_file():
        return said  # which reading it will tell
    try:
        names = read_records(path).names
    except SourceError as error:
        raise StudyError(printable(str(error))) from None
    guessed = [name for name in names if plain(name) == PROMPT]
    if said is not None and names.count(said) != 1:
        raise StudyError(f"--prompt: expected a column out of {', '.join(names)}, got {said!r}")
    return said if said is not None or len(guessed) != 1 else guessed[0]


def full_texts(path: Path, columns: Iterable[str]) -> Mapping[str, Text]:
    """What each name in some columns is short for: form NFC without outer spaces, as the name itself is made."""
    found: dict[str, Text] = {}

    def take(value: Any) -> None:
        name, text = text_of(value) or EMPTY, _full(value)
        known = found.setdefault(name, text)
        if known != text:  # a conversation and its JSON: which is written may not follow from which comes first
            found[name] = min(known, text, key=_place)

    records = read_records(path)
    records.scan(dict.fromkeys(columns, take))
    return found


def _place(text: Text) -> tuple[bool, str]:
    return isinstance(text, str), json.dumps(text)


def _full(value: Any) -> Text:
    if isinstance(value, list):
        return [_turn(part) for part in value]
    return whole_text(value)


def _turn(part: Mapping[str, Any]) -> dict[str, str]:
    if "content" in part:
        return {"role": whole_text(part.get("role")), "content": whole_text(part["content"])}
    said = whole_text(part.get("from"))
    return {"role": ROLES.get(said, said), "content": whole_text(part.get("value"))}
