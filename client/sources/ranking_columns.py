"""Which columns of a file of rankings hold what: three formats, as their holder says, else by known names.

long: one line an item, with its rank. wide: one line a ranking, one column an item, ranks in the cells. best-worst: one
line a ranking, whose columns name the items, and columns that say which of them is best and which is worst.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from client.sources.column_names import PAIRS, QUESTIONS, plain
from client.sources.columns import NONE, Header, find_labeler, guessed
from client.sources.reading import SourceError

LONG, WIDE, BEST_WORST = "long", "wide", "best-worst"
FORMATS = (LONG, WIDE, BEST_WORST)
ABSENT, LAST = "absent", "last"  # what an item without a rank is
UNRANKED = (ABSENT, LAST)
RANKS = ("rank", "place", "position")
ITEMS = ("item", "item_id", "option", "candidate", "alternative", "variety", "driver")
LISTS = ("ranking", "ranking_id", "ballot", "ballot_id", "list", "list_id", "race", "race_id")
FEWEST = 3  # items in a line of best and worst


@dataclass(frozen=True)
class RankingWanted:
    """What a holder says of the columns of rankings; None leaves a guess.

    `items` is the column of items (long), or one column for each of them. `unranked` says what an item without a rank
    is: ABSENT, it was not offered, which is public; LAST, it was, and stands below all that are ranked. `row` names the
    column of the global number of a ranking's first row, where a split wrote one.
    """

    form: str | None = None
    labeler: str | None = None
    items: tuple[str, ...] | None = None
    rank: str | None = None
    best: str | None = None
    worst: str | None = None
    questions: tuple[str, ...] | None = None
    unranked: str | None = None
    row: str | None = None


@dataclass(frozen=True)
class RankingColumns:
    """The columns of one file of rankings: `rank` in long ones, `best` and perhaps `worst` in those of best and worst.

    Answers are ranks or names of items here, so `pair` and `coding`, which say how words are read, are None.
    """

    form: str
    labeler: str | None
    items: tuple[str, ...]
    rank: str | None
    best: str | None
    worst: str | None
    questions: tuple[str, ...]
    wanted: RankingWanted
    pair: None = None
    coding: None = None

    def named(self) -> tuple[str, ...]:
        """Every column that is read."""
        found = (self.labeler, *self.items, self.rank, self.best, self.worst, *self.questions, self.wanted.row)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def describe(self) -> str:
        """One line for the holder's terminal: what is read as what, and what of it was guessed."""
        wanted = self.wanted
        parts = [
            ("rankings", self.form, wanted.form),
            ("labeler", self.labeler or "none, every ranking is one", wanted.labeler),
            ("items", ", ".join(self.items), wanted.items),
            *([("rank", self.rank, wanted.rank)] if self.rank else []),
            *([("best", self.best, wanted.best)] if self.best else []),
            *([("worst", self.worst or NONE, wanted.worst)] if self.best else []),
            ("question", ", ".join(self.questions) or "always the same", wanted.questions),
        ]
        return "; ".join(f"{what}: {found}{guessed(said)}" for what, found, said in parts)


def guess_form(names: tuple[str, ...]) -> str | None:
    """The format that the names of columns tell; None for a file of comparisons, or one that has to be declared.

    >>> guess_form(("race", "rank", "driver")), guess_form(("judge", "A", "B", "C")), guess_form(("labeler", "winner"))
    ('long', None, None)
    """
    known = {plain(name) for name in names}
    if any({one, other} <= known for one, other in PAIRS) and not _lettered(names):
        return None
    if known & set(RANKS) and known & set(ITEMS):
        return LONG
    return BEST_WORST if _lettered(names) and _ending(names, "best") else None


def choose_ranking(path: Path, names: tuple[str, ...], wanted: RankingWanted) -> RankingColumns:
    """Find every column. Raises SourceError where one is missing, there twice, or could be several."""
    header = Header(path, names)
    form = wanted.form or guess_form(names)
    if form not in FORMATS:
        raise header.error(f"--ranking out of {', '.join(FORMATS)}, which the names do not tell")
    if wanted.unranked not in (None, *UNRANKED):
        raise SourceError(f"--unranked: expected one of {', '.join(UNRANKED)}, got {wanted.unranked!r}")
    labeler = wanted.labeler or find_labeler(header)
    owner = None if labeler == NONE else labeler
    rank = (wanted.rank or _one(header, header.known(RANKS), "--rank")) if form == LONG else None
    best = (wanted.best or _one(header, _ending(names, "best"), "--best")) if form == BEST_WORST else None
    worst = _worst(names, best, wanted) if best else None
    if (wanted.rank and form != LONG) or ((wanted.best or wanted.worst) and form != BEST_WORST):
        raise SourceError(f"--rank, --best, --worst: expected --rank with {LONG}, the others with {BEST_WORST}")
    questions = wanted.questions
    if questions is None:
        tables = (*QUESTIONS, *LISTS) if form == LONG else QUESTIONS
        questions = tuple(name for name in names if plain(name) in tables and name != owner)
    others = tuple(name for name in (owner, rank, best, worst, *questions, wanted.row) if name is not None)
    items = wanted.items or _items(header, form, others)
    found = [header.one(name) for name in (*others, *items)]
    if len(set(found)) != len(found):
        raise header.error(
            "different columns for labeler, items, ranks, questions and rows", f"{', '.join(found)} from the"
        )
    if form == LONG and len(items) != 1:
        raise header.error(f"one column of items (--items NAME), not {', '.join(items)}")
    if form != LONG and len(items) < (2 if form == WIDE else FEWEST):
        raise header.error(f"a column for each item (--items NAME,NAME,...), not {', '.join(items)}")
    return RankingColumns(form, owner, items, rank, best, worst, questions, wanted)


def _items(header: Header, form: str, others: tuple[str, ...]) -> tuple[str, ...]:
    if form == LONG:
        return (_one(header, header.known(ITEMS), "--items"),)
    if form == WIDE:
        return tuple(name for name in header.names if name not in others)
    found = _lettered(header.names)
    if len(found) != 1:
        raise header.error("--items NAME,NAME,NAME, since several groups of columns could be the items")
    return found[0]


def _worst(names: tuple[str, ...], best: str, wanted: RankingWanted) -> str | None:
    """The column that belongs to the one of the best, by name."""
    if wanted.worst is not None:
        return None if wanted.worst == NONE else wanted.worst
    found = [name for name in _ending(names, "worst") if plain(name)[:-5] == plain(best)[:-4]]
    return found[0] if found else None


def _one(header: Header, found: list[str], flag: str) -> str:
    if len(found) != 1:
        several = f"one of {', '.join(found)}" if found else "a column that is known by name"
        raise header.error(f"{several} ({flag} NAME)")
    return found[0]


def _ending(names: tuple[str, ...], word: str) -> list[str]:
    return [name for name in names if plain(name) == word or plain(name).endswith(f"_{word}")]


def _lettered(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Groups of at least three columns with one name and the letters a, b, c, ... or numbers 1, 2, 3, ... after it."""
    groups: dict[tuple[str, bool], dict[str, str]] = {}
    for name in names:
        if found := re.fullmatch(r"(.*\D)_?([a-z]|[1-9])", plain(name)):
            groups.setdefault((found[1], found[2].isdigit()), {})[found[2]] = name
    whole = []
    for (_, digits), group in groups.items():
        marks = "".join(group)
        if len(group) >= FEWEST and marks == ("123456789" if digits else "abcdefghijklmnopqrstuvwxyz")[: len(group)]:
            whole.append(tuple(group.values()))
    return whole
