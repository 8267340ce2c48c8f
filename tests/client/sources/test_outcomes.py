"""What a winner's field may say, and that nothing but the holder's declaration decides what it means."""

from pathlib import Path

import numpy as np
import pytest

from client.sources.columns import Wanted
from client.sources.loading import read_table
from client.sources.outcomes import FIRST, SECOND, TIE, in_order
from client.sources.reading import SourceError


def values(folder: Path, header: str, *rows: str, coding: str | None = None) -> list[int]:
    path = folder / "votes.csv"
    path.write_text("\n".join((f"labeler,{header}", *(f"r{i},{row}" for i, row in enumerate(rows)))), encoding="utf-8")
    return read_table(path, False, Wanted(coding=coding)).values.reveal().tolist()


def test_arena_words(tmp_path: Path) -> None:
    words = ["model_a", "model_b", "tie", "tie (bothbad)", "tie (inconsistent)", "both_bad", "Tie"]
    found = values(tmp_path, "model_a,model_b,winner", *(f"p,q,{word}" for word in words))
    assert found == [FIRST, SECOND] + [TIE] * 5


def test_columns_are_names_of_sides_too(tmp_path: Path) -> None:
    assert values(tmp_path, "option_a,option_b,choice", "p,q,option_a", "p,q,option_b") == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("coding", "codes", "meant"),
    [
        ("1/0/-1", ["1", "0", "-1"], [FIRST, TIE, SECOND]),
        ("1/0", ["1", "0", "1"], [FIRST, SECOND, FIRST]),
        ("0/1", ["1", "0", "1"], [SECOND, FIRST, SECOND]),
        ("1/2", ["2", "1", "2"], [SECOND, FIRST, SECOND]),
        ("H / D / A", ["H", "D", "A"], [FIRST, TIE, SECOND]),
        ("true/false", ["false", "true", "true"], [SECOND, FIRST, FIRST]),
    ],
)
def test_codes_mean_what_the_holder_declares(tmp_path: Path, coding: str, codes: list[str], meant: list[int]) -> None:
    rows = [f"p,q,{code}" for code in codes]
    assert values(tmp_path, "home,away,result", *rows, coding=coding) == meant
    for row, code in zip(rows, meant, strict=True):
        assert values(tmp_path, "home,away,result", row, coding=coding) == [code], "whatever the others say"
    with pytest.raises(SourceError, match=r"field result: expected one of .* got '7'"):
        values(tmp_path, "home,away,result", "p,q,7", coding=coding)


@pytest.mark.parametrize("rows", [["p,q,1", "p,q,0"], ["p,q,1", "p,q,0", "p,q,-1"], ["p,q,1", "p,q,2"], ["p,q,0"]])
def test_numbers_mean_nothing_before_the_holder_says_what(tmp_path: Path, rows: list[str]) -> None:
    """A single -1 among 1 and 0 made the file readable, and ties of its zeros."""
    with pytest.raises(SourceError, match=r"line 2, field result: .*--winner-coding.* coding.*1/0/-1"):
        values(tmp_path, "home,away,result", *rows)


@pytest.mark.parametrize("coding", ["1", "1/0/-1/2", "1/1", "1//2", "", "winner", "1/0/"])
def test_no_coding(tmp_path: Path, coding: str) -> None:
    with pytest.raises(SourceError, match="expected a coding of winners, got"):
        values(tmp_path, "home,away,result", "p,q,p", coding=coding)


def test_a_loser_needs_no_coding(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="--winner-coding: expected none"):
        values(tmp_path, "loser,winner", "p,q", coding="names")


def test_an_item_s_name_is_no_word(tmp_path: Path) -> None:
    """Whether a text is a name or a word is up to the items, which are public, not to its own row's label."""
    rows = ["a,b,a", "a,c,c", "c,b,b", "a,tie,tie", "a,b,item_b", "b,c,draw"]
    assert values(tmp_path, "left,right,winner", *rows) == [FIRST, SECOND, FIRST, SECOND, SECOND, TIE]
    for word in ("a", "tie", "Tie"):
        with pytest.raises(SourceError, match=rf"line 9, field winner: expected one of .* got '{word}'"):
            values(tmp_path, "left,right,winner", *rows, "Tie,a,a", f"b,c,{word}")
    assert values(tmp_path, "left,right,winner", *rows[:2], "none,NA,none") == [FIRST, SECOND, SECOND]


def test_names_only_and_sides_only(tmp_path: Path) -> None:
    assert values(tmp_path, "left,right,winner", "left,q,q", "b,q,tie", coding="names") == [SECOND, TIE]
    rows = ["b,a,b", "a,b,right", "tie,b,tie"]
    assert values(tmp_path, "left,right,winner", *rows, coding="sides") == [FIRST, SECOND, TIE]
    with pytest.raises(SourceError, match="got 'right'"):
        values(tmp_path, "left,right,winner", "b,a,right", coding="names")
    with pytest.raises(SourceError, match="got 'q'"):
        values(tmp_path, "left,right,winner", "p,q,q", coding="sides")


def test_pairs_are_put_in_the_order_of_their_names() -> None:
    first, second, outcome = in_order(["b", "a", "b", "b"], ["a", "b", "a", "a"], np.array([1, 1, 0, 2], np.uint8))
    assert (first, second) == (["a"] * 4, ["b"] * 4)
    assert outcome.tolist() == [FIRST, SECOND, SECOND, TIE]
