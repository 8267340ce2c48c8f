"""Which columns are which: flags, guesses, and errors that list what is there."""

from pathlib import Path

import pytest

from client.sources.columns import Columns, Wanted, choose
from client.sources.reading import SourceError

PATH = Path("votes.csv")


def chosen(header: str, wanted: Wanted | None = None) -> Columns:
    return choose(PATH, tuple(header.split(",")), wanted or Wanted())


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("labeler,item_a,item_b,winner", Columns("labeler", ("item_a", "item_b"), "winner", None, (), None)),
        ("Labeler ID,Item A,item-b,Winner", Columns("Labeler ID", ("Item A", "item-b"), "Winner", None, (), None)),
        (
            "judge,model_a,model_b,question_id,turn,winner",
            Columns("judge", ("model_a", "model_b"), "winner", None, ("question_id", "turn"), None),
        ),
        ("worker,left,right,winner,note", Columns("worker", ("left", "right"), "winner", None, (), None)),
        ("user,home,away,result", Columns("user", ("home", "away"), "result", None, (), None)),
        ("assessor,bottom_item,top_item", Columns("assessor", None, "top_item", "bottom_item", (), None)),
        ("rater,winner,loser", Columns("rater", None, "winner", "loser", (), None)),
        ("rater,prompt,chosen,rejected", Columns("rater", None, "chosen", "rejected", ("prompt",), None)),
    ],
)
def test_known_names_are_guessed_and_shown(header: str, expected: Columns) -> None:
    found = chosen(header)
    assert found == expected
    said = found.describe(Wanted())
    assert said.count("(guessed)") == (3 if found.pair is None else 4)
    assert all(name in said for name in (found.labeler, found.winner) if name)


def test_what_is_said_is_not_guessed() -> None:
    header = "id,prompt,model_x,model_y,worker,winner,left,right"
    wanted = Wanted(labeler="worker", item_a="left", item_b="right", winner="winner", questions=())
    found = chosen(header, wanted)
    assert found == Columns("worker", ("left", "right"), "winner", None, (), None)
    assert (
        found.describe(wanted) == "labeler: worker; items: left, right; winner: winner; question: the same in all rows"
    )
    assert chosen("who,a,b,c,row", Wanted("who", "a", "b", "c", row="row")).row == "row"
    coded = Wanted("none", "home", "away", "won", questions=(), coding="1/0/-1")
    said = chosen("home,away,won", coded).describe(coded)
    assert "winner: won; coding: 1 is home, 0 is a tie, -1 is away; question" in said
    assert chosen("a,b,c", Wanted("none", winner="a", loser="c")) == Columns(None, None, "a", "c", (), None)


@pytest.mark.parametrize(
    ("header", "wanted", "message"),
    [
        ("item_a,item_b,winner", Wanted(), "a column that says who answered .*--labeler none"),
        ("judge,worker,item_a,item_b,winner", Wanted(), "not judge and worker"),
        ("worker,model_x,model_y,left,right,winner", Wanted(), "not model_x and model_y with winner or left and right"),
        ("worker,item_a,item_b,winner,loser", Wanted(), "not item_a and item_b with winner or loser with winner"),
        ("worker,item_a,item_b,winner,result", Wanted(), "not item_a and item_b with winner or .* with result"),
        ("worker,item_a,item_b", Wanted(), "two columns of items and one that says who won"),
        ("worker,item_a,item_b,winner", Wanted(item_a="item_a"), "--item-a, --item-b: expected both or neither"),
        ("worker,item_a,item_b,winner", Wanted(loser="item_a"), "--loser: expected --winner with it"),
        (
            "worker,x,item_b,winner",
            Wanted(item_a="x", item_b="y"),
            "expected one column 'y', got the columns worker, x",
        ),
        ("worker,worker,item_a,item_b,winner", Wanted("worker"), "expected one column 'worker'"),
        ("worker,item_a,item_b,winner", Wanted(questions=("turn",)), "expected one column 'turn'"),
        ("worker,item_a,item_b,winner", Wanted(row="row"), "expected one column 'row'"),
        ("worker,item_a,item_b,winner", Wanted("item_a"), "expected different columns"),
        ("worker,item_a,item_b,winner", Wanted(item_a="item_a", item_b="item_a"), "expected different columns"),
    ],
)
def test_what_could_be_several_columns_or_none_is_an_error(header: str, wanted: Wanted, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        chosen(header, wanted)
    assert str(caught.value).startswith(("votes.csv, header", "--"))


def test_pairs_without_answers_need_no_winner() -> None:
    names = ("labeler", "item_a", "item_b")
    with pytest.raises(SourceError, match="and one that says who won"):
        choose(Path("f.csv"), names, Wanted())
    columns = choose(Path("f.csv"), names, Wanted(answered=False))
    assert (columns.pair, columns.winner) == (("item_a", "item_b"), None)
    with_winner = choose(Path("f.csv"), (*names, "winner"), Wanted(answered=False))
    assert with_winner.winner == "winner"
    with pytest.raises(SourceError, match="two columns of items, not item_a and item_b"):
        choose(Path("f.csv"), (*names, "left", "right"), Wanted(answered=False))
