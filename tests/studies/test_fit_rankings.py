"""`halftruth fit` on rankings: what is asked of each, what its claim is, and that scores are those of Plackett-Luce."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from studies.cli import main
from studies.fit.compare import accuracy, subset

WIDE = "judge,x,y,z\n" + "".join(
    f"j{number},{ranks}\n" for number, ranks in enumerate(["1,2,3", "2,1,3", "3,1,2", "1,3,2", "2,3,1"] * 8)
)


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "rankings.csv"
    path.write_text(WIDE, encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """The JSON that a fit of rankings in wide form prints."""
    assert main(["fit", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def scores(found: dict[str, Any]) -> NDArray[np.float64]:
    return np.array([line["estimate"] for line in sorted(found["ranking"], key=lambda line: str(line["item"]))])


def test_clear_top_choices_agree_with_another_optimiser(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_data / "rankings" / "beans_triadic.csv"
    columns = "variety_a,variety_b,variety_c"
    found = run(capsys, path, "--items", columns, "--trust", "clear")
    table = read_ranking_table(path, True, RankingWanted(items=tuple(columns.split(","))), RankingAs())
    chosen = table.pairs[np.arange(len(table.pairs)), table.values.reveal()]

    def loss(theta: NDArray[np.float64]) -> float:
        full = np.append(theta, -theta.sum())
        return float((logsumexp(full[table.pairs], axis=1) - full[chosen]).sum())

    best = minimize(loss, np.zeros(len(table.items) - 1), method="BFGS", options={"gtol": 1e-6})
    assert np.abs(scores(found) - np.append(best.x, -best.x.sum())).max() < 1e-5
    assert found["notes"][0] == "Of each ranking its top choice is asked; which items it holds is public."
    assert (found["rows"], found["labelers"], found["claimed_epsilon"]) == (842, 842, None)


def test_a_ranking_answers_once(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (votes, "--ranking", "wide", "--trust", "local", "--epsilon", "2", "--state", tmp_path / "state")
    first, second = run(capsys, *words), run(capsys, *words)
    assert (first.pop("charged_labels"), second.pop("charged_labels")) == (40, 0)
    assert first == second
    assert first["mechanism"] == "k-randomized-response"
    assert "So a label is all that is said of a ranking." in first["notes"][0]


@pytest.mark.parametrize(("what", "mechanism"), [("top", "k-randomized-response"), ("pair", "randomized-response")])
def test_one_label_a_ranking(what: str, mechanism: str, votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--ranking", "wide", "--ranking-as", what, "--public-data", "--coins", "addressed", "--seed", "1")
    for trust, extra in (("local", ()), ("central", ("--delta", "1e-6"))):
        found = run(capsys, votes, *words, "--trust", trust, "--epsilon", "1.5", *extra)
        assert (found["labels"], found["claimed_epsilon"], found["unit"]) == (40, 1.5, "label")
        assert str(found["mechanism"]).startswith(mechanism if trust == "local" else "gaussian-statistic")


def test_comparisons_of_a_ranking_share_epsilon(
    votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (votes, "--ranking", "wide", "--ranking-as", "pairs:3", "--state", tmp_path / "s")
    found = run(capsys, *words, "--trust", "local", "--epsilon", "2")
    assert (found["labels"], found["labelers"], found["charged_labels"]) == (120, 40, 120)
    assert found["claimed_epsilon"] == pytest.approx(2 / 3, abs=1e-12)
    assert 0.99 * 2 < 3 * found["computed_epsilon"] <= 2
    assert "A ranking spends 3 times epsilon = 0.6666666666... together" in found["notes"][0]
    labeler = run(capsys, *words, "--trust", "central", "--epsilon", "2", "--unit", "labeler", "--cap", "3")
    assert (labeler["claimed_epsilon"], labeler["unit"]) == (2.0, "labeler")


def test_each_way_finds_the_same_order_of_plain_rankings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """600 rankings, four in five of them x y z: the score of x is above that of z by some 2.5, many standard errors.

    Coins are addressed: nothing here is left to chance.
    """
    path = tmp_path / "many.csv"
    lines = [f"j{number},{'1,2,3' if number % 5 else '3,2,1'}" for number in range(600)]
    path.write_text("\n".join(["judge,x,y,z", *lines, ""]), encoding="utf-8")
    coins = ("--public-data", "--coins", "addressed", "--seed", "5", "--ranking", "wide")
    for what in ("top", "pair", "pairs:2", "pairs:3"):
        found = run(capsys, path, *coins, "--trust", "local", "--epsilon", "4", "--ranking-as", what)
        assert found["ranking"][0]["item"] == "x"
        assert found["ranking"][0]["estimate"] > 0.5


def test_compared_side_by_side(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for what in ("top", "pair"):
        found = run(capsys, votes, "--ranking", "wide", "--ranking-as", what, "--compare", "--epsilon", "4")
        assert found["private"] is False
        assert all(0.0 <= found["trust"][trust]["held_out_accuracy"] <= 1.0 for trust in ("clear", "central", "local"))


def test_accuracy_of_top_choices(votes: Path) -> None:
    table = read_ranking_table(votes, True, RankingWanted("wide"), RankingAs())
    assert accuracy(np.array([3.0, 2.0, 1.0]), table) == pytest.approx(16 / 40)  # x is first in two of five
    assert accuracy(np.zeros(3), table) == pytest.approx(1 / 3)
    assert accuracy(np.array([1.0, 1.0, 0.0]), subset(table, np.arange(40) < 2)) == pytest.approx(0.5)


def test_shown_with_its_guesses(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(votes), "--ranking", "wide", "--trust", "clear"]) == 0
    said = capsys.readouterr()
    assert "Columns: rankings: wide; labeler: judge (guessed); items: x, y, z (guessed)" in said.err
    assert "its top choice is asked" in said.out


def test_a_file_that_may_hold_rankings_leads_to_their_flag(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(votes), "--trust", "clear"]) == 2
    assert "where it holds rankings: --ranking long, wide or best-worst" in capsys.readouterr().err
    assert main(["data", "split", str(votes), "--nodes", "2", "--out", str(votes.parent / "nodes")]) == 2
    assert "where it holds rankings: --ranking long, wide or best-worst" in capsys.readouterr().err


def test_a_share_of_epsilon_is_said_in_twelve_digits(
    votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--ranking", "wide", "--ranking-as", "pairs:3", "--trust", "local", "--epsilon", "1")
    assert main(["fit", str(votes), *words, "--state", str(tmp_path / "s")]) == 0
    said = capsys.readouterr().out
    assert "Guarantee: epsilon = 0.333333333334 per label" in said
    assert "labels, epsilon = 0.333333333334 each" in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--ranking-as", "all"), "--ranking-as: expected top, pair or pairs:M"),
        (("--item-a", "x", "--item-b", "y"), "a file of rankings has none of them"),
        (("--ranking-as", "pairs:2", "--trust", "central"), "use top or pair, or --unit labeler --cap M"),
        (("--unit", "labeler", "--cap", "1", "--trust", "central"), "use --ranking-as pairs:M"),
        (("--ties", "drop", "--ties-public"), "a ranking's top choice is one item"),
        (("--ties", "randomized"), "a ranking's top choice is one item"),
        (("--ranking-as", "pairs:4"), "no ranking here has more than 3 comparisons, so other shares of epsilon"),
    ],
)
def test_wrong_use_is_told(
    words: tuple[str, ...], expected: str, votes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = () if "--trust" in words else ("--trust", "local")
    assert main(["fit", str(votes), "--ranking", "wide", "--epsilon", "1", *trust, *words]) == 2
    assert expected in capsys.readouterr().err


def test_a_top_choice_may_go_through_another_mechanism(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (votes, "--ranking", "wide", "--epsilon", "4")
    coins = ("--public-data", "--coins", "addressed", "--seed", "1", "--trust", "local")
    for mechanism in ("k-randomized-response", "subset-selection", "random-pair"):
        found = run(capsys, *words, *coins, "--mechanism", mechanism)
        assert (found["mechanism"], found["claimed_epsilon"]) == (mechanism, 4.0)
        assert found["computed_epsilon"] <= 4.0
    compared = run(capsys, *words, "--compare", "--mechanism", "subset-selection")
    assert compared["trust"]["local"]["held_out_accuracy"] > 0
    for wrong in (("--trust", "central"), ("--trust", "local", "--ranking-as", "pair")):
        assert main(["fit", *map(str, words), *wrong, "--mechanism", "random-pair"]) == 2
        assert "--mechanism: there is a choice for a ranking's top choice" in capsys.readouterr().err
