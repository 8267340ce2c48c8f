"""Comparisons as people write them: counted wins, a pair in one cell, preferred texts; what is left out, and why."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.sources.columns import DROP, Wanted
from client.sources.comparisons import comparisons
from client.sources.loading import read_table
from client.sources.outcomes import FIRST, SECOND, TIE
from client.sources.reading import EMPTY, LONGEST_NAME, SourceError, name_of, read_records
from client.sources.table import Table

ALONE = Wanted("none")


def table(folder: Path, text: str, wanted: Wanted = ALONE) -> Table:
    path = folder / "votes"
    path.write_text(text, encoding="utf-8")
    return read_table(path, False, wanted)


def lines(folder: Path, *records: object, wanted: Wanted = ALONE) -> Table:
    return table(folder, "\n".join(map(json.dumps, records)), wanted)


def won(found: Table) -> Counter[tuple[str, str]]:
    """How often each item won against each other; a tie counts under both orders' common name."""
    names = [tuple(found.items[item] for item in pair) for pair in found.pairs.tolist()]
    values = found.values.reveal().tolist()
    return Counter((pair[value], pair[1 - value]) for pair, value in zip(names, values, strict=True) if value != TIE)


def test_each_counted_win_is_a_label(shared_data: Path) -> None:
    found = read_table(shared_data / "pairwise" / "baseball_1987_aggregated.csv", False, ALONE)
    assert (len(found.pairs), found.label_count, len(found.labelers), len(found.items)) == (273, 273, 273, 7)
    assert (won(found)["Milwaukee", "Detroit"], won(found)["Detroit", "Milwaukee"]) == (4 + 3, 3 + 3)
    assert not found.homonyms
    assert "wins: home.wins, away.wins (guessed)" in found.columns.describe(ALONE)  # type: ignore[call-arg]


def test_the_order_of_counted_wins_is_that_of_no_answer(tmp_path: Path) -> None:
    """Rows of one record stand in an order by place; in that of answers the first would all be the first item's."""
    found = table(tmp_path, "home,away,home_wins,away_wins\na,b,30,30\na,b,30,30\n")
    values = found.values.reveal()
    assert values[:60].sum() == values[60:].sum() == 30
    assert 5 < values[:30].sum() < 25
    assert not np.array_equal(values[:60], values[60:])


@given(st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=25)
def test_one_win_more_for_the_other_changes_one_row(tmp_path_factory: pytest.TempPathFactory, a: int, b: int) -> None:
    folder = tmp_path_factory.mktemp("wins")
    one, other = (
        table(folder, f"home,away,home_wins,away_wins\na,b,{x},{y}\nb,a,1,0\n") for x, y in ((a + 1, b), (a, b + 1))
    )
    assert one.identities == other.identities
    assert (one.values.reveal() != other.values.reveal()).sum() == 1


def test_a_labeler_s_wins_are_numbered_however_lines_share_them(tmp_path: Path) -> None:
    head = "judge,home,away,home_wins,away_wins\n"
    found = table(tmp_path, head + "r,a,b,2,1\nr,b,a,1,0\ns,a,b,1,0\n", Wanted())
    assert (len(found.pairs), found.label_count, len(found.labelers)) == (5, 5, 2)
    assert set(table(tmp_path, head + "r,a,b,2,2\ns,a,b,1,0\n", Wanted()).identities) == set(found.identities)


