"""Which columns of a file hold what: as its holder says, else by a table of known names; never silently.

What is guessed is shown to the holder. Where two guesses are possible there is none, and the error lists the columns.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from client.sources.column_names import LABELERS, LOSERS, PAIRS, QUESTIONS, TIE_COUNTS, WINNERS, WINS, plain
from client.sources.outcomes import codes
from client.sources.reading import SourceError

NONE = "none"  # what a holder says where there is no such column
REFUSE, DROP = "refuse", "drop-public"  # what a row without one of its items does
UNNAMED = (REFUSE, DROP)
IN_CELL = ("first", "second")  # sides of a pair that stands in one cell


@dataclass(frozen=True)
class Wanted:
    """What a holder says of the columns; None leaves a guess. `labeler` NONE: every row is a labeler of its own.

    `loser` says that `winner` names the other item of the pair. `both` names the column that holds both items of a
    pair, and `between` what stands between them. `wins` names columns of counts: how often the first item won, the
    second, and perhaps how often neither; each of them is a label of its own. `unnamed` DROP leaves out rows without
    one of their items, and says that it is no secret which rows these are. `questions` () asks one question in all
    rows. `row` names the column of global row numbers, where a split wrote one. `prompt` names a column: items are then
    answers to what it says. `coding` declares what the winner's field holds (`client.sources.outcomes.CODINGS`):
    numbers and other codes have no meaning without it. `answered` False: there may be no column that says who won.
    """

    labeler: str | None = None
    item_a: str | None = None
    item_b: str | None = None
    winner: str | None = None
    loser: str | None = None
    questions: tuple[str, ...] | None = None
    row: str | None = None
    coding: str | None = None
    both: str | None = None
    wins: tuple[str, ...] | None = None
    unnamed: str | None = None
    prompt: str | None = None
    between: str | None = None
    answered: bool = True


@dataclass(frozen=True)
class Columns:
    """The columns of one file. With a `loser`, `winner` and `loser` are the two items and there is no `pair`.

    There is no `pair` either where `both` items stand in one cell, and no `winner` where `wins` are counted or nobody
    has answered yet. What is `between` the items of a cell is None until its cells are read
    (`client.sources.pair_cells`).
    """

    labeler: str | None
    pair: tuple[str, str] | None
    winner: str | None
    loser: str | None
    questions: tuple[str, ...]
    row: str | None
    coding: str | None = None
    both: str | None = None
    wins: tuple[str, ...] = ()
    unnamed: str = REFUSE
    prompt: str | None = None
    between: str | None = None

    @property
    def sides(self) -> tuple[str, str] | None:
        """What the two items of a row are called; None where a row names its winner and its loser."""
        return IN_CELL if self.both is not None else self.pair

    @property
    def items(self) -> tuple[str, ...]:
        """The columns that name items."""
        found = self.pair or ((self.both,) if self.both is not None else (self.loser, self.winner))
        return tuple(name for name in found if name is not None)

    def named(self) -> tuple[str, ...]:
        """Every column that is read."""
        found = (self.labeler, *self.items, self.winner, *self.wins, *self.questions, self.row, self.prompt)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def describe(self, wanted: Wanted) -> str:
        """One line for the holder's terminal: what is read as what, and what of it was guessed."""
        return "; ".join(f"{what}: {', '.join(names)}{guessed(said)}" for what, names, said in self.parts(wanted))

    def parts(self, wanted: Wanted) -> list[tuple[str, list[str], object]]:
        """What is read, from which columns, and what the holder said of it, None where it was guessed."""
        items = wanted.item_a or wanted.loser or wanted.both
        what = "loser and winner" if self.sides is None else "items" if self.both is None else "both items"
        answers: list[tuple[str, list[str], object]] = []
        if self.winner is not None and self.sides is not None:
            answers.append(("winner", [self.winner], wanted.winner))
        if self.wins:
            answers.append(("wins", list(self.wins), wanted.wins))
        return [
            ("labeler", [self.labeler or "none, every row is one"], wanted.labeler),
            (what, list(self.items), items),
            *([] if self.between is None else [("between them", [repr(self.between)], wanted.between)]),
            *([] if self.prompt is None else [("answers to", [self.prompt], wanted.prompt)]),
            *answers,
            *self._declared(),
            ("question", list(self.questions) or ["the same in all rows"], wanted.questions),
        ]

    def _declared(self) -> list[tuple[str, list[str], object]]:
        """What was declared of the winner's field, in words."""
        if self.coding is None or self.sides is None:
            return []
        known = codes(self.coding)
        sides = (*self.sides, "a tie")
        said = [self.coding] if known is None else [f"{code} is {sides[meant]}" for code, meant in known.items()]
        return [("coding", said, self.coding)]


class NoComparison(SourceError):
    """No columns of a file look like comparisons, and none were named."""


def choose(path: Path, names: tuple[str, ...], wanted: Wanted) -> Columns:
    """Find every column. Raises SourceError where one is missing, there twice, or could be several."""
    header = Header(path, names)
    questions = wanted.questions
    if questions is None:
        questions = tuple(name for name in names if plain(name) in QUESTIONS)
    found = _comparison(header, wanted)
    labeler = wanted.labeler or find_labeler(header)
    if wanted.coding is not None:
        codes(wanted.coding)
        if found.loser is not None or found.wins:
            raise SourceError("--winner-coding: expected none where a column names the loser, or counts wins")
    columns = Columns(
        None if labeler == NONE else labeler,
        *(found.pair, found.winner, found.loser, questions, wanted.row, wanted.coding, found.both, found.wins),
        unnamed=wanted.unnamed or REFUSE,
        prompt=wanted.prompt,
        between=wanted.between,
    )
    _check(header, columns)
    return columns


