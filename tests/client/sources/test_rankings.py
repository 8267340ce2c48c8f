"""Files of rankings: three formats, what is public of them, and what they are asked."""

import itertools
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.sources import ProblemUnknown
from client.sources.choice_table import ChoiceTable
from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, public_comparisons, read_ranking_table
from client.sources.rankings import BELOW
from client.sources.reading import SourceError
from client.sources.table import Table
from protocol.choice_features import of_choices
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem, of_pairs
from protocol.terms import TIE
from protocol.trust import Trust

GUESSED = RankingWanted()
TRIADS = RankingWanted(items=("variety_a", "variety_b", "variety_c"))
REAL = {
    "salad_wide.csv": (RankingWanted("wide"), 32, 4, 4),
    "nascar_2002_long.csv": (RankingWanted(labeler="none", unranked="absent"), 36, 43, 87),
    "beans_triadic.csv": (TRIADS, 842, 3, 10),
    "breadwheat_triadic.csv": (RankingWanted(best="overall_best"), 493, 3, 16),
}


def read(path: Path, *lines: str, wanted: RankingWanted = GUESSED, what: str = "top") -> Table:
    file = path / "rankings.csv"
    file.write_text("\n".join((*lines, "")), encoding="utf-8")
    return read_ranking_table(file, False, wanted, RankingAs.parse(what))


def rows(table: Table) -> list[tuple[str, tuple[str, ...], int]]:
    """Labeler, items and value of each row."""
    values = table.values.reveal().tolist()
    names = [tuple(table.items[item] for item in row if item >= 0) for row in table.pairs.tolist()]
    return list(zip((table.labelers[owner] for owner in table.owners.tolist()), names, values, strict=True))


@pytest.mark.parametrize("name", REAL)
def test_real_files(name: str, shared_data: Path) -> None:
    wanted, count, size, items = REAL[name]
    top = read_ranking_table(shared_data / "rankings" / name, True, wanted, RankingAs(0))
    assert isinstance(top, ChoiceTable)
    assert (len(top.pairs), int(top.sizes.max()), len(top.items)) == (count, size, items)
    assert (top.problem.kind, top.problem.choices) == ("choice", size)
    three = read_ranking_table(shared_data / "rankings" / name, True, wanted, RankingAs(3))
    assert three.pairs.shape == (3 * count, 2)
    assert (three.pairs[:, 0] < three.pairs[:, 1]).all()
    assert three.label_count == 3 * count


def test_the_same_rankings_in_three_formats(tmp_path: Path) -> None:
    wide = ("judge,x,y,z", "ann,2,1,3", "bob,1,3,2")
    long = ("judge,item,rank", "bob,z,2", "ann,y,1", "ann,x,2", "ann,z,3", "bob,x,1", "bob,y,3")
    best = ("judge,item_a,item_b,item_c,best,worst", "ann,z,x,y,C,A", "bob,x,y,z,x,2")
    forms = [(wide, "wide"), (long, "long"), (best, "best-worst")]
    tables = {
        what: [read(tmp_path, *lines, wanted=RankingWanted(form), what=what) for lines, form in forms]
        for what in ("top", "pair", "pairs:2", "pairs:3")
    }
    expected = {("ann", ("x", "y", "z"), 1), ("bob", ("x", "y", "z"), 0)}
    for what, found in tables.items():
        assert all(set(rows(table)) == set(rows(found[0])) for table in found), what
        assert all(set(table.identities) == set(found[0].identities) for table in found), what
    assert set(rows(tables["top"][0])) == expected
    assert {value for owner, pair, value in rows(tables["pairs:3"][0]) if (owner, pair) == ("ann", ("x", "y"))} == {1}
    one, two = (set(rows(tables[what][0])) for what in ("pair", "pairs:2"))
    assert (len(one), len(two)) == (2, 4)
    assert one < two < set(rows(tables["pairs:3"][0]))


