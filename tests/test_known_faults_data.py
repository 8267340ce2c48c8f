"""Faults of rankings from files that users of comparable software met: who is connected, ties, missing answers."""

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response
from protocol.terms import TIE, with_coin
from studies.cli import main

Say = pytest.CaptureFixture[str]
ISLANDS = ("r1,0,1,0", "r2,0,1,1", "r1,2,3,2", "r2,2,3,3")
CHAIN = ("r1,0,1,0", "r2,1,2,1")
PUBLIC = ("--public-data", "--coins", "addressed", "--seed", "5")


def votes(folder: Path, *rows: str, header: str = "labeler,item_a,item_b,winner") -> Path:
    path = folder / "votes.csv"
    path.write_text("\n".join((header, *rows, "")), encoding="utf-8")
    return path


def fit(said: Say, path: Path, *words: str) -> dict[str, Any]:
    """The JSON that a fit prints."""
    assert main(["fit", str(path), *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(said.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("rows", "groups"),
    [(ISLANDS, "{0, 1}, {2, 3}"), (CHAIN, "{0}, {1}, {2}"), ((*ISLANDS, "r3,1,2,1"), "{0, 1}, {2, 3}")],
)
def test_a_maximum_that_is_not_there_is_an_error_that_names_groups(
    rows: tuple[str, ...], groups: str, tmp_path: Path, capsys: Say
) -> None:
    """Neither zeros, nor large numbers of a solver that stopped somewhere."""
    assert main(["fit", str(votes(tmp_path, *rows)), "--trust", "clear"]) == 1
    said = capsys.readouterr()
    assert groups in said.err and "--bound" in said.err and "estimate" not in said.out


@pytest.mark.parametrize(
    "trust", [("clear",), ("local", "--epsilon", "4"), ("central", "--epsilon", "4", "--delta", "1e-5")]
)
@pytest.mark.parametrize(("rows", "words"), [(ISLANDS, "{0, 1}, {2, 3}"), (CHAIN, "the ball")])
def test_what_a_ball_makes_of_them_is_flagged(
    rows: tuple[str, ...], words: str, trust: tuple[str, ...], tmp_path: Path, capsys: Say
) -> None:
    """Forty answers to each question, so that randomised ones about a chain go one way too."""
    crowd = [row.replace("r", f"r{i}x", 1) for i in range(40) for row in rows]
    name, *claim = trust
    coins = () if name == "clear" else PUBLIC
    found = fit(capsys, votes(tmp_path, *crowd), "--trust", name, *claim, "--bound", "2", *coins)
    assert any(words in warning for warning in found["warnings"])


def test_all_ties_are_equal_scores_with_finite_errors(tmp_path: Path, capsys: Say) -> None:
    """Variance of a score's difference by two ties a pair: that of 6 half answers, the same for all items."""
    rows = [f"r{i},{a},{b},tie" for i in range(2) for a, b in ("xy", "yz", "xz")]
    lines = fit(capsys, votes(tmp_path, *rows), "--trust", "clear")["ranking"]
    assert [line["estimate"] for line in lines] == [0.0, 0.0, 0.0]
    assert [line["rank"] for line in lines] == [1, 1, 1]
    widths = [line["high"] - line["low"] for line in lines]
    assert all(0 < width < math.inf for width in widths) and np.ptp(widths) < 1e-12


def test_a_third_answer_has_its_own_channel() -> None:
    """Of three outcomes e / (e + 2), not e / (e + 1); a tie that is thrown for is a fair coin at no cost."""
    three = k_randomized_response(Decimal(1), 3)
    assert float(three.probability(0, 0)) == pytest.approx(math.e / (math.e + 2), rel=1e-12)
    assert float(three.probability(2, 1)) == pytest.approx(1 / (math.e + 2), rel=1e-12)
    coin = with_coin(randomized_response(Decimal(1)))
    assert float(coin.probability(TIE, 0)) == float(coin.probability(TIE, 1)) == 0.5
    assert coin.level <= 1


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n", [100, 5_000])
def test_a_fit_is_at_its_minimum_whatever_the_scale(n: int, scale: float, tmp_path: Path, capsys: Say) -> None:
    """No default stops early: the gradient vanishes to 1e-8, and Newton's method by another hand is 1e-6 away at most.

    Items are described by two features; weights scale as 1 / scale.
    """
    rng = np.random.default_rng(n)
    phi = rng.normal(size=(6, 2))
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(n)])
    x = phi[pairs[:, 0]] - phi[pairs[:, 1]]
    won = rng.random(n) < expit(x @ [1.0, -0.5])
    rows = [f"r{i},{a},{b},{a if y else b}" for i, ((a, b), y) in enumerate(zip(pairs, won, strict=True))]
    items = tmp_path / "items.csv"
    shown = [f"{item},{scale * p!r},{scale * q!r}" for item, (p, q) in enumerate(phi.tolist())]
    items.write_text("\n".join(["id,p,q", *shown, ""]), encoding="utf-8")
    found = fit(capsys, votes(tmp_path, *rows), "--trust", "clear", "--features", str(items))
    theta = scale * np.array([line["estimate"] for line in found["coefficients"]])

    def slope(u: np.ndarray) -> np.ndarray:
        return np.asarray(x.T @ (expit(x @ u) - won) / n)

    def bend(u: np.ndarray) -> np.ndarray:
        p = expit(x @ u)
        return np.asarray((x * (p * (1 - p))[:, None]).T @ x / n)

    def loss(u: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0, x @ u) - won * (x @ u)))

    theirs = minimize(loss, np.zeros(2), jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-12}).x
    assert np.abs(slope(theta)).max() < 1e-8
    assert np.abs(theta - theirs).max() < 1e-6


MISSING = ("r1,x,y,x", "r2,x,y,", "r3,y,z,z", "r4,y,z,y", "r5,x,z,", "r6,x,z,x", "r7,x,y,y", "r8,x,z,z")


def test_a_missing_answer_is_counted_and_left_out_of_what_is_clear(tmp_path: Path, capsys: Say) -> None:
    path = votes(tmp_path, *MISSING)
    assert main(["fit", str(path), "--trust", "clear"]) == 0
    said = capsys.readouterr()
    assert "For you alone, it depends on answers: 0 ties, 2 rows without a winner" in said.err
    whole = fit(capsys, path, "--trust", "clear")
    without = fit(capsys, votes(tmp_path, *(row for row in MISSING if not row.endswith(","))), "--trust", "clear")
    assert [line["estimate"] for line in whole["ranking"]] == [line["estimate"] for line in without["ranking"]]


@pytest.mark.parametrize("word", ["skip", "?", "0", "idk"])
def test_a_word_that_is_no_answer_is_no_answer(word: str, tmp_path: Path, capsys: Say) -> None:
    """It is neither taken for the first item nor left out in silence: the line and the word are named."""
    path = votes(tmp_path, *MISSING, f"r9,x,y,{word}")
    assert main(["fit", str(path), "--trust", "clear"]) in (1, 2)
    said = capsys.readouterr()
    assert "line 10" in said.err and word in said.err