def _check(header: "Header", columns: Columns) -> None:
    if columns.unnamed not in UNNAMED:
        raise SourceError(f"--unnamed: expected one of {', '.join(UNNAMED)}, got {columns.unnamed!r}")
    if columns.wins and not 2 <= len(columns.wins) <= 3:
        raise SourceError(
            "--wins: expected the wins of the first item, of the second, and perhaps ties, as A,B or A,B,T"
        )
    items = columns.items if columns.sides else (columns.loser,)
    used = (columns.labeler, *items, columns.winner, *columns.wins, *columns.questions, columns.row)
    found = [header.one(name) for name in used if name is not None]
    if columns.prompt is not None:  # which may be a question too
        header.one(columns.prompt)
    if len(set(found)) != len(found):
        raise header.error("different columns for labeler, items, winner and question", f"{', '.join(found)} from the")


@dataclass(frozen=True)
class Header:
    """The names of a file's columns, as they stand in it."""

    path: Path
    names: tuple[str, ...]

    def known(self, table: Iterable[str]) -> list[str]:
        """The columns whose plain names are in a table."""
        return [name for name in self.names if plain(name) in set(table)]

    def one(self, name: str) -> str:
        """The name of a column that is there once."""
        if self.names.count(name) != 1:
            near = difflib.get_close_matches(name, self.names, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near and name not in self.names else ""
            raise self.error(f"one column {name!r}{hint}")
        return name

    def error(self, expected: str, got: str = "the") -> SourceError:
        """An error that lists all columns."""
        return SourceError(f"{self.path}, header: expected {expected}, got {got} columns {', '.join(self.names)}")


def find_labeler(header: Header) -> str:
    """The one column with a known name for who answered. Raises SourceError where there is none, or several."""
    found = header.known(LABELERS)
    if len(found) != 1:
        several = f"one column of labelers, not {' and '.join(found)}" if found else "a column that says who answered"
        raise header.error(f"{several} (--labeler NAME; --labeler none: every row is somebody else's)")
    return found[0]


@dataclass(frozen=True)
class _Way:
    """One way to read comparisons from columns."""

    pair: tuple[str, str] | None = None
    winner: str | None = None
    loser: str | None = None
    both: str | None = None
    wins: tuple[str, ...] = ()

    def __str__(self) -> str:
        items = self.pair or tuple(name for name in (self.loser, self.both) if name)
        return f"{' and '.join(items)} with {self.winner or ' and '.join(self.wins)}"


def _comparison(header: Header, wanted: Wanted) -> _Way:
    """The columns of items and of what was answered: as they are named, else the only ones that are known by name."""
    _check_wanted(wanted)
    if wanted.loser is not None:
        return _Way(winner=wanted.winner, loser=wanted.loser)
    known = [_Way((a, b)) for one, other in PAIRS for a in header.known([one]) for b in header.known([other])]
    if wanted.item_a is not None and wanted.item_b is not None:
        known = [_Way((wanted.item_a, wanted.item_b))]
    if wanted.both is not None:
        known = [_Way(both=wanted.both)]
    winners = [wanted.winner] if wanted.winner is not None else [] if wanted.wins else header.known(WINNERS)
    counts = [wanted.wins] if wanted.wins else [] if wanted.winner is not None else _counts(header)
    found = [replace(way, winner=winner) for way in known for winner in winners]
    found += [replace(way, wins=wins) for way in known for wins in counts]
    if wanted.item_a is None and wanted.both is None and not wanted.wins:
        ends = [
            (lost, won)
            for one, other in LOSERS.items()
            for lost in header.known([one])
            for won in header.known([other])
        ]
        found += [_Way(winner=won, loser=lost) for lost, won in ends if wanted.winner in (None, won)]
    found = list(dict.fromkeys(found if found or wanted.answered else known))  # one there twice is told of by its name
    if len(found) != 1:
        won = " and one that says who won" if wanted.answered else ""
        error = header.error(f"two columns of items{won}{_several(found)}")
        odd = "" in header.names or len(set(header.names)) < len(header.names)
        hint = ". Does the first line name the columns, each once?" if odd else ""
        raise error if found else NoComparison(f"{error}{hint}")
    return found[0]


def _check_wanted(wanted: Wanted) -> None:
    """Raise SourceError for names that exclude each other."""
    pair = (wanted.item_a, wanted.item_b)
    if wanted.loser is not None and (wanted.winner is None or pair != (None, None)):
        raise SourceError("--loser: expected --winner with it, and neither --item-a nor --item-b")
    if (wanted.item_a is None) != (wanted.item_b is None):
        raise SourceError("--item-a, --item-b: expected both or neither, got one")
    if wanted.both is not None and (wanted.loser is not None or pair != (None, None)):
        raise SourceError("--pair: expected neither --item-a, --item-b nor --loser with the column of both items")
    if wanted.between is not None and (wanted.both is None or not wanted.between):
        raise SourceError("--pair-separator: expected --pair with it, and at least one character")
    if wanted.wins and (wanted.winner is not None or wanted.loser is not None):
        raise SourceError("--wins: expected neither --winner nor --loser with columns of counts")


def _counts(header: Header) -> list[tuple[str, ...]]:
    """Columns that count wins, and the one that counts ties beside them."""
    ties = header.known(TIE_COUNTS)
    return [(a, b, *ties) for one, other in WINS for a in header.known([one]) for b in header.known([other])]


def _several(found: Iterable[_Way]) -> str:
    flags = "--item-a, --item-b, or --pair; --winner, or --wins; or --loser, --winner"
    ways = " or ".join(map(str, found))
    return f", not {ways} ({flags})" if ways else f" ({flags})"


def guessed(said: object) -> str:
    """What to add to a column that nobody named."""
    return " (guessed)" if said is None else ""
