"""Names of a file's labelers and items that could be mistaken for each other, or for something else."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from client.sources.reading import EMPTY, LONGEST_NAME, Records, text_of
from studies.data.findings import MOST_SHOWN, Finding

NOTHING = ("na", "n/a", "nan", "none", "null", "nil", "inf", "infinity", "true", "false", "#n/a", "-", "?")
EXACT = 1 << 53
UNSEEN = ("Cc", "Cf", "Co", "Cn")  # categories of characters without a shape
HASHED = re.compile(r" #[0-9a-f]{32}$")
# Letters of other alphabets that look like Latin ones: Cyrillic and Greek.
ALIKE = str.maketrans(
    "аеорсухіјѕһԁαορυνικτАВЕКМНОРСТХІЅЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeopcyxijshdaopuviktABEKMHOPCTXISJABEZHIKMNOPTYX"
)
Places = Mapping[str, int]  # of each name, the first record


class Spellings:
    """All ways in which a column of names is written, and the first place of each; long texts are left out."""

    def __init__(self) -> None:
        self.first: dict[str, int] = {}
        self._count = 0

    def add(self, value: Any) -> None:
        """Take the next raw value."""
        if isinstance(value, str) and len(value) <= LONGEST_NAME:
            self.first.setdefault(value, self._count)
        self._count += 1


def look_at_spellings(records: Records, columns: Sequence[str]) -> Iterator[Finding]:
    """Names that are written in several ways, which reading makes one. Raises SourceError."""
    sinks = {name: Spellings() for name in columns}
    records.scan({name: sink.add for name, sink in sinks.items()})
    ways: dict[str, dict[str, int]] = {}
    for sink in sinks.values():
        for raw, place in sink.first.items():
            if (name := text_of(raw)) is not None:
                ways.setdefault(name, {}).setdefault(raw, place)
    several = {name: found for name, found in ways.items() if len(found) > 1}
    if several:
        places = [max(found.values()) for found in several.values()]
        shown = [" = ".join(ascii(raw) for raw in found) for found in several.values()]
        yield found_at("several-spellings", records, places, shown)


def look_at_names(records: Records, places: Places) -> Iterator[Finding]:
    """What is awkward about different names."""
    if near := alike(places):
        shown = [" / ".join(map(told, group)) for group in near]
        yield found_at("near-equal", records, [max(map(places.__getitem__, group)) for group in near], shown)
    tests: dict[str, Callable[[str], bool]] = {
        "invisible": lambda name: any(unicodedata.category(c) in UNSEEN and c not in "\n\r\t" for c in name),
        "beyond-2^53": lambda name: name.isascii() and name.isdecimal() and len(name) < 100 and int(name) > EXACT,
        "like-nothing": lambda name: name.lower() in NOTHING,
        "empty-text": lambda name: name == EMPTY,
        "long-text": lambda name: bool(HASHED.search(name)) and name != EMPTY,
    }
    for code, test in tests.items():
        if found := [name for name in places if test(name)]:
            yield found_at(code, records, [places[name] for name in found], [told(name) for name in found])


def alike(names: Iterable[str]) -> list[list[str]]:
    """Groups of different names that look alike."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(skeleton(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def skeleton(name: str) -> str:
    """What names that look alike share: letters in one case and alphabet, without spaces, marks between or leading 0.

    >>> skeleton("GPT-4 ") == skeleton("gpt_4"), skeleton("007") == skeleton("7.0"), skeleton("7") == skeleton("70")
    (True, True, False)
    """
    plain = unicodedata.normalize("NFKC", name.translate(ALIKE)).casefold()
    plain = "".join(c for c in plain if unicodedata.category(c)[0] not in "CZ" and c not in "-_")
    try:
        return (
            str(float(plain)) if plain.isascii() and len(plain) < 16 and plain.replace(".", "0").isdecimal() else plain
        )
    except ValueError:
        return plain


def found_at(code: str, records: Records, places: Sequence[int], examples: Sequence[str], count: int = 0) -> Finding:
    """A finding at places of a file; `count` where it is not the number of places."""
    order = sorted(range(len(places)), key=places.__getitem__)[:MOST_SHOWN]
    lines = dict.fromkeys(records.lines[places[index]] for index in order)
    shown = dict.fromkeys(examples[index] for index in order if index < len(examples))
    return Finding(code, count or len(places), tuple(lines), tuple(shown))


def told(name: str) -> str:
    """A name as it tells its difference from others: escaped where letters are not plain."""
    return name if name.isascii() and name.isprintable() else f"{name} ({ascii(name)[1:-1]})"
