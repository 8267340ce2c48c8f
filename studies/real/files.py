"""The file of a real study as tables: of comparisons, of rankings as they are asked, or of answers told by vectors."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from client.sources.columns import Wanted
from client.sources.item_features import read_item_features
from client.sources.loading import read_table
from client.sources.ranking_labels import RankingAs
from client.sources.reading import SourceError, read_records
from client.sources.table import Table
from protocol.strict import StudyError
from studies.files import NOT_NUMPY, unloaded
from studies.real.study import RealStudy, Vectors
from studies.terminal import printable


def require_files(study: RealStudy) -> None:
    """Raise StudyError unless the files that a study names are there."""
    vectors = None if study.vectors is None else study.vectors.file
    named = {"[data] file": study.data.file, "[data] features": study.data.features, "[vectors] file": vectors}
    for key, path in named.items():
        if path is not None and not path.is_file():
            got = "got a folder" if path.is_dir() else "found none"
            raise StudyError(f"{study.name}: {key}: expected the file {path}, {got}: is FOLDER the folder of the data?")


def read(study: RealStudy, asked: RankingAs | None) -> Table:
    """The table of a study's file, with what is asked of its rankings. Raises StudyError that names the place."""
    try:
        if study.vectors is not None:
            return embedded(study, study.vectors)
        return replace(study.data, asked=asked).read()
    except (SourceError, OSError) as error:
        raise StudyError(printable(str(error))) from None
    except NOT_NUMPY as error:
        raise StudyError(f"[vectors] file: expected an .npz file, {unloaded(error)}") from None


def embedded(study: RealStudy, vectors: Vectors) -> Table:
    """Comparisons whose items are answers, each described by its vector; the two files are joined by `items`.

    Raises SourceError for an answer without a vector, OSError for a file that does not open.
    """
    wanted = study.data.columns
    assert isinstance(wanted, Wanted) and wanted.labeler is not None and wanted.winner is not None
    questions = wanted.questions or ()
    records = read_records(study.data.file)
    named = (wanted.labeler, *vectors.item_a, *vectors.item_b, wanted.winner, *questions)
    if missing := [name for name in named if name not in records.names]:
        raise SourceError(f"{study.data.file}, header: expected the column {missing[0]!r}, found {records.names}")
    column = {name: [text or "" for text in records.column(name)] for name in named}
    pairs = [_keys([column[name] for name in side]) for side in (vectors.item_a, vectors.item_b)]
    asked = [column[name] for name in questions]
    with TemporaryDirectory() as fleeting:
        described, joined = Path(fleeting) / "vectors.npz", Path(fleeting) / "comparisons.csv"
        with np.load(vectors.file, allow_pickle=False) as stored:
            if missing := [name for name in (*vectors.items, vectors.values) if name not in stored]:
                raise SourceError(f"{vectors.file}: expected the array {missing[0]!r}, found {sorted(stored)}")
            names = _keys([[str(text) for text in stored[name]] for name in vectors.items])
            np.savez(described, items=np.array(names), features=stored[vectors.values].astype(np.float64))
        with joined.open("w", newline="", encoding="utf-8") as target:
            writer = csv.writer(target)
            writer.writerow(("labeler", "item_a", "item_b", "winner", *(f"question {at}" for at in range(len(asked)))))
            writer.writerows(zip(column[wanted.labeler], *pairs, column[wanted.winner], *asked, strict=True))
        columns = Wanted(
            *("labeler", "item_a", "item_b", "winner"),
            questions=tuple(f"question {at}" for at in range(len(asked))),
            coding=wanted.coding,
        )
        try:
            return read_table(joined, True, columns, features=read_item_features(described))
        except SourceError as error:  # a line of the joined file is the same line of the holder's
            text = str(error).replace(str(joined), str(study.data.file)).replace(str(described), str(vectors.file))
            raise SourceError(text) from None


def _keys(columns: list[list[str]]) -> list[str]:
    """What names an answer: the texts of some columns together."""
    return [json.dumps(parts) for parts in zip(*columns, strict=True)]