@pytest.mark.parametrize("what", ["top", "pair", "pairs:2"])
def test_nothing_public_follows_from_ranks(what: str, tmp_path: Path) -> None:
    """Pairs, rows, their order and their names are the same for all rankings of two labelers, wide and long."""
    seen = set()
    for one, other in itertools.product(itertools.permutations((1, 2, 3)), repeat=2):
        wide = ("judge,c,a,b", f"u,{one[0]},{one[1]},{one[2]}", f"v,{other[0]},{other[1]},{other[2]}")
        lines = [
            f"{who},{item},{rank}"
            for who, ranks in (("u", one), ("v", other))
            for item, rank in zip("cab", ranks, strict=True)
        ]
        by_rank = sorted(lines, key=lambda line: (line[-1], line))  # as many files are sorted
        by_item = sorted(lines, key=lambda line: line.split(",")[1:])  # who likes an item best comes first
        found = [
            read(tmp_path, *wide, wanted=RankingWanted("wide"), what=what),
            read(tmp_path, "judge,item,rank", *by_rank, what=what),
            read(tmp_path, "judge,item,rank", *by_item, what=what),
        ]
        seen.add(tuple((table.pairs.tobytes(), table.identities, table.owners.tobytes()) for table in found))
    assert len(seen) == 1


def test_lists_of_nobody_are_named_by_their_question(tmp_path: Path) -> None:
    lines = ("1,x,1", "2,y,1", "2,x,2", "1,y,2")
    tables = [
        read(tmp_path, "race,item,rank", *some, wanted=RankingWanted(labeler="none")) for some in (lines, lines[::-1])
    ]
    assert tables[0].identities == tables[1].identities
    assert tables[0].labelers == ("ranking 1", "ranking 2")
    assert "question: race (guessed)" in tables[0].columns.describe()


def test_items_without_a_rank(tmp_path: Path) -> None:
    lines = ("judge,x,y,z,w", "ann,1,2,,", "bob,,1,,2", "eve,,,1,", "joe,,,,")
    with pytest.raises(SourceError, match=r"line 3, field x: expected a rank, got an empty field: say what it means"):
        read(tmp_path, *lines, wanted=RankingWanted("wide"))
    absent = read(tmp_path, *lines, wanted=RankingWanted("wide", unranked="absent"))
    assert rows(absent) == [("ann", ("x", "y"), 0), ("bob", ("w", "y"), 1)]
    assert absent.dropped == 2
    last = read(tmp_path, *lines, wanted=RankingWanted("wide", unranked="last"))
    assert [(value, len(items)) for _, items, value in rows(last)] == [(1, 4), (2, 4), (3, 4), (0, 4)]
    assert last.missing.reveal().tolist() == [0, 0, 0, 1]
    assert last.private_counts().missing == 1
    pairs = read(tmp_path, *lines, wanted=RankingWanted("wide", unranked="last"), what="pairs:6")
    ties = [value == TIE for value in pairs.values.reveal().tolist()]
    assert (
        ties
        == [pair == ("w", "z") for _, pair, _ in rows(pairs)[:6]]
        + [set(pair) == {"x", "z"} for _, pair, _ in rows(pairs)[6:12]]
        + ["z" not in pair for _, pair, _ in rows(pairs)[12:18]]
        + [False] * 6
    )


def test_rows_of_different_sizes(tmp_path: Path) -> None:
    lines = ("judge,item,rank", "ann,x,1", "ann,y,2", "ann,z,3", "bob,x,2", "bob,w,1")
    table = read(tmp_path, *lines, wanted=RankingWanted(unranked="absent"))
    assert isinstance(table, ChoiceTable)
    assert sorted(table.sizes.tolist()) == [2, 3]
    assert table.problem.sizes is not None
    assert {(owner, value) for owner, _, value in rows(table)} == {("ann", 0), ("bob", 0)}


def test_which_items_have_a_line_is_no_answer_before_the_holder_says_so(tmp_path: Path) -> None:
    """Lists of the best two: their lines would publish who is among them, whatever the ranks do."""
    lines = ("judge,item,rank", "ann,x,1", "ann,y,2", "bob,x,2", "bob,z,1")
    for what in ("top", "pair"):
        with pytest.raises(SourceError, match=r"line 4: expected a line for the same items in every ranking"):
            read(tmp_path, *lines, what=what)
    whole = ("judge,item,rank", "ann,x,1", "ann,y,2", "ann,z,", "bob,x,2", "bob,y,", "bob,z,1")
    table = read(tmp_path, *whole, wanted=RankingWanted(unranked="last"))
    assert {items for _, items, _ in rows(table)} == {("x", "y", "z")}


