"""What a winner's field means, by an explicit table: a word that is not in it is an error, never a guess."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from client.sources.reading import Records, SourceError

FIRST, SECOND, TIE, MISSING = 0, 1, 2, 3
WORDS = {
    **dict.fromkeys(("item_a", "a", "model_a", "model_x", "left", "home", "first"), FIRST),
    **dict.fromkeys(("item_b", "b", "model_b", "model_y", "right", "away", "second"), SECOND),
    **dict.fromkeys(("tie", "draw", "same", "equal", "both", "neither", "both_bad", "bothbad"), TIE),
    **dict.fromkeys(("tie (bothbad)", "tie (inconsistent)"), TIE),
}
SIGNS = {"1": FIRST, "0": TIE, "-1": SECOND}  # results of a home side; 0 and 1 alone could mean anything
Names = Sequence[str]


def outcomes(
    records: Records, field: str, rows: Sequence[int], sides: tuple[str, str], first: Names, second: Names
) -> NDArray[np.uint8]:
    """FIRST, SECOND, TIE or MISSING (an empty field) for each of `rows`, which compare `first` and `second`.

    A field may hold a word of the table, the name of one of the two items, or the name `sides` of its column. Numbers
    are understood in the coding 1, 0, -1 only, which a file shows by its -1. Raises SourceError for the first other
    text, and for one that could mean two things.
    """
    texts = records.column(field)
    words = WORDS | {sides[0]: FIRST, sides[1]: SECOND} | (SIGNS if "-1" in texts else {})
    values = np.empty(len(rows), dtype=np.uint8)
    for index, (row, a, b) in enumerate(zip(rows, first, second, strict=True)):
        text = texts[row]
        found = MISSING if text is None else _meaning(words, text, a, b)
        if found is None:
            raise SourceError(f"{records.where(row)}, field {field}: {_expected(text, a, b)}")
        values[index] = found
    return values


def in_order(losers: Names, winners: Names) -> tuple[Names, Names, NDArray[np.uint8]]:
    """First items, second items and outcomes of records that name a loser and a winner.

    Items come in the order of their names: in the order of the columns, the public pair would tell the answer.

    >>> in_order(["x", "y"], ["y", "x"])
    (['x', 'x'], ['y', 'y'], array([1, 0], dtype=uint8))
    """
    first = [min(pair) for pair in zip(losers, winners, strict=True)]
    second = [max(pair) for pair in zip(losers, winners, strict=True)]
    return first, second, np.array([won == b for won, b in zip(winners, second, strict=True)], dtype=np.uint8)


def word(value: int, first: str, second: str) -> str:
    """A word for an outcome of this pair that no item's name makes ambiguous; "" for a missing one.

    >>> word(TIE, "tie", "y"), word(FIRST, "x", "item_a"), word(MISSING, "x", "y")
    ('draw', 'a', '')
    """
    if value == MISSING:
        return ""
    return next(text for text, meant in WORDS.items() if meant == value and text not in (first, second))


def _meaning(words: dict[str, int], text: str, first: str, second: str) -> int | None:
    """What a text means for one pair; None where that is nothing, or two things."""
    word = words.get(text)
    if word is None and words.get(text.lower()) == TIE:
        word = TIE
    named = FIRST if text == first else SECOND if text == second else word
    return named if word is None or word == named else None


def _expected(text: str | None, first: str, second: str) -> str:
    if text in (first, second):
        return f"{text!r} names one item and means another answer: write item_a, item_b or tie"
    return f"expected 'item_a', 'item_b', 'tie', {first!r} or {second!r}, got {text!r}"
