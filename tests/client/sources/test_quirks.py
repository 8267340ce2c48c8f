"""Awkward files and real ones are read as they are meant, or refused with the place."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from client.sources.columns import Wanted
from client.sources.loading import read_table
from client.sources.outcomes import TIE
from client.sources.reading import SourceError, read_records
from client.sources.table import Table

ALONE = Wanted(labeler="none")


@pytest.fixture
def quirks(shared_data: Path) -> Path:
    return shared_data / "quirks"


def decided(table: Table) -> int:
    return int((table.values.reveal() != TIE).sum() - table.missing.reveal().sum())


@pytest.mark.parametrize(
    ("name", "wanted", "rows", "labels", "labelers", "items", "ties"),
    [
        ("q01_ties.csv", Wanted(), 5, 5, 3, 3, 4),
        ("q02_both_bad.csv", Wanted(), 4, 4, 3, 3, 3),
        ("q04_duplicate_pairs.csv", Wanted(), 6, 3, 3, 2, 2),
        ("q05_self_comparison.csv", Wanted(), 2, 2, 2, 3, 0),
        ("q06_single_label_labeler.csv", Wanted(), 8, 8, 3, 4, 0),
        ("q07_unicode_names.csv", Wanted(), 4, 4, 2, 5, 0),
        ("q08_bom.csv", Wanted(), 2, 2, 2, 3, 0),
        ("q10_non_numeric_ids.csv", Wanted(), 4, 4, 4, 7, 0),
        ("q12_huge_numbers.csv", Wanted(), 3, 3, 3, 3, 0),
        ("q15_blank_lines.jsonl", ALONE, 3, 3, 3, 6, 0),
        ("q17_gzip.csv.gz", Wanted(), 6, 6, 6, 2, 0),
        ("q17_gzip_wrong_name.csv", Wanted(), 6, 6, 6, 2, 0),
        ("q17_zst.csv.zst", Wanted(), 6, 6, 6, 2, 0),
        ("q19_never_wins.csv", Wanted(), 4, 4, 4, 5, 0),
    ],
)
def test_awkward_files(
    quirks: Path, name: str, wanted: Wanted, rows: int, labels: int, labelers: int, items: int, ties: int
) -> None:
    table = read_table(quirks / name, False, wanted)
    assert (len(table.pairs), table.label_count, len(table.labelers), len(table.items)) == (
        rows,
        labels,
        labelers,
        items,
    )
    assert table.private_counts().ties == ties


def test_repeated_answers_are_counted_as_contradictions_where_they_differ(quirks: Path) -> None:
    assert read_table(quirks / "q04_duplicate_pairs.csv", False).private_counts().contradictions == 1
    assert read_table(quirks / "q05_self_comparison.csv", False).dropped == 2
    owners = read_table(quirks / "q06_single_label_labeler.csv", False).owners.tolist()
    assert sorted(Counter(owners).values()) == [1, 3, 4]


def test_quoted_line_breaks_and_windows_line_ends(quirks: Path) -> None:
    records = read_records(quirks / "q09_crlf_embedded_newline.csv")
    assert records.column("winner") == ["left", "right", "tie"]
    assert records.column("prompt")[2] == 'ends with quote "'
    with pytest.raises(SourceError, match=r"two columns of items .* got the columns pair_id, prompt, winner"):
        read_table(quirks / "q09_crlf_embedded_newline.csv", False)


@pytest.mark.parametrize(
    ("name", "wanted", "message"),
    [
        ("q13b_nan_inf.jsonl", ALONE, "line 1: expected one JSON object, got: NaN"),
        (
            "q16_column_names.jsonl",
            ALONE,
            "line 2: expected the key 'response_k', .* got 'prompt', 'chosen', 'rejected'",
        ),
        (
            "q16_column_names.jsonl",
            Wanted("none", winner="response_j", loser="response_k", questions=()),
            "line 2: expected the key 'response_k', .* got 'prompt', 'chosen', 'rejected'",
        ),
        ("q18_empty_or_identical_text.jsonl", ALONE, "line 3, field chosen: expected a name, .* --unnamed drop"),
        ("q12b_huge_values.csv", ALONE, "two columns of items"),
        ("q13_nan_inf.csv", ALONE, "two columns of items"),
    ],
)
def test_what_holds_no_comparisons_of_items_is_refused(quirks: Path, name: str, wanted: Wanted, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read_table(quirks / name, False, wanted)


LLMFAO = Wanted(item_a="left", item_b="right")


@pytest.mark.parametrize(
    ("name", "wanted", "rows", "labelers", "items", "ties", "missing"),
    [
        ("llmfao_crowd_comparisons.csv", LLMFAO, 8931, 124, 59, 3471, 0),
        ("llmfao_gpt4_comparisons.csv", Wanted("none", "left", "right"), 2139, 2139, 59, 66, 0),
        ("mtbench_human_judgments.jsonl", Wanted(), 3355, 65, 6, 780, 0),
        ("mtbench_gpt4_pair.jsonl", Wanted(), 2400, 1, 6, 600, 0),
        ("first_names.csv", Wanted(), 2880, 192, 6, 0, 0),
        ("german_parties_2009.csv", Wanted(), 2880, 192, 6, 0, 0),
        ("cems_choice_ties.csv", Wanted(), 4545, 303, 6, 487, 91),
        ("sound_quality.csv", Wanted(questions=("progmat", "session")), 21924, 40, 8, 0, 0),
        ("sounds_assessors.csv", Wanted(), 1380, 46, 12, 0, 0),
        ("football_spain.csv", Wanted("none", coding="1/0/-1"), 1900, 1900, 29, 505, 0),
        ("flatlizards_contests.csv", ALONE, 100, 100, 77, 0, 0),
    ],
)
def test_real_files(
    shared_data: Path, name: str, wanted: Wanted, rows: int, labelers: int, items: int, ties: int, missing: int
) -> None:
    table = read_table(shared_data / "pairwise" / name, False, wanted)
    assert (len(table.pairs), len(table.labelers), len(table.items)) == (rows, labelers, items)
    counts = table.private_counts()
    assert (counts.ties, counts.missing) == (ties, missing)
    assert decided(table) == rows - ties - missing


@pytest.mark.parametrize("name", ["first_names.csv", "german_parties_2009.csv"])
def test_fifteen_labels_a_labeler(shared_data: Path, name: str) -> None:
    table = read_table(shared_data / "pairwise" / name, False)
    assert table.label_count == 2880
    assert set(np.bincount(table.owners)) == {15}


def test_a_pair_judged_twice_in_swapped_order_is_one_label(shared_data: Path) -> None:
    table = read_table(shared_data / "pairwise" / "mtbench_human_judgments.jsonl", False)
    assert table.identities[1969] == table.identities[1971]