def test_tied_ranks_are_ties_of_pairs_and_no_top(tmp_path: Path) -> None:
    lines = ("judge,x,y,z", "ann,1,1,2")
    with pytest.raises(SourceError, match=r"line 2: expected one best item of each ranking, got several"):
        read(tmp_path, *lines, wanted=RankingWanted("wide"))
    table = read(tmp_path, *lines, wanted=RankingWanted("wide"), what="pairs:3")
    assert [(pair, value) for _, pair, value in rows(table)] == [(("x", "y"), TIE), (("x", "z"), 0), (("y", "z"), 0)]


def test_a_missing_best_is_a_missing_label(tmp_path: Path) -> None:
    lines = ("judge,item_a,item_b,item_c,best,worst", "ann,z,x,y,,A", "bob,z,x,y,,", "eve,z,x,,B,")
    table = read(tmp_path, *lines)
    assert table.missing.reveal().tolist() == [1, 1, 0]
    pairs = read(tmp_path, *lines, what="pairs:3")
    assert pairs.missing.reveal().tolist() == [0, 0, 0, 1, 1, 1, 0]
    assert pairs.values.reveal()[:3].tolist() == [TIE, 0, 0]


def test_a_name_is_never_a_letter(tmp_path: Path) -> None:
    table = read(tmp_path, "judge,item_a,item_b,item_c,best", "ann,b,c,a,A", "bob,b,c,a,item_a", "eve,b,c,a,2")
    assert [value for _, _, value in rows(table)] == [1, 1, 2]  # "A" is no name, but the letter of the first column
    named = read(tmp_path, "judge,item_a,item_b,item_c,best", "ann,B,C,A,A")
    assert [value for _, _, value in rows(named)] == [0]


@pytest.mark.parametrize(
    ("lines", "wanted", "expected"),
    [
        (("judge,x,y", "ann,1,3"), RankingWanted("wide"), r"line 2, field y: expected a rank, .* 1 to 2, got '3'"),
        (("judge,x,y", "ann,1,b"), RankingWanted("wide"), r"line 2, field y: expected a rank, .* got 'b'"),
        (("judge,x,y", ",1,2"), RankingWanted("wide"), r"line 2, field judge: expected a name, got an empty field"),
        (("judge,x", "ann,1"), RankingWanted("wide"), r"expected a column for each item"),
        (("judge,item,rank", "a,x,1", "a,x,2"), RankingWanted(), r"line 3, field item: .* got 'x' again. .*--question"),
        (("judge,item,rank", "a,x,1.5"), RankingWanted(), r"line 2, field rank: expected a rank"),
        (("judge,item,rank", "a,x,0"), RankingWanted(), r"line 2, field rank: expected a rank"),
        (("judge,item,rank", "a,x,1"), RankingWanted(), r"expected at least one ranking of two items"),
        (("item,rank", "x,1"), RankingWanted(labeler="none"), r"expected columns that tell rankings apart"),
        (("judge,item,rank", "a,x,1"), RankingWanted(best="rank"), r"expected --rank with long"),
        (("judge,t", "a,x"), RankingWanted(), r"expected --ranking out of long, wide, best-worst"),
        (("judge,t", "a,x"), RankingWanted("square"), r"expected --ranking out of"),
        (("judge,x,y", "a,1,2"), RankingWanted("wide", unranked="maybe"), r"--unranked: expected one of absent, last"),
        (
            ("judge,v_a,v_b,v_c,best", "j,x,y,z,D"),
            RankingWanted(),
            r"line 2, field best: expected one of 'x', 'y', 'z'",
        ),
        (("judge,v_a,v_b,v_c,best", "j,x,x,z,A"), RankingWanted(), r"line 2: expected different items"),
        (("judge,v_a,v_b,v_c,best,worst", "j,x,y,z,A,x"), RankingWanted(), r"line 2: expected another worst item"),
        (("judge,v_a,v_b,v_c,p_best,q_best", "j,x,y,z,A,A"), RankingWanted(), r"one of p_best, q_best \(--best NAME\)"),
        (("judge,a_a,a_b,a_c,b_a,b_b,b_c,best", "j,x,y,z,x,y,z,A"), RankingWanted(), r"expected --items NAME"),
    ],
)
def test_what_does_not_fit_is_named(
    lines: tuple[str, ...], wanted: RankingWanted, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match=expected):
        read(tmp_path, *lines, wanted=wanted)


