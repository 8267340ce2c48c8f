"""A look at a file of comparisons: column by column, and at last as the table that every command reads."""

import argparse
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from client.sources.columns import DROP, NONE, Columns, NoComparison, Wanted, choose
from client.sources.comparisons import comparisons, different, pairs, whose
from client.sources.item_features import ItemFeatures
from client.sources.loading import read_table
from client.sources.outcomes import SECOND, TIE, homonyms, meanings
from client.sources.pair_cells import with_separator
from client.sources.prompts import answer_to
from client.sources.reading import Records, SourceError, Texts
from studies.data.findings import MOST_SHOWN, Finding
from studies.data.look_features import features_of, look_at_features
from studies.data.look_graph import look_at_graph
from studies.data.look_labels import Rows, look_at_answers, look_at_repetitions, who_beat_whom
from studies.data.look_names import found_at, look_at_names, look_at_spellings
from studies.data.report import Report


def look_at_comparisons(report: Report, records: Records, wanted: Wanted, args: argparse.Namespace) -> None:
    """Look at all of it. Raises SourceError where it can be read no further, NoComparison where it holds none."""
    columns = with_separator(records, _columns(report, records, wanted))
    report.kind = "comparisons"
    report.mapping = [(what, list(names), said is not None) for what, names, said in columns.parts(wanted)]
    report.flags = flags_of(columns)
    sides = pairs(records, columns)
    owners = None if columns.labeler is None else records.column(columns.labeler)
    _look_at_rows(report, records, columns, sides, owners)
    rows, texts = _rows(records, columns, sides, owners)
    report.counts |= _counts(rows, columns)
    features = features_of(report, args)
    look_at_features(report, records, features, _items(records, columns, rows, features))
    report.findings += look_at_answers(records, rows, texts)
    report.findings += look_at_repetitions(records, rows)
    if len(rows.places):
        report.findings += look_at_graph(*who_beat_whom(rows))
    if columns.sides is not None and columns.winner is not None:
        items = sorted({*rows.first, *rows.second})
        if found := homonyms(items, columns.coding, columns.sides):
            report.findings.append(Finding("read-as-items", len(found), (), tuple(found[:MOST_SHOWN])))
    if report.usable:
        table = read_table(records.path, False, wanted, features=features, records=records)
        report.counts["labels"] = table.label_count


def flags_of(columns: Columns) -> str:
    """The flags that say what was read as what."""
    named = {"--labeler": columns.labeler or NONE}
    if columns.pair is not None:
        named |= {"--item-a": columns.pair[0], "--item-b": columns.pair[1]}
    named |= {"--pair": columns.both or "", "--winner": columns.winner or "", "--loser": columns.loser or ""}
    between = "tab" if columns.between == "\t" else columns.between
    named |= {
        "--pair-separator": between or "",
        "--winner-coding": columns.coding or "",
        "--wins": ",".join(columns.wins),
    }
    named |= {"--question": ",".join(columns.questions) or NONE}
    named |= {"--prompt": columns.prompt or ""}
    return " ".join(f"{flag} {shlex.quote(text)}" for flag, text in named.items() if text)


def _columns(report: Report, records: Records, wanted: Wanted) -> Columns:
    """What is read as what; where nothing says who answered, every row is taken as somebody else's."""
    try:
        return choose(records.path, records.names, wanted)
    except NoComparison:
        raise
    except SourceError as error:
        try:
            columns = choose(records.path, records.names, replace(wanted, labeler=NONE))
        except SourceError:
            raise error from None
        report.findings.append(Finding("no-labelers", len(records)))
        return columns


def _look_at_rows(
    report: Report, records: Records, columns: Columns, sides: tuple[Texts, Texts], owners: Texts | None
) -> None:
    """Rows without names, or with one name twice; and the names."""
    unnamed = [place for place, pair in enumerate(zip(*sides, strict=True)) if None in pair]
    if unnamed:
        code = "unnamed-left-out" if columns.unnamed == DROP else "unnamed"
        report.findings.append(found_at(code, records, unnamed, []))
    same = [place for place, (a, b) in enumerate(zip(*sides, strict=True)) if a is not None and a == b]
    if same:
        report.findings.append(found_at("same-item", records, same, [str(sides[0][place]) for place in same]))
    if owners is not None and None in owners:
        nobody = [place for place, owner in enumerate(owners) if owner is None]
        report.findings.append(found_at("no-name", records, nobody, []))
    named = (*columns.items, *(() if columns.labeler is None else (columns.labeler,)))
    report.findings += look_at_spellings(records, named)
    for names in (sides, () if owners is None else (owners,)):
        first: dict[str, int] = {}
        for column in names:
            for place, name in enumerate(column):
                if name is not None and first.get(name, place) >= place:
                    first[name] = place
        report.findings += look_at_names(records, first)


def _rows(
    records: Records, columns: Columns, sides: tuple[Texts, Texts], owners: Texts | None
) -> tuple[Rows, Sequence[str | None]]:
    """Rows about two different items that somebody answered, and the texts that say who won. Raises SourceError."""
    texts: Sequence[str | None] = []
    if columns.wins:
        found = comparisons(records, columns)
        who, asked = whose(records, columns, found)
        return Rows(found.places, found.first, found.second, found.outcome, who, asked, False), texts
    places, first, second = different(*sides)
    if columns.sides is None or columns.winner is None:
        values = np.full(len(places), SECOND, dtype=np.uint8)
    else:
        texts = records.column(columns.winner)
        values = meanings(texts, columns.coding, places, columns.sides, (first, second))
    questions = [[text or "" for text in records.column(name)] for name in sorted(columns.questions)]
    asked = ["\n".join(text[place] for text in questions) for place in places]
    who = [f"row {place}" if owners is None else owners[place] or "" for place in places]
    return Rows(places, first, second, values, who, asked, columns.sides is not None), texts


def _counts(rows: Rows, columns: Columns) -> dict[str, Any]:
    """Public counts, and those of answers."""
    sizes = np.array(sorted(Counter(rows.owners).values())) if rows.owners else np.zeros(1, dtype=np.int64)
    found: dict[str, Any] = {
        "rows": len(rows.places),
        "items": len({*rows.first, *rows.second}),
        "labelers": len(set(rows.owners)),
        "rows of a labeler": {"least": int(sizes[0]), "median": float(np.median(sizes)), "most": int(sizes[-1])},
        "questions": len(set(rows.questions)),
        "ties": int((rows.values == TIE).sum()),
    }
    if rows.sided:
        found["wins of the first item"], found["wins of the second item"] = (
            int((rows.values == value).sum()) for value in (0, 1)
        )
    return found


def _items(records: Records, columns: Columns, rows: Rows, features: ItemFeatures | None) -> dict[str, int]:
    """Items that are compared, as features name them, and the first record of each."""
    first: dict[str, int] = {}
    prompt = columns.prompt or (None if features is None else features.prompt)
    prompts = None if prompt is None else records.column(prompt)
    for side in (rows.first, rows.second):
        for name, place in zip(side, rows.places, strict=True):
            item = name if prompts is None else answer_to(name, prompts[place])
            first[item] = min(place, first.get(item, place))
    return first
