"""Which pairs a labeler is asked about, what is shown of them, and which files are none."""

import json
from collections.abc import Callable

import pytest

from client.sources.reading import SourceError, name_of
from protocol.strict import StudyError
from studies.label.session import Session

Open = Callable[..., Session]
RECORDS = '[policy]\ntrust = ["local"]\nunits = ["record"]\nlabel_cap = 2\n'
LONG = "because " * 40 + "of the cafe\u0301"


def test_each_label_is_asked_once_and_others_are_not(session: Open) -> None:
    """Of six lines one is another labeler's, one the same label again, and one compares an item with itself."""
    pairs = session("--as", "p1").pairs
    shown = [(pair.row, pair.texts, [text for _, text in pair.question]) for pair in pairs.all]
    assert shown == [(0, ("coffee", "tea"), []), (2, ("tea", "water"), []), (4, ("coffee", "tea"), ["in the evening"])]
    assert len({pair.key for pair in pairs.all}) == 3


def test_rows_are_those_of_a_federation_where_it_numbered_them(session: Open) -> None:
    pairs = session(pairs="labeler,item_a,item_b,r\na,x,y,3\na,y,z,7\n", policy=with_source('row = "r"')).pairs
    assert [pair.row for pair in pairs.all] == [3, 7]


def test_keys_do_not_depend_on_order_sides_or_what_stands_beside(session: Open) -> None:
    one = session(pairs="item_a,item_b\nx,y\nz,x\n").pairs
    other = session(pairs="item_b,item_a,winner\nz,x,\nu,v,\ny,x,\n").pairs
    assert {pair.key for pair in one.all} < {pair.key for pair in other.all}
    assert (one.labeler, session("--as", "you", pairs="item_a,item_b\nx,y\n").pairs.labeler) == ("me", "you")


def test_long_texts_are_shown_whole(session: Open) -> None:
    talk = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "It is blue."}]
    lines = [{"prompt": "Why " * 60, "output_1": LONG, "output_2": talk}]
    pairs = session(pairs="".join(json.dumps(line) + "\n" for line in lines), name="pairs.jsonl").pairs
    (pair,) = pairs.all
    assert set(pair.texts) == {LONG.replace("e\u0301", "\u00e9"), "user: Why?\n\nassistant: It is blue."}
    assert pair.question == (("", ("Why " * 60).strip()),)


def test_answers_to_a_prompt_stand_under_it_once(session: Open) -> None:
    policy = with_source('prompt = "prompt"')
    pairs = session(pairs="prompt,output_1,output_2\nIs it?,yes,no\n", policy=policy).pairs
    assert [(pair.question, pair.texts) for pair in pairs.all] == [((("", "Is it?"),), ("no", "yes"))]
    assert pairs.table.answers


def test_whole_texts_come_from_a_file_of_their_own(session: Open, tmp_path: object) -> None:
    assert hasattr(tmp_path, "joinpath")
    texts = tmp_path.joinpath("texts.csv")
    texts.write_text(f'item,text\nx,"A longer x"\n,"{LONG}"\n', "utf-8")
    pairs = session("--texts", str(texts), pairs=f"item_a,item_b\nx,{name_of(LONG)}\n").pairs
    assert set(pairs.all[0].texts) == {"A longer x", LONG.replace("e\u0301", "\u00e9")}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ("item_a,item_b,winner\nx,y,\nx,z,z\n", "1 row with an answer: empty their winner"),
        ("loser,winner\nx,y\n", "two columns of items"),
        ("item_a,item_b,wins_a,wins_b\nx,y,1,0\n", "two columns of items and no answers"),
        ("labeler,item_a,item_b\np1,x,y\np2,x,y\n", r"--as: expected one of the 2 labelers of .* \(p1, p2\)"),
        ("thing,other\nx,y\n", "two columns of items"),
        ("item_a,item_b\nx,x\n", "at least one comparison"),
    ],
)
def test_other_files_are_refused(session: Open, pairs: str, said: str) -> None:
    with pytest.raises((StudyError, SourceError), match=said) as refused:
        session(pairs=pairs)
    assert "'z'" not in str(refused.value)


def test_nobody_is_asked_for_another(session: Open) -> None:
    with pytest.raises(StudyError, match="--as: expected one of the 2 labelers"):
        session("--as", "p3")


def test_other_sources_have_no_page(session: Open) -> None:
    with pytest.raises(StudyError, match="rankings: they have no page"):
        session(policy=with_source('ranking = "long"'))
    with pytest.raises(StudyError, match='kind = "table" with the pairs'):
        session(policy='[source]\nkind = "records"\nmodel = "mean"\nfeatures = ["x"]\nid = "id"\n' + RECORDS)


def with_source(lines: str) -> str:
    return f"[source]\n{lines}\n[policy]\nlabel_cap = 2\nmax_epsilon = 1\n"
