"""Damaged files: read as an obvious reader reads them, or refused with a SourceError; never anything else."""

import csv
import gzip
import io
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.sources.columns import Columns, Wanted
from client.sources.item_features import read_item_features
from client.sources.loading import read_table
from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from client.sources.reading import SourceError, read_records
from client.sources.record_columns import RecordColumns
from client.sources.record_table import read_record_table
from client.sources.table import Table

ALONE = Wanted("none")
FILES: dict[str, Wanted | RankingWanted] = {
    "quirks/q01_ties.csv": Wanted(),
    "quirks/q04_duplicate_pairs.csv": Wanted(),
    "quirks/q07_unicode_names.csv": Wanted(),
    "quirks/q09_crlf_embedded_newline.csv": Wanted("none", winner="prompt", loser="winner", questions=("pair_id",)),
    "quirks/q10_non_numeric_ids.csv": Wanted(),
    "quirks/q15_blank_lines.jsonl": ALONE,
    "quirks/q16_column_names.jsonl": ALONE,
    "quirks/q17_gzip.csv.gz": Wanted(),
    "quirks/q17_zst.csv.zst": Wanted(),
    "quirks/q18_empty_or_identical_text.jsonl": Wanted("none", unnamed="drop-public"),
    "pairwise/baseball_1987_aggregated.csv": ALONE,
    "pairwise/cems_choice_ties.csv": Wanted(),
    "pairwise/football_spain.csv": Wanted("none", coding="1/0/-1"),
    "pairwise/llmfao_crowd_comparisons.csv": Wanted(item_a="left", item_b="right"),
    "pairwise/mtbench_human_judgments.jsonl": Wanted(),
    "pairwise/sounds_assessors.csv": Wanted(),
    "pairwise/story_3b_pairwise.csv": Wanted("none", winner="creativity", both="options"),
    "rankings/beans_triadic.csv": RankingWanted("best-worst", items=("variety_a", "variety_b", "variety_c")),
    "rankings/salad_wide.csv": RankingWanted("wide"),
}
HEAD = 2500  # bytes of a real file: mutations of its beginning are mutations of all that is read there
PIECES = (
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"{",
    b"}",
    b"[",
    b"]",
)
PIECES += (
    b"null",
    b"NaN",
    b"1e999",
    b'"":',
    b"\\ud800",
    b"\xcc\x81",
    b"\xc2\xa0",
    b" ",
    b"-",
    b"9" * 40,
    b"PAR1",
    b"\x1f\x8b",
)


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """Bytes with one to four changes: of a byte, a piece taken out, put in, doubled, moved, or cut off."""
    found = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, size = rng.randrange(len(found) + 1), rng.choice((1, 3, 20, 200))
        kind = rng.randrange(7)
        if kind == 0 and at < len(found):
            found[at] = rng.randrange(256)
        elif kind == 1:
            del found[at : at + size]
        elif kind == 2:
            found[at:at] = rng.choice(PIECES)
        elif kind == 3:
            found[at:at] = found[at : at + size]
        elif kind == 4:
            piece = found[at : at + size]
            del found[at : at + size]
            found[(to := rng.randrange(len(found) + 1)) : to] = piece
        elif kind == 5:
            lines = bytes(found).split(b"\n")
            rng.shuffle(lines)
            found[:] = b"\n".join(lines)
        elif rng.random() < 0.2:
            del found[at:]
    return bytes(found)


def begun(path: Path) -> bytes:
    """The beginning of a file, up to a line's end; a compressed file whole."""
    raw = path.read_bytes()
    return raw if len(raw) <= HEAD or path.suffix in (".gz", ".zst") else raw[: raw.rindex(b"\n", 0, HEAD) + 1]


def read(path: Path, wanted: Wanted | RankingWanted) -> Table | None:
    """The table of a file; None where it is refused. Every other exception is a fault."""
    try:
        if isinstance(wanted, RankingWanted):
            return read_ranking_table(path, False, wanted, RankingAs(1))
        return read_table(path, False, wanted)
    except SourceError as error:
        said = str(error)
    assert str(path) in said
    return None


def check(path: Path, raw: bytes, wanted: Wanted | RankingWanted, obvious: ModuleType) -> bool:
    """Read bytes in every way; whether there was a table.

    A file is refused, naming it, or every column that is read is the obvious reader's, and so is every row: whose,
    about what, who won, in which order, none more and none less. Anything else is a silent change.
    """
    path.write_bytes(raw)
    table = read(path, wanted)
    if table is None:
        return False
    records, cells = read_records(path), obvious.cells(raw)
    assert len(records) == len(cells)
    columns = table.columns
    for name in columns.named():
        assert records.column(name) == [obvious.clean(record[name]) for record in cells], name
    if isinstance(columns, Columns) and not columns.wins:
        rows = list(obvious.rows(cells, columns, columns.unnamed == "drop-public"))
        assert rows == list(obvious.rows_of(table))
        assert len(rows) + table.dropped + table.unnamed == len(cells)
        labels = [(owner, a, b, question) for owner, a, b, _, question in rows]
        assert table.first.tolist() == [label not in labels[:place] for place, label in enumerate(labels)]
    elif isinstance(columns, Columns):
        wins = Counter(row[1:4] for row in obvious.rows_of(table))
        found: Counter[tuple[str, str, str]] = Counter()
        for one, other, won, count in obvious.counted(cells, columns):
            found[min(one, other), max(one, other), won] += count
        assert +found == wins
    return True


