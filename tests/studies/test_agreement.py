"""Clear fits of real files agree with another implementation's, which reads the files in its own way."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression

from studies.cli import main

Comparison = tuple[str, str, float]  # two items, and the share of the win that goes to the second
TIGHT: dict[str, Any] = {"fit_intercept": False, "solver": "newton-cg", "tol": 1e-14, "max_iter": 10_000}


def crowd(path: Path) -> list[Comparison]:
    """LLMFAO: the winner is left, right or tie."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [(row["left"], row["right"], {"left": 0.0, "right": 1.0, "tie": 0.5}[row["winner"]]) for row in rows]


def judged(path: Path) -> list[Comparison]:
    """MT-Bench: model_a, model_b or a tie."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    wins = {"model_a": 0.0, "model_b": 1.0}
    return [(row["model_a"], row["model_b"], wins.get(row["winner"], 0.5)) for row in rows]


def plain(path: Path) -> list[Comparison]:
    """The form of most files."""
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["item_a"], row["item_b"], float(row["winner"] == "item_b")) for row in csv.DictReader(file)]


def football(path: Path) -> list[Comparison]:
    """1 home wins, 0 a draw, -1 away wins."""
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["home"], row["away"], (1 - int(row["result"])) / 2) for row in csv.DictReader(file)]


def contests(path: Path) -> list[Comparison]:
    """Who won and who lost."""
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["loser"], row["winner"], 1.0) for row in csv.DictReader(file)]


FILES: dict[str, tuple[Callable[[Path], list[Comparison]], tuple[str, ...]]] = {
    "llmfao_crowd_comparisons.csv": (crowd, ("--item-a", "left", "--item-b", "right")),
    "german_parties_2009.csv": (plain, ()),
    "first_names.csv": (plain, ()),
    "sound_quality.csv": (plain, ()),
    "mtbench_human_judgments.jsonl": (judged, ()),
    "football_spain.csv": (football, ("--labeler", "none", "--winner-coding", "1/0/-1")),
}


def logistic(x: NDArray[np.float64], share: NDArray[np.float64], penalty: float) -> NDArray[np.float64]:
    """scikit-learn's minimiser of the mean loss plus penalty ||theta||^2 / 2; shares of a win are weights of rows."""
    strength = np.inf if penalty == 0 else 1 / (penalty * len(x))
    model = LogisticRegression(C=strength, **TIGHT)
    labels = np.repeat([0, 1], len(x))
    model.fit(np.concatenate([x, x]), labels, sample_weight=np.concatenate([1 - share, share]))
    found: NDArray[np.float64] = model.coef_[0]
    return found


def design(rows: list[Comparison]) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Items by name, one-hot differences second - first, shares of the second."""
    items = sorted({item for a, b, _ in rows for item in (a, b)})
    x = np.zeros((len(rows), len(items)))
    for row, (a, b, _) in enumerate(rows):
        x[row, items.index(a)] -= 1
        x[row, items.index(b)] += 1
    return items, x, np.array([share for _, _, share in rows])


def fitted(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert main(["fit", *map(str, words), "--trust", "clear", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def by_item(found: dict[str, Any]) -> dict[str, float]:
    return {line["item"]: line["estimate"] for line in found["ranking"]}


@pytest.mark.parametrize("name", FILES)
def test_maximum_likelihood(name: str, shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, (read, flags) = shared_data / "pairwise" / name, FILES[name]
    items, x, share = design(read(path))
    free = np.append(logistic(x[:, :-1], share, 0.0), 0.0)  # the last item's score is fixed for the other's model
    expected = dict(zip(items, free - free.mean(), strict=True))
    found = by_item(fitted(capsys, path, *flags))
    assert set(found) == set(expected)
    assert max(abs(found[item] - expected[item]) for item in items) < 1e-6


def test_a_ball_where_there_is_no_maximum(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lizards that never lost: the best scores in a ball are those of the ridge that ends on it."""
    path = shared_data / "pairwise" / "flatlizards_contests.csv"
    items, x, share = design(contests(path))
    ridge = np.exp(brentq(lambda log: np.linalg.norm(logistic(x, share, np.exp(log))) - 5, -8, -1, xtol=1e-13))
    expected = dict(zip(items, logistic(x, share, ridge), strict=True))
    found = fitted(capsys, path, "--labeler", "none", "--bound", "5")
    assert found["hit_boundary"]
    assert max(abs(value - expected[item]) for item, value in by_item(found).items()) < 1e-6


def test_items_described_by_features(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lizards by what was measured on all of them."""
    folder, columns = shared_data / "pairwise", ["frontleg.PC1", "badge.size", "SVL", "head.length"]
    with (folder / "flatlizards_features.csv").open(newline="", encoding="utf-8") as file:
        known = {row["id"]: np.array([float(row[name]) for name in columns]) for row in csv.DictReader(file)}
    rows = contests(folder / "flatlizards_contests.csv")
    x = np.array([known[b] - known[a] for a, b, _ in rows])
    expected = logistic(x, np.ones(len(rows)), 0.0)
    words = ("--labeler", "none", "--features", folder / "flatlizards_features.csv")
    found = fitted(capsys, folder / "flatlizards_contests.csv", *words, "--features-columns", ",".join(columns))
    weights = {line["feature"]: line for line in found["coefficients"]}
    assert max(abs(weights[name]["estimate"] - expected[place]) for place, name in enumerate(columns)) < 1e-6
    assert all(line["low"] < line["estimate"] < line["high"] for line in weights.values())
    assert by_item(found)["lizard003"] == pytest.approx(float(known["lizard003"] @ expected), abs=1e-5)