def test_one_hot_answers_may_have_ties(tmp_path: Path) -> None:
    head = "model_a,model_b,winner_model_a,winner_model_b,winner_tie\n"
    assert table(tmp_path, head + "a,b,1,0,0\na,b,0,1,0\na,b,0,0,1\n").values.reveal().tolist() == [FIRST, SECOND, TIE]
    with pytest.raises(SourceError, match="line 2: expected one comparison a line where ties are counted, got 3"):
        table(tmp_path, head + "a,b,1,1,1\n")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('a,b,4,"1,024"', "a whole number of wins without separators of thousands, got '1,024'"),
        ("a,b,4,-1", "line 2, field away_wins: expected a count, a whole number of wins, got '-1'"),
        ("a,b,4.0,1", "line 2, field home_wins: expected a count, .* got '4.0'"),
        ("a,b,,1", "line 2, field home_wins: expected a count, .* got an empty field"),
        ("a,b,1e3,1", "expected a count"),
        ("a,b,\uff11,1", "expected a count"),
        ("a,b,0,0", "line 2: expected at least one win, got none"),
        ("a,b,9999999999,1", "line 2: expected at most .* wins in all"),
        ("a,a,3,3", "expected at least one comparison of two items"),
    ],
)
def test_a_count_that_is_no_count(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        table(tmp_path, f"home,away,home_wins,away_wins\n{row}\n")


def test_a_pair_in_one_cell(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "pairwise" / "story_3b_pairwise.csv"
    found = read_table(path, False, Wanted("none", winner="overall_quality", both="options"))
    assert (len(found.pairs), len(found.items), found.private_counts().ties) == (120, 4, 13)
    creative = read_table(path, False, Wanted("none", winner="creativity", both="options"))
    assert won(found) != won(creative)
    one = Wanted("none", winner="winner", both="pair")
    assert won(table(tmp_path, 'pair,winner\n"x, y",y\n"y,x",first\n', one)) == {("y", "x"): 2}


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(both="p", item_a="a", item_b="b"),
        Wanted(both="p", loser="a", winner="b"),
        Wanted(wins=("a", "b"), winner="c"),
        Wanted(wins=("a",), both="p"),
        Wanted(wins=("a", "b", "c", "d"), both="p"),
        Wanted(wins=("a", "b"), both="p", coding="1/0"),
        Wanted(both="p", winner="a", unnamed="drop"),
        Wanted(winner="a", item_a="b", item_b="c", between=","),
        Wanted(both="p", winner="a", between=""),
    ],
)
def test_flags_that_exclude_each_other(tmp_path: Path, wanted: Wanted) -> None:
    with pytest.raises(SourceError, match=r"^--"):
        table(tmp_path, "labeler,p,a,b,c,d\nr,x,1,0,0,0\n", wanted)


SCHEMAS: list[tuple[dict[str, object], Wanted]] = [
    ({"question": "q", "response_j": "good", "response_k": "bad"}, ALONE),
    ({"prompt": "q", "chosen": "good", "rejected": "bad"}, ALONE),
    ({"instruction": "q", "output_1": "good", "output_2": "bad", "preference": 1}, Wanted("none", coding="1/2")),
    (
        {"post": "q", "summaries": [{"text": "good"}, {"text": "bad"}], "choice": 0},
        Wanted("none", "summaries.0.text", "summaries.1.text", coding="0/1"),
    ),
    ({"prompt": "q", "pair": ["good", "bad"], "winner": "good"}, Wanted("none", "pair.0", "pair.1")),
    (
        {"prompt": "q", "best": {"text": "good"}, "worst": {"text": "bad"}},
        Wanted("none", winner="best.text", loser="worst.text"),
    ),
]


@pytest.mark.parametrize(("record", "wanted"), SCHEMAS)
def test_schemas_of_preferences(tmp_path: Path, record: dict[str, object], wanted: Wanted) -> None:
    found = lines(tmp_path, record, wanted=wanted)
    assert won(found) == {("good", "bad"): 1}
    assert found.questions[0] in ("q", "")