def many(folder: Path, data: Path, count: int, seed: int, obvious: ModuleType) -> tuple[int, int]:
    """Mutations of each file: how many there were, and how many of them were read."""
    rng, done, tables = random.Random(seed), 0, 0
    for name, wanted in FILES.items():
        raw = begun(data / name)
        assert check(folder / "file", raw, wanted, obvious) or "q16" in name
        for _ in range(count):
            tables += check(folder / "file", mutated(raw, rng), wanted, obvious)
            done += 1
    return done, tables


def test_mutations_are_read_as_they_stand_or_refused(tmp_path: Path, shared_data: Path, obvious: ModuleType) -> None:
    pytest.importorskip("zstandard")
    done, tables = many(tmp_path, shared_data, 15, 20261130, obvious)
    assert 0.1 * done < tables < 0.9 * done


@pytest.mark.slow
def test_fifty_thousand_mutations(tmp_path: Path, shared_data: Path, obvious: ModuleType) -> None:
    """Two minutes of one core; all are refused or read as the second reader does."""
    pytest.importorskip("zstandard")
    done, _ = many(tmp_path, shared_data, 50_000 // len(FILES) + 1, 1, obvious)
    assert done >= 50_000


def test_mutations_of_parquet(tmp_path: Path) -> None:
    path, rng = tmp_path / "file", random.Random(7)
    answers = {
        "labeler": ["r", "s"] * 9,
        "item_a": ["a"] * 18,
        "item_b": ["b", "c", "d"] * 6,
        "winner": ["a", None] * 9,
    }
    pq.write_table(pa.table(answers), path)
    raw, wanted = path.read_bytes(), Wanted()
    assert read(path, wanted) is not None
    for _ in range(150):
        path.write_bytes(mutated(raw, rng))
        read(path, wanted)


OTHERS: dict[str, Callable[[Path], object]] = {
    "heavy_tailed/forbes2000.csv": lambda path: read_record_table(path, False, SALES),
    "heavy_tailed/auto_claims_paid.csv": lambda path: read_record_table(path, False, PAID),
    "quirks/q13b_nan_inf.jsonl": lambda path: read_record_table(path, False, RecordColumns(("y",), "mean", id="id")),
    "pairwise/flatlizards_features.csv": lambda path: read_item_features(path, ["throat.PC1", "SVL"]),
    "rankings/nascar_2002_long.csv": lambda path: read_ranking_table(path, False, RACES, RankingAs(1)),
    "rankings/breadwheat_triadic.csv": lambda path: read_ranking_table(path, False, WHEAT, RankingAs(0)),
}
SALES = RecordColumns(("sales", "profits"), "mean", id="rownames", missing="drop-public")
PAID = RecordColumns(("AGE",), "linear", response="PAID")
RACES, WHEAT = RankingWanted(labeler="none", unranked="absent"), RankingWanted(best="overall_best")


@pytest.mark.parametrize("name", OTHERS)
def test_mutations_of_numbers_features_and_rankings(tmp_path: Path, shared_data: Path, name: str) -> None:
    path, raw, rng, refused = tmp_path / "file", begun(shared_data / name), random.Random(11), 0
    for _ in range(40):
        path.write_bytes(mutated(raw, rng))
        try:
            OTHERS[name](path)
        except SourceError:
            refused += 1
    assert refused


def _same(one: Table, other: Table) -> bool:
    arrays = ("pairs", "owners", "rows_held", "first")
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and all(
            np.array_equal(getattr(one, name).reveal(), getattr(other, name).reveal()) for name in ("values", "missing")
        )
        and (one.identities, one.items, one.labelers, one.questions, one.dropped, one.unnamed)
        == (other.identities, other.items, other.labelers, other.questions, other.dropped, other.unnamed)
    )


NEUTRAL: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "no line feed at the end": lambda raw: raw.rstrip(b"\r\n"),
    "blank lines": lambda raw: b"\n\n" + raw + b"\n\n",
    "gzip": lambda raw: gzip.compress(raw),
    "gzip of two members": lambda raw: gzip.compress(raw[:100]) + gzip.compress(raw[100:]),
    "decomposed letters": lambda raw: unicodedata.normalize("NFD", raw.decode()).encode(),
}


@pytest.mark.parametrize("name", [name for name in FILES if not name.endswith(("gz", "zst")) and "q16" not in name])
def test_what_changes_no_cell_changes_nothing(tmp_path: Path, shared_data: Path, name: str) -> None:
    path, raw, wanted = tmp_path / "file", begun(shared_data / name), FILES[name]
    path.write_bytes(raw)
    before = read(path, wanted)
    assert before is not None
    for change in NEUTRAL.values():
        path.write_bytes(change(raw))
        after = read(path, wanted)
        assert after is not None
        assert _same(before, after)
    if name.endswith(".jsonl"):
        records = [json.loads(line) for line in raw.decode("utf-8-sig").split("\n") if line.strip()]
        turned = [json.dumps({"new": [1], **dict(reversed(record.items()))}) for record in records]
        path.write_text("\n".join(turned), encoding="utf-8")
    else:
        rows = [row for row in csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline="")) if row]
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    after = read(path, wanted)
    assert after is not None
    assert _same(before, after)
