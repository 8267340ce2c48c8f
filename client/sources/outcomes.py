"""What a winner's field means: as its holder declares, else by a table of words. Which labels occur decides nothing.

A text without a meaning is an error, never a guess.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from client.sources.reading import Records, SourceError, Texts

FIRST, SECOND, TIE, MISSING, UNKNOWN = 0, 1, 2, 3, 4
TIES = ("tie", "draw", "same", "equal", "both", "neither", "both_bad", "bothbad", "tie (bothbad)", "tie (inconsistent)")
WORDS = {
    **dict.fromkeys(("item_a", "a", "model_a", "model_x", "left", "home", "first"), FIRST),
    **dict.fromkeys(("item_b", "b", "model_b", "model_y", "right", "away", "second"), SECOND),
}
NAMES, SIDES = "names", "sides"  # the codings that list no codes
WRITTEN = {FIRST: "item_a", SECOND: "item_b", TIE: "tie", MISSING: ""}  # how SIDES writes an outcome
CODINGS = (
    "--winner-coding (in a node file: coding) takes names (the item that won), sides (item_a, left, home, ...), or the "
    "codes themselves, FIRST/SECOND or FIRST/TIE/SECOND: 1/0, 0/1, 1/2, 1/-1, 1/0/-1, ..."
)
Names = Sequence[str]


def codes(coding: str) -> dict[str, int] | None:
    """What each code of a declared coding means; None for NAMES and SIDES. Raises SourceError for no coding.

    >>> codes("1/0/-1")
    {'1': 0, '0': 2, '-1': 1}
    """
    if coding in (NAMES, SIDES):
        return None
    parts = [part.strip() for part in coding.split("/")]
    if len(parts) not in (2, 3) or not all(parts) or len(set(parts)) != len(parts):
        raise SourceError(f"expected a coding of winners, got {coding!r}: {CODINGS}")
    return dict(zip(parts, (FIRST, SECOND) if len(parts) == 2 else (FIRST, TIE, SECOND), strict=True))


def outcomes(
    records: Records,
    field: str,
    coding: str | None,
    rows: Sequence[int],
    sides: tuple[str, str],
    pairs: tuple[Names, Names],
) -> NDArray[np.uint8]:
    """FIRST, SECOND, TIE or MISSING (an empty field) for each of `rows`, which compare items of `pairs`.

    Without a `coding` a field holds the name of one of the two items, a word of the table, or the name `sides` of an
    item's column; numbers mean nothing. A text that is the name of any item means that item only, never a word: items
    are public. Raises SourceError for the first text without a meaning.
    """
    texts = records.column(field)
    values = meanings(texts, coding, rows, sides, pairs)
    for index in np.flatnonzero(values == UNKNOWN)[:1].tolist():
        words, named = _vocabulary(coding, sides)
        items = (pairs[0][index], pairs[1][index]) if named else ()
        expected = ", ".join(map(repr, [*_examples(coding, words), *items]))
        where = f"{records.where(rows[index])}, field {field}"
        raise SourceError(f"{where}: expected one of {expected}, got {texts[rows[index]]!r}. {CODINGS}")
    return values


def meanings(
    texts: Texts, coding: str | None, rows: Sequence[int], sides: tuple[str, str], pairs: tuple[Names, Names]
) -> NDArray[np.uint8]:
    """The same with UNKNOWN for a text without a meaning."""
    words, named = _vocabulary(coding, sides)
    items = {*pairs[0], *pairs[1]} if named else set()
    values = np.empty(len(rows), dtype=np.uint8)
    for index, (row, first, second) in enumerate(zip(rows, *pairs, strict=True)):
        text = texts[row]
        if text is None:
            found: int | None = MISSING
        elif text in items:
            found = FIRST if text == first else SECOND if text == second else None
        else:
            found = _meaning(words, text)
        values[index] = UNKNOWN if found is None else found
    return values


def homonyms(items: Names, coding: str | None, sides: tuple[str, str]) -> list[str]:
    """Items whose names are words for an answer too: read as names where names are read.

    >>> homonyms(["a", "c", "Draw"], None, ("left", "right"))
    ['a', 'Draw']
    """
    words, named = _vocabulary(coding, sides)
    return [item for item in items if _meaning(words, item) is not None] if named else []


def in_order(first: Names, second: Names, outcome: NDArray[np.uint8]) -> tuple[list[str], list[str], NDArray[np.uint8]]:
    """Pairs in the order of their items' names, and what was answered about them so.

    A pair is public. In the order in which a file writes it, it can tell the answer: where the winner stands first.

    >>> in_order(["x", "y"], ["y", "x"], np.array([FIRST, FIRST], np.uint8))
    (['x', 'x'], ['y', 'y'], array([0, 1], dtype=uint8))
    """
    turned = np.fromiter((b < a for a, b in zip(first, second, strict=True)), np.bool_, len(first))
    low, high = (list(map(pick, first, second)) for pick in (min, max))
    return low, high, outcome ^ (turned & (outcome < TIE))


def _vocabulary(coding: str | None, sides: tuple[str, str]) -> tuple[dict[str, int], bool]:
    """Words and what they mean, and whether names of items have a meaning."""
    declared = None if coding is None else codes(coding)
    if declared is not None:
        return declared, False
    words = dict.fromkeys(TIES, TIE)
    if coding != NAMES:
        words |= WORDS | {sides[0]: FIRST, sides[1]: SECOND}
    return words, coding != SIDES


def _meaning(words: Mapping[str, int], text: str) -> int | None:
    """What a word means; ties in any case of letters."""
    found = words.get(text)
    return TIE if found is None and words.get(text.lower()) == TIE else found


def _examples(coding: str | None, words: Mapping[str, int]) -> list[str]:
    """Words to name in an error: all codes, or one for each answer."""
    known = WRITTEN.values() if coding in (None, NAMES, SIDES) else words
    return [word for word in known if word in words]