def test_conversations_are_items(tmp_path: Path) -> None:
    def talk(answer: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": "q"}, {"role": "assistant", "content": answer}]

    found = lines(
        tmp_path, {"chosen": talk("good"), "rejected": talk("bad")}, {"chosen": talk("good"), "rejected": "x"}
    )
    good = '[{"content":"q","role":"user"},{"content":"good","role":"assistant"}]'
    assert won(found)[good, "x"] == 1
    turns = [{"from": "human", "value": "q"}]
    assert len(lines(tmp_path, {"chosen": turns, "rejected": "x"}).items) == 2
    for other in ([["a"]], ["a"], {"role": "user", "content": "q"}, [{"role": "user"}], []):
        with pytest.raises(SourceError, match=r"line 1, field chosen: expected text or a number, got a (list|dict)"):
            lines(tmp_path, {"chosen": other, "rejected": "x"})


def test_a_file_that_mixes_schemas_fails_at_the_first_record_that_does_not_fit(tmp_path: Path) -> None:
    records = [{"chosen": "a", "rejected": "b"}, {"prompt": "q", "chosen": "c", "rejected": "d"}, {"winner": "a"}]
    with pytest.raises(SourceError, match=r"line 3: expected the key 'rejected', as in the lines before, got 'winner'"):
        lines(tmp_path, *records)
    with pytest.raises(SourceError, match=r"line 2: expected the key 'a.0'"):
        lines(tmp_path, {"a": ["x", "y"], "winner": "x"}, {"a": [], "winner": "x"}, wanted=Wanted("none", "a.0", "a.1"))


def test_a_key_that_is_there_twice_is_not_one_of_both(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 1: expected one JSON object, got: the key 'chosen' twice"):
        table(tmp_path, '{"chosen": "a", "rejected": "b", "chosen": "c"}\n')


def test_missing_and_empty_texts(tmp_path: Path, shared_data: Path) -> None:
    rows = [{"chosen": "", "rejected": "x"}, {"chosen": None, "rejected": "x"}, {"chosen": "s", "rejected": "s"}]
    with pytest.raises(SourceError, match=r"line 2, field chosen: expected a name, .*--unnamed drop-public"):
        lines(tmp_path, *rows)
    found = lines(tmp_path, *rows, wanted=Wanted("none", unnamed=DROP))
    assert (won(found), found.dropped, found.unnamed) == ({(EMPTY, "x"): 1}, 1, 1)
    with pytest.raises(SourceError, match="line 1, field model_a: expected a name"):  # no answer but a name is empty
        lines(tmp_path, {"model_a": "", "model_b": "x", "winner": "x"})
    real = shared_data / "preference_text"
    found = read_table(real / "llmfao_chosen_rejected_1500.jsonl.gz", False)
    empty = sum(count for pair, count in won(found).items() if EMPTY in pair)
    assert (len(found.pairs), len(found.labelers), empty) == (1500, 117, 28 + 117)  # empty, and blank
    quirk = read_table(
        shared_data / "quirks" / "q18_empty_or_identical_text.jsonl", False, Wanted("none", unnamed=DROP)
    )
    assert (len(quirk.pairs), quirk.unnamed, quirk.dropped) == (2, 1, 1)


def test_which_rows_are_left_out_does_not_depend_on_who_won(tmp_path: Path) -> None:
    wanted = Wanted("none", unnamed=DROP)
    rows: Sequence[tuple[object, object]] = [("a", None), ("a", "b"), ("c", "c"), ("", "b")]
    one, other = (
        lines(tmp_path, *({"chosen": pair[way], "rejected": pair[1 - way]} for pair in rows), wanted=wanted)
        for way in (0, 1)
    )
    assert one.identities == other.identities
    assert one.pairs.tolist() == other.pairs.tolist()
    assert (one.values.reveal() != other.values.reveal()).all()


@given(st.text(max_size=400))
def test_the_name_of_a_name_is_the_same(text: str) -> None:
    try:
        name = name_of(text)
    except UnicodeEncodeError:
        return
    assert name_of(name) == name
    assert len(name) <= LONGEST_NAME


def test_long_texts_are_told_apart_by_their_hash(tmp_path: Path) -> None:
    start = "word " * 100
    found = lines(tmp_path, {"chosen": start + "a", "rejected": start + "b"}, {"chosen": start + "a", "rejected": "b"})
    assert len(found.items) == 3
    assert all(len(item) <= LONGEST_NAME for item in found.items)
    assert len(comparisons(read_records(tmp_path / "votes"), found.columns).places) == 2  # type: ignore[arg-type]