@pytest.mark.parametrize("text", ["", "all", "pairs", "pairs:0", "pairs:-1", "pairs:1001", "pairs:x", "pair:2"])
def test_what_is_asked_is_spelled(text: str) -> None:
    with pytest.raises(SourceError, match="--ranking-as: expected top, pair or pairs:M"):
        RankingAs.parse(text)


def test_long_lists_are_compared_and_not_chosen_from(tmp_path: Path) -> None:
    lines = ("judge,item,rank", *(f"ann,i{item:02},{item + 1}" for item in range(64)))
    with pytest.raises(SourceError, match="expected at most 63 items where the top one is asked, got 64"):
        read(tmp_path, *lines)
    assert read(tmp_path, *lines, what="pairs:7").pairs.shape == (7, 2)


def test_public_comparisons_are_a_fair_coin_of_names() -> None:
    """Every pair of four items is drawn by 1000 names about as often: chi-square with 5 degrees of freedom.

    False-alarm rate 1e-9 where names were random; they are fixed.
    """
    drawn = [public_comparisons(f"name {name}".encode(), 4, 1)[0] for name in range(6000)]
    counts = np.array([drawn.count(pair) for pair in itertools.combinations(range(4), 2)])
    assert ((counts - 1000) ** 2 / 1000).sum() < 51.0
    assert public_comparisons(b"n", 4, 6) == list(itertools.combinations(range(4), 2))
    for few in range(1, 6):
        assert set(public_comparisons(b"n", 4, few)) < set(public_comparisons(b"n", 4, few + 1))


def test_ranks_do_not_print(tmp_path: Path) -> None:
    table = read(tmp_path, "judge,x,y", "ann,1,2", wanted=RankingWanted("wide"))
    assert "ann" not in repr(table)
    assert str(BELOW) not in repr(table)


def test_a_node_answers_about_exactly_its_own_choices(tmp_path: Path) -> None:
    """Other nodes may hold larger rows; other items, sizes, kinds or fewer rows than asked for are refused."""
    lines = ("row,labeler,item,rank", "1,a,x,1", "1,a,y,2", "2,b,z,1", "2,b,y,2")
    wanted = RankingWanted("long", row="row", unranked="last")
    path = tmp_path / "rankings.csv"
    path.write_text("\n".join((*lines, "")), encoding="utf-8")
    table = read_ranking_table(path, False, wanted, RankingAs(), items=("x", "y", "z"))
    whole = np.array([[0, 1, 2], [0, 1, -1], [1, 2, -1]], dtype=np.int32)

    def task(problem: Problem, n: int = 3) -> Task:
        menu = (Mechanism.of("k-randomized-response", epsilon=Decimal(1)),)
        return Task(bytes(32), Trust.LOCAL, Unit.LABEL, problem, menu, n, Decimal(1), None, 0, 1)

    table.check(task(of_choices(3, whole, None)))
    assert table.rows(task(of_choices(3, whole, None))).numbers().tolist() == [1, 2]
    others = [whole.copy() for _ in range(2)]
    others[0][1] = (0, 2, -1)
    others[1][1] = (0, 1, 2)
    wrong = [
        *(of_choices(3, other, None) for other in others),
        of_choices(4, whole, None),
        of_pairs(3, whole[:, :2], None),
    ]
    for problem in wrong:
        with pytest.raises(ProblemUnknown):
            table.check(task(problem))
    with pytest.raises(ProblemUnknown):
        table.check(task(of_choices(3, whole, None), n=4))
