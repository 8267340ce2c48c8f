"""What a winner's field may say."""

from pathlib import Path

import pytest

from client.sources.loading import read_table
from client.sources.outcomes import FIRST, SECOND, TIE, in_order
from client.sources.reading import SourceError


def values(folder: Path, header: str, *rows: str) -> list[int]:
    path = folder / "votes.csv"
    path.write_text("\n".join((f"labeler,{header}", *(f"r{i},{row}" for i, row in enumerate(rows)))), encoding="utf-8")
    return read_table(path, public=False).values.reveal().tolist()


def test_arena_words(tmp_path: Path) -> None:
    words = ["model_a", "model_b", "tie", "tie (bothbad)", "tie (inconsistent)", "both_bad", "Tie"]
    found = values(tmp_path, "model_a,model_b,winner", *(f"p,q,{word}" for word in words))
    assert found == [FIRST, SECOND] + [TIE] * 5


def test_columns_are_names_of_sides_too(tmp_path: Path) -> None:
    assert values(tmp_path, "option_a,option_b,choice", "p,q,option_a", "p,q,option_b") == [FIRST, SECOND]


def test_signs_are_results_of_the_first(tmp_path: Path) -> None:
    assert values(tmp_path, "home,away,result", "p,q,1", "p,q,0", "p,q,-1") == [FIRST, TIE, SECOND]


def test_zero_and_one_alone_are_no_answers(tmp_path: Path) -> None:
    """The first could be 0 as well as 1: it is not guessed."""
    with pytest.raises(SourceError, match=r"line 2, field result: expected 'item_a', .* got '1'"):
        values(tmp_path, "home,away,result", "p,q,1", "p,q,0")


@pytest.mark.parametrize("row", ["tie,q,tie", "p,a,a", "right,q,right", "p,draw,draw"])
def test_a_word_that_could_mean_two_things_is_an_error(tmp_path: Path, row: str) -> None:
    with pytest.raises(SourceError, match=r"line 2, field winner: .* names one item and means another answer"):
        values(tmp_path, "left,right,winner", row)


def test_a_name_may_be_a_word_where_both_mean_the_same(tmp_path: Path) -> None:
    assert values(tmp_path, "left,right,winner", "left,q,left", "a,b,b", "none,NA,none") == [FIRST, SECOND, FIRST]


def test_losers_and_winners_are_put_in_the_order_of_their_names() -> None:
    first, second, outcome = in_order(["b", "a"], ["a", "b"])
    assert (first, second, outcome.tolist()) == (["a", "a"], ["b", "b"], [FIRST, SECOND])
