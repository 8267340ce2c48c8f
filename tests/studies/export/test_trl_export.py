"""Private preferences for TRL: what is written, what is not, and that TRL's loss takes exactly our noise out."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from studies.cli import main
from studies.export.texts import full_texts

PROMPTS = ("Why?", "How long\nis it?")
LONG = "an answer of many words, " * 20


def _pairs(path: Path, turned: bool = False, spaced: str = "", count: int = 40) -> Path:
    """Lines of chosen and rejected, in an order and with spaces that tell the side; `turned`: all the other way."""
    lines = []
    for place in range(count):
        texts = [f"{LONG}{place}", f"short {place}"]
        chosen, rejected = reversed(texts) if turned else texts
        said = {"prompt": PROMPTS[place % 2], "chosen": chosen + spaced, "rejected": rejected}
        lines.append(said | {"labeler": f"p{place % 8}", "model": "m1", "score": 0.9})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _exported(tmp_path: Path, name: str, source: Path, *words: str) -> Path:
    out = tmp_path / name
    assert main(["export", str(source), "--for", "trl", "--out", str(out), *words]) == 0
    return out


def _lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "train.jsonl").read_text("utf-8").splitlines()]


def test_lines_are_what_labelers_report_and_nothing_else(tmp_path: Path) -> None:
    source = _pairs(tmp_path / "pairs.jsonl")
    lines = _lines(_exported(tmp_path, "out", source, "--epsilon", "40", "--state", str(tmp_path / "state")))
    assert all(set(line) == {"prompt", "chosen", "rejected"} for line in lines)
    given = [json.loads(line) for line in source.read_text().splitlines()]
    wanted = {(line["prompt"], line["chosen"], line["rejected"]) for line in given}
    assert {(line["prompt"], line["chosen"], line["rejected"]) for line in lines} == wanted  # at 40 nothing flips
    assert [line["chosen"] for line in lines] != [line["chosen"] for line in given]


def test_the_bytes_depend_on_labels_through_reports_only(tmp_path: Path) -> None:
    """Whoever answered at a level answers the same again: all labels turned round, and spaces that tell the side, and
    not a byte changes."""
    state = ["--epsilon", "1", "--state", str(tmp_path / "state")]
    first = _exported(tmp_path, "first", _pairs(tmp_path / "a.jsonl"), *state)
    again = _exported(tmp_path, "again", _pairs(tmp_path / "b.jsonl", turned=True, spaced=" \n"), *state)
    assert (first / "train.jsonl").read_bytes() == (again / "train.jsonl").read_bytes()
    assert (first / "README.md").read_bytes() == (again / "README.md").read_bytes()


def test_parquet_has_the_same(tmp_path: Path) -> None:
    source = _pairs(tmp_path / "pairs.jsonl")
    coins = ["--epsilon", "1", "--public-data", "--coins", "addressed", "--seed", "5"]
    lines = _lines(_exported(tmp_path, "lines", source, *coins))
    out = _exported(tmp_path, "table", source, *coins, "--format", "parquet")
    assert pq.read_table(out / "train.parquet").to_pylist() == lines
    assert "none: coins had addresses" in (out / "README.md").read_text()


def test_conversations_stay_conversations(tmp_path: Path) -> None:
    source = tmp_path / "talks.jsonl"
    talk = [{"from": "gpt", "value": "Yes."}], [{"from": "gpt", "value": "No."}]
    source.write_text(
        "".join(json.dumps({"prompt": f"{i}?", "chosen": talk[0], "rejected": talk[1]}) + "\n" for i in "ab")
    )
    line, _ = _lines(
        _exported(tmp_path, "out", source, "--labeler", "none", "--epsilon", "40", "--state", str(tmp_path / "state"))
    )
    assert line["chosen"] == [{"role": "assistant", "content": "Yes."}]
    assert line["prompt"][0]["role"] == "user"


def test_the_card_says_guarantee_and_setting(tmp_path: Path) -> None:
    out = _exported(tmp_path, "out", _pairs(tmp_path / "p.jsonl"), "--epsilon", "1.5", "--state", str(tmp_path / "s"))
    card = (out / "README.md").read_text()
    assert "epsilon = 1.5, delta = 0, local; unit: one label; neighbours: replace one label" in card
    assert "7.5 at the most here, of 5." in card
    smoothing = float(re.search(r'loss_type="robust", label_smoothing=(\S+)\)', card)[1])  # type: ignore[index]
    assert smoothing == pytest.approx(1 / (1 + np.exp(1.5)), rel=1e-15)


def test_columns_that_cannot_be_written_are_refused_before_a_label_is_asked(tmp_path: Path) -> None:
    source, state = tmp_path / "cells.csv", tmp_path / "state"
    source.write_text("labeler,pair,winner\nann,tea;coffee,tea\n")
    words = ["export", str(source), "--for", "trl", "--epsilon", "1", "--pair", "pair", "--out", str(tmp_path / "o")]
    assert main([*words, "--state", str(state)]) == 2
    assert not state.exists() and not (tmp_path / "o").exists()


def test_how_a_text_is_written_does_not_tell_its_column(tmp_path: Path) -> None:
    talk = [{"role": "assistant", "content": "Yes."}]
    written = []
    same = json.dumps(talk, sort_keys=True, separators=(",", ":"))
    for name, chosen, rejected in (("a", talk, same), ("b", same, talk)):
        lines = [{"chosen": chosen, "rejected": "No."}, {"chosen": "No.", "rejected": rejected}]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        texts = full_texts(tmp_path / name, ["chosen", "rejected"])
        written.append(sorted(map(json.dumps, texts.values())))
    assert written[0] == written[1] == sorted(map(json.dumps, (talk, "No.")))


def test_wrong_use_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(_pairs(tmp_path / "p.jsonl"))
    command = ["export", source, "--for", "trl", "--epsilon", "1", "--out"]
    assert main([*command, str(tmp_path)]) == 2
    assert main([*command, str(tmp_path / "o"), "--prompt", "question"]) == 2
    assert main([*command, str(tmp_path / "o"), "--coins", "addressed", "--seed", "1"]) == 2
    assert main([*command[:-2], "0", "--out", str(tmp_path / "o")]) == 2
    said = capsys.readouterr().err
    assert all(part in said for part in ("expected a new folder", "--prompt: expected", "--public-data", "epsilon"))
    assert not (tmp_path / "o").exists()


def _robust(margin: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
    """TRL's loss "robust" of beta (chosen - rejected), as its releases since 0.9.2 write it."""
    clean, flipped = np.logaddexp(0.0, -margin), np.logaddexp(0.0, margin)
    return np.asarray((clean * (1 - smoothing) - flipped * smoothing) / (1 - 2 * smoothing))


def test_the_gradient_of_the_robust_loss_is_that_of_the_debiased_loss() -> None:
    """d/dtheta of the mean robust loss is mean (sigma(theta . x) - (y~ - flip) / (keep - flip)) x."""
    coins, epsilon = np.random.default_rng(0), 1.0
    x, theta = coins.normal(size=(500, 3)), np.array([0.4, -0.3, 0.1])
    flip = 1 / (1 + np.exp(epsilon))
    said = (coins.random(500) < 1 / (1 + np.exp(-x @ theta))) ^ (coins.random(500) < flip)
    sides = np.where(said, 1.0, -1.0)

    def loss(point: NDArray[np.float64]) -> float:
        return float(_robust(sides * (x @ point), flip).mean())

    ours = ((1 / (1 + np.exp(-x @ theta)) - (said - flip) / (1 - 2 * flip))[:, None] * x).mean(axis=0)
    steps = 1e-5 * np.eye(3)
    theirs = np.array([(loss(theta + step) - loss(theta - step)) / 2e-5 for step in steps])
    np.testing.assert_allclose(theirs, ours, atol=1e-9)
