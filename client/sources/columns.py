"""Which columns of a file hold what: as its holder says, else by a table of known names; never silently.

What is guessed is shown to the holder. Where two guesses are possible there is none, and the error lists the columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from client.sources.outcomes import codes
from client.sources.reading import SourceError

NONE = "none"  # what a holder says where there is no such column

LABELERS = (
    *("labeler", "labeler_id", "labeller", "labeller_id", "worker", "worker_id", "judge", "judge_id", "assessor"),
    *("assessor_id", "annotator", "annotator_id", "rater", "rater_id", "respondent", "respondent_id", "voter"),
    *("voter_id", "user", "user_id", "farmer", "farmer_id"),
)
PAIRS = (
    *(("item_a", "item_b"), ("item_1", "item_2"), ("model_a", "model_b"), ("model_x", "model_y"), ("left", "right")),
    *(("home", "away"), ("option_a", "option_b")),
)
WINNERS = ("winner", "result", "outcome", "preference", "choice")
LOSERS = {"loser": "winner", "bottom_item": "top_item", "rejected": "chosen"}
QUESTIONS = ("question", "question_id", "prompt", "prompt_id", "turn", "criterion")


@dataclass(frozen=True)
class Wanted:
    """What a holder says of the columns; None leaves a guess. `labeler` NONE: every row is a labeler of its own.

    `loser` says that `winner` names the other item of the pair. `questions` () asks one question in all rows. `row`
    names the column of global row numbers, where a split wrote one. `coding` declares what the winner's field holds
    (`client.sources.outcomes.CODINGS`): numbers and other codes have no meaning without it.
    """

    labeler: str | None = None
    item_a: str | None = None
    item_b: str | None = None
    winner: str | None = None
    loser: str | None = None
    questions: tuple[str, ...] | None = None
    row: str | None = None
    coding: str | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of one file. With a `loser`, `winner` and `loser` are the two items and there is no `pair`."""

    labeler: str | None
    pair: tuple[str, str] | None
    winner: str
    loser: str | None
    questions: tuple[str, ...]
    row: str | None
    coding: str | None = None

    def describe(self, wanted: Wanted) -> str:
        """One line for the holder's terminal: what is read as what, and what of it was guessed."""
        pair = (self.loser, self.winner) if self.pair is None else self.pair
        items = wanted.item_a or wanted.loser
        parts = [
            ("labeler", [self.labeler or "none, every row is one"], wanted.labeler),
            ("items" if self.pair else "loser and winner", pair, items),
            *([("winner", [self.winner], wanted.winner), *self._declared()] if self.pair else []),
            ("question", self.questions or ["the same in all rows"], wanted.questions),
        ]
        return "; ".join(f"{what}: {', '.join(map(str, names))}{guessed(said)}" for what, names, said in parts)

    def _declared(self) -> list[tuple[str, list[str], str]]:
        """What was declared of the winner's field, in words."""
        if self.coding is None or self.pair is None:
            return []
        known = codes(self.coding)
        sides = (*self.pair, "a tie")
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
    pair, winner, loser = _comparison(header, wanted)
    labeler = wanted.labeler or find_labeler(header)
    if wanted.coding is not None:
        codes(wanted.coding)
        if loser is not None:
            raise SourceError("--winner-coding: expected none where a column names the loser")
    columns = Columns(None if labeler == NONE else labeler, pair, winner, loser, questions, wanted.row, wanted.coding)
    used = [columns.labeler, *(pair or ()), winner, loser, *questions, wanted.row]
    found = [header.one(name) for name in used if name is not None]
    if len(set(found)) != len(found):
        raise header.error("different columns for labeler, items, winner and question", f"{', '.join(found)} from the")
    return columns


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
            raise self.error(f"one column {name!r}")
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


def _comparison(header: Header, wanted: Wanted) -> tuple[tuple[str, str] | None, str, str | None]:
    """The pair of items and the winner, or no pair, winner and loser."""
    if wanted.loser is not None:
        if wanted.winner is None or wanted.item_a is not None or wanted.item_b is not None:
            raise SourceError("--loser: expected --winner with it, and neither --item-a nor --item-b")
        return None, wanted.winner, wanted.loser
    if (wanted.item_a is None) != (wanted.item_b is None):
        raise SourceError("--item-a, --item-b: expected both or neither, got one")
    if wanted.item_a is not None and wanted.item_b is not None:
        pairs = [(wanted.item_a, wanted.item_b)]
    else:
        pairs = [(a, b) for one, other in PAIRS for a in header.known([one]) for b in header.known([other])]
    winners = header.known(WINNERS) if wanted.winner is None else [wanted.winner]
    found: list[tuple[tuple[str, str] | None, str, str | None]]
    found = [(pair, winner, None) for pair in pairs for winner in winners]
    if wanted.item_a is None:
        ends = [
            (lost, won)
            for one, other in LOSERS.items()
            for lost in header.known([one])
            for won in header.known([other])
        ]
        found += [(None, won, lost) for lost, won in ends if wanted.winner in (None, won)]
    if len(found) != 1:
        error = header.error(f"two columns of items and one that says who won{_several(found)}")
        raise error if found else NoComparison(str(error))
    return found[0]


def _several(found: Iterable[tuple[tuple[str, str] | None, str, str | None]]) -> str:
    ways = [f"{' and '.join(pair or (str(loser),))} with {winner}" for pair, winner, loser in found]
    flags = "--item-a, --item-b, --winner; or --loser, --winner"
    return f", not {' or '.join(ways)} ({flags})" if ways else f" ({flags})"


def plain(name: str) -> str:
    """A name as tables of names spell it: lower case, words joined by underscores."""
    return name.lower().replace(" ", "_").replace(".", "_").replace("-", "_")


def guessed(said: object) -> str:
    """What to add to a column that nobody named."""
    return " (guessed)" if said is None else ""
