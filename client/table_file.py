"""The [source] of a node file that names a file of labels: comparisons, or rankings and what is asked of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.sources.columns import Wanted
from client.sources.item_features import read_item_features
from client.sources.loading import EVERY_ROW, read_items, read_table
from client.sources.outcomes import codes
from client.sources.ranking_columns import FORMATS, UNRANKED, RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from client.sources.reading import SourceError
from client.sources.table import Table
from protocol import strict
from protocol.strict import StudyError

COLUMN_KEYS = ("labeler", "item_a", "item_b", "winner", "loser", "row", "coding", "unnamed", "prompt")
RANKING_KEYS = ("labeler", "rank", "best", "worst", "row")
FILE_KEYS = ("file", "public", "items", "features", "features_columns", "questions")
ASKED_KEYS = ("ranking", "ranking_as", "item_columns", "unranked")
TABLE_KEYS = (*FILE_KEYS, *COLUMN_KEYS, "pair", "between", "wins")
RANKING_TABLE_KEYS = (*FILE_KEYS, *ASKED_KEYS, *RANKING_KEYS)


@dataclass(frozen=True)
class TableFile:
    """A file of comparisons or of rankings; `public` declares that its labels are no secret.

    `columns` says what stands where, and of rankings `asked` what each answers, None for comparisons; `items` is the
    list that numbers a federation's items, `features` describes them.
    """

    file: Path
    public: bool
    columns: Wanted | RankingWanted = EVERY_ROW
    items: Path | None = None
    features: Path | None = None
    features_columns: tuple[str, ...] | None = None
    asked: RankingAs | None = None

    def read(self) -> Table:
        """The table of this file. Raises SourceError."""
        items = None if self.items is None else read_items(self.items)
        features = None if self.features is None else read_item_features(self.features, self.features_columns)
        if isinstance(self.columns, RankingWanted):
            return read_ranking_table(
                self.file, self.public, self.columns, self.asked or RankingAs(), features, items=items
            )
        return read_table(self.file, self.public, self.columns, items, features)


def parse_table_file(top: Mapping[str, Any], folder: Path, place: str = "source") -> TableFile:
    """Read a [source] of kind "table"; relative paths are relative to `folder`. Raises StudyError, SourceError.

    With the key `ranking` the file holds rankings, and keys of comparisons are refused; without it those of rankings.
    """
    keys = RANKING_TABLE_KEYS if "ranking" in top else TABLE_KEYS
    if "ranking" not in top and (lone := set(top) & set(RANKING_TABLE_KEYS) - set(TABLE_KEYS)):
        raise StudyError(f"[{place}] {min(lone)}: expected the key 'ranking' with it, the format of a file of rankings")
    strict.table(top, place, ("kind", *keys), ("file",))
    file = path_at(top, "file", f"[{place}]", folder)
    assert file is not None
    return TableFile(
        file=file,
        public=strict.boolean(top.get("public", False), f"[{place}] public"),
        columns=_rankings(top, place) if "ranking" in top else _comparisons(top, place),
        items=path_at(top, "items", f"[{place}]", folder),
        features=path_at(top, "features", f"[{place}]", folder),
        features_columns=_texts(top, "features_columns", place),
        asked=parse_asked(top.get("ranking_as", "top"), f"[{place}] ranking_as") if "ranking" in top else None,
    )


def parse_asked(value: Any, place: str) -> RankingAs:
    """What each ranking answers. Raises StudyError."""
    try:
        return RankingAs.parse(strict.text(value, place))
    except SourceError as error:
        raise StudyError(f"{place}: {str(error).partition(': ')[2]}") from None


def path_at(table: Mapping[str, Any], key: str, place: str, folder: Path) -> Path | None:
    """A path relative to a folder; None where the key is not there. Raises StudyError."""
    return folder / strict.text(table[key], f"{place} {key}") if key in table else None


def _comparisons(top: Mapping[str, Any], place: str) -> Wanted:
    named: dict[str, Any] = {key: strict.text(top[key], f"[{place}] {key}") for key in COLUMN_KEYS if key in top}
    if "coding" in named:
        codes(named["coding"])
    both, between = (strict.text(top[key], f"[{place}] {key}") if key in top else None for key in ("pair", "between"))
    questions = _texts(top, "questions", place, empty=True)
    return Wanted(**named, questions=questions, both=both, between=between, wins=_texts(top, "wins", place))


def _rankings(top: Mapping[str, Any], place: str) -> RankingWanted:
    named = {key: strict.text(top[key], f"[{place}] {key}") for key in RANKING_KEYS if key in top}
    if "unranked" in top:
        named["unranked"] = strict.text(top["unranked"], f"[{place}] unranked", UNRANKED)
    return RankingWanted(
        form=strict.text(top["ranking"], f"[{place}] ranking", FORMATS),
        items=_texts(top, "item_columns", place),
        questions=_texts(top, "questions", place, empty=True),
        **named,
    )


def _texts(table: Mapping[str, Any], key: str, place: str, empty: bool = False) -> tuple[str, ...] | None:
    """A list of names; None where the key is not there."""
    if key not in table or (empty and table[key] == []):
        return None if key not in table else ()
    named = f"[{place}] {key}"
    return tuple(strict.text(item, named) for item in strict.sequence(table[key], named))
