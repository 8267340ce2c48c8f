"""`halftruth fit --compare`: four trust models side by side, which is not private and says so."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from client.sources.columns import Wanted
from client.sources.loading import read_table
from protocol.warned import code_of
from studies import rankings
from studies.cli import main
from studies.fit.compare import accuracy, held_out, spearman, subset

ROWS = tuple(
    f"r{row % 12},i{row % 4},i{(row + 1 + row // 12 % 3) % 4},item_{'ab'[row * 7 % 5 % 2]}" for row in range(144)
)


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(("labeler,item_a,item_b,winner", *ROWS, "")), encoding="utf-8")
    return path


def test_a_comparison_says_that_it_is_not_private(
    votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert main(["fit", str(votes), "--compare", "--epsilon", "2"]) == 0
    said = capsys.readouterr().out
    assert said.count("This is not private") == 2
    assert said.count("Guarantee: none") == 4
    assert not (tmp_path / "state").exists()
    assert main(["fit", str(votes), "--compare", "--epsilon", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["private"] is False
    assert "not private" in found["note"]
    assert list(found["trust"]) == ["clear", "central", "distributed", "local"]
    assert found["trust"]["clear"]["rank_correlation"] == pytest.approx(1)
    assert all(0 <= model["held_out_accuracy"] <= 1 for model in found["trust"].values())


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--ties", "randomized"),
        ("--unit", "labeler", "--cap", "5", "--hold-out", "labels"),
        ("--seed", "3", "--estimator", "rr-map"),
        ("--survivors", "0.8", "--honest", "0.5"),
    ],
)
def test_the_same_comparison_at_every_run(
    votes: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for _ in range(2):
        assert main(["fit", str(votes), "--compare", "--epsilon", "2", "--json", *words]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


@pytest.mark.parametrize("by_labeler", [True, False])
def test_what_is_held_out_shares_no_label_with_the_rest(votes: Path, by_labeler: bool) -> None:
    table = read_table(votes, True)
    held = held_out(table, 0, by_labeler)
    train, test = subset(table, ~held), subset(table, held)
    assert len(train.pairs) + len(test.pairs) == 144
    assert 0 < len(test.pairs) < 72
    assert not set(train.identities) & set(test.identities)
    if by_labeler:
        assert not set(train.owners.tolist()) & set(test.owners.tolist())
    assert train.first.sum() == len(set(train.identities))
    assert (held != held_out(table, 1, by_labeler)).any()
    # The choice depends on public facts only.
    other = read_table(votes, True)
    assert (held == held_out(other, 0, by_labeler)).all()


def test_accuracy_counts_winners_and_halves_of_equals(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text(
        "labeler,item_a,item_b,winner\nr,a,b,item_a\nr,a,c,item_b\nr,b,c,tie\nr,b,d,item_a\nr,c,d,\n", encoding="utf-8"
    )
    table = read_table(path, True)
    assert accuracy(np.array([2.0, 1.0, 0.0, 1.0]), table) == pytest.approx((1 + 0 + 0.5) / 3)


def test_ranks_are_correlated_as_scipy_does() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 5, 40).astype(float), rng.normal(size=40)
    assert spearman(one, other) == pytest.approx(spearmanr(one, other).statistic)
    assert np.isnan(spearman(np.ones(3), np.arange(3.0)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--compare"], "--epsilon"),
        (["--compare", "--epsilon", "1", "--trust", "local"], "--trust"),
        (["--compare", "--epsilon", "1", "--state", "somewhere"], "--state"),
        (["--trust", "clear", "--hold-out", "labels"], "--hold-out"),
        ([], "--trust"),
    ],
)
def test_wrong_use(votes: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(votes), *words]) == 2
    assert said in capsys.readouterr().err


def test_what_may_mislead_is_said_of_each_trust_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two groups of items that nobody compared, and seven answers for more parameters."""
    path = tmp_path / "apart.csv"
    rows = ("labeler,item_a,item_b,winner", *(f"r{row},{pair},item_a" for row, pair in enumerate(("a,b", "c,d") * 3)))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert main(["fit", str(path), "--compare", "--epsilon", "1"]) == 0
    assert "Warning (unconnected) in 4 of 4 fits: nobody compared items" in " ".join(capsys.readouterr().out.split())
    assert main(["fit", str(path), "--compare", "--epsilon", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["trust"]
    assert all("unconnected" in map(code_of, model["warnings"]) for model in found.values())


def test_the_page_of_rankings_says_what_may_mislead(
    votes: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rankings, "FILES", {votes.name: Wanted()})
    monkeypatch.setattr(rankings, "CLAIMS", rankings.CLAIMS[:2])
    assert rankings.main([str(votes.parent), "--seeds", "2"]) == 0
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if line.startswith("| votes | ")]) == len(rankings.CLAIMS)
    assert "Warning (on-the-ball) in " in out
    assert f" of {8 * len(rankings.CLAIMS)} fits" in out


def test_one_labeler_cannot_be_held_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.csv"
    path.write_text("labeler,item_a,item_b,winner\nr,a,b,a\n", encoding="utf-8")
    assert main(["fit", str(path), "--compare", "--epsilon", "1"]) == 1
    assert "at least two labelers" in capsys.readouterr().err
