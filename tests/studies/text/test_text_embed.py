"""Vectors of texts: exact sums, names that join, an order that tells nothing, a cache that mends itself."""

import gzip
import json
import os
import socket
import sqlite3
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.sources.item_features import read_item_features
from client.sources.loading import read_table
from client.sources.reading import EMPTY, name_of, read_records
from client.table_file import parse_table_file
from protocol.strict import StudyError
from studies.cli import main
from studies.federate.folder import read_facts
from studies.text.cache import Cache
from studies.text.embed import embed, spoken
from studies.text.model import Model, load_model

ROWS = (
    {"labeler": "ann", "prompt": "Name a fruit.", "chosen": "An apple.", "rejected": "A hammer."},
    {"labeler": "bob", "prompt": "Name a tool.", "chosen": "A hammer.", "rejected": "An apple."},
    {"labeler": "cid", "prompt": "Name a fruit.", "chosen": "A pear, " * 40, "rejected": ""},
)


@pytest.fixture(scope="session")
def model() -> Model:
    """The real model. Only a user's machine may go without: continuous integration has the extra `text`."""
    try:
        return load_model()
    except StudyError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of one's own, and no network."""

    def refused(*_: Any) -> None:
        raise AssertionError("expected no connection")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(socket.socket, "connect", refused)


def written(path: Path, rows: Any = ROWS) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_vector_is_the_direction_of_exact_sums(model: Model) -> None:
    texts = ["An apple.", "", "Äpfel und 🍐", "a longer text, " * 200]
    found = model.vectors(texts, 64)
    for text, vector in zip(texts, found, strict=True):
        tokens = model.tokenizer.encode(text, add_special_tokens=False).ids
        whole = [sum(int(model.weights[token, j].astype(np.float64) * 2**24) for token in tokens) for j in range(64)]
        length = sum(part * part for part in whole) ** 0.5 or 1.0
        assert np.abs(vector - np.array([part / length for part in whole])).max() <= 2**-15 + 1e-12
    assert (found * 2**14 == np.rint(found * 2**14)).all()
    assert found[1].tolist() == [0.0] * 64
    assert model.vectors(texts[::-1], 64)[::-1].tobytes() == found.tobytes()
    fruit = model.vectors(["An apple is a fruit.", "A pear is a fruit.", "The motor of this car is loud."], 256)
    assert fruit[0] @ fruit[1] > 0.5 > fruit[0] @ fruit[2]


def test_it_agrees_with_the_package_itself(model: Model) -> None:
    """Our sums and its own float32 means point the same way."""
    texts = [row[key] for row in ROWS for key in ("chosen", "prompt")]
    inference, own = import_module("wordllama.inference"), load_model()  # which changes its tokenizer
    theirs = inference.WordLlamaInference(own.weights, own.tokenizer).embed(texts, norm=True)
    assert np.abs(theirs - model.vectors(texts, 256)).max() < 1e-3


def test_names_join_and_the_order_tells_no_answer(model: Model, tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.jsonl")
    turned = written(
        tmp_path / "turned.jsonl", [{**row, "chosen": row["rejected"], "rejected": row["chosen"]} for row in ROWS[::-1]]
    )
    out = {}
    for name in ("vectors.parquet", "vectors.npz"):
        for file in (path, turned):
            out[file, name] = tmp_path / f"{file.stem}-{name}"
            assert main(["data", "embed", str(file), "--prompt", "prompt", "--out", str(out[file, name])]) == 0
        assert out[path, name].read_bytes() == out[turned, name].read_bytes()
    one, other = (read_item_features(out[path, name]) for name in ("vectors.parquet", "vectors.npz"))
    assert (one.items, one.prompt) == (other.items, "prompt")
    assert one.values.tolist() == other.values.tolist()
    found = embed(read_records(path), ("chosen", "rejected"), None, model, 32)
    names = ["An apple.", "A hammer.", EMPTY, name_of("A pear, " * 40)]
    assert [answer for answer, _ in found.keys] == sorted(names)
    assert found.made == 4


def test_a_fit_joins_them(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path / "pairs.jsonl"), str(tmp_path / "vectors.parquet")
    words = ["fit", str(path), "--trust", "clear", "--bound", "1", "--json"]
    fits = []
    assert main(["data", "embed", str(path), "--prompt", "prompt", "--dimensions", "8", "--out", out]) == 0
    for flags in (["--features", out], ["--prompt", "prompt", "--embed", "8"]):
        capsys.readouterr()
        assert main([*words, *flags]) == 0
        fits.append(json.loads(capsys.readouterr().out))
    assert fits[0] == fits[1]
    for flags in ([], ["--prompt", "prompt"]):
        assert main(["data", "check", str(path), "--features", out, *flags, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert not {"no-features", "features-unused"} & {finding["code"] for finding in report["findings"]}
    assert len(fits[0]["coefficients"]) == 8
    assert main([*words, "--features", out, "--embed"]) == 2
    assert "leave it out, or --features" in capsys.readouterr().err
    few = str(tmp_path / "few.parquet")
    assert main(["data", "embed", str(path), "--text", "chosen", "--out", few]) == 0
    assert main([*words, "--features", few]) == 2
    assert f"{few}: expected features of every item, got none of '(empty) #e3b0c4" in capsys.readouterr().err


def test_a_federation_has_the_same_numbers_and_names(model: Model, tmp_path: Path) -> None:
    """What nodes of a split read is bit for bit what their server asks for; labels are named as in the whole file."""
    path, nodes = written(tmp_path / "pairs.jsonl"), tmp_path / "nodes"
    described = ["--prompt", "prompt", "--embed", "8"]
    assert main(["data", "split", str(path), "--nodes", "2", "--out", str(nodes), *described]) == 0
    facts, identities = read_facts(nodes / "server"), {}
    assert facts.problem.design is not None
    for folder in (nodes / "node-0", nodes / "node-1"):
        source = tomllib.loads((folder / "node.toml").read_text())["source"]
        table = parse_table_file(source, folder).read()
        assert table.problem.design is not None
        assert table.problem.design.tobytes() == facts.problem.design[table.rows_held].tobytes()
        identities |= dict(zip(table.rows_held.tolist(), table.identities, strict=True))
    assert [identities[row] for row in range(len(ROWS))] == list(read_table(path, False).identities)


def test_texts_are_embedded_once_and_damage_is_mended(model: Model, tmp_path: Path) -> None:
    texts = [f"text {place}" for place in range(700)]

    def kept() -> tuple[dict[bytes, Any], Cache]:
        cache = Cache(tmp_path / "texts.sqlite", model.name, 16)
        names = [cache.key(text) for text in texts]
        found = cache.find(names)
        cache.keep(dict(zip(names, model.vectors(texts, 16), strict=True)))
        cache.close()
        return found, cache

    assert not kept()[0]
    found, cache = kept()
    assert [found[cache.key(text)].tolist() for text in texts] == model.vectors(texts, 16).tolist()
    assert cache.path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(cache.path) as file:
        file.execute("UPDATE vectors SET vector = zeroblob(72) WHERE key = ?", (cache.key(texts[3]),))
        file.execute("UPDATE vectors SET vector = 'x' WHERE key = ?", (cache.key(texts[5]),))
    file.close()
    found, cache = kept()
    assert (len(found), cache.damaged) == (698, 2)
    assert len(kept()[0]) == 700
    cache.path.write_bytes(b"no cache at all " * 100)
    found, cache = kept()
    assert (len(found), cache.damaged) == (0, 1)
    whole = cache.path.read_bytes()
    cache.path.write_bytes(whole[:4096] + b"\xff" * 4096 + whole[8192:])
    assert len(kept()[0]) <= 700
    assert len(kept()[0]) == 700
    other = Cache(cache.path, model.name, 17)
    assert not other.find([other.key(text) for text in texts])
    other.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "v.csv"], "--out: expected a name that ends in .parquet or .npz"),
        (["--out", "v.npz", "--dimensions", "257"], "--dimensions: expected a number in 1..256, got '257'"),
        (["--out", "v.npz", "--batch", "0"], "--batch: expected a number in"),
        (["--out", "v.npz", "--text", "lost"], "expected one column 'lost', got labeler, prompt, chosen, rejected"),
        (["--out", "v.npz", "--text", "prompt,chosen", "--prompt", "prompt"], "--prompt: prompt is a column of texts"),
        (["--out", "pairs.jsonl.npz"], "--out: expected a file that is not there yet"),
    ],
)
def test_wrong_use_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("pairs.jsonl"))
    Path("pairs.jsonl.npz").touch()
    assert main(["data", "embed", "pairs.jsonl", *words]) == 2
    assert said in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.text.model.PACKAGE", "no_such_package_of_texts")
    with pytest.raises(StudyError, match=r"pip install 'halftruth\[text\]'"):
        load_model()


def test_speech_is_what_messages_say() -> None:
    assert spoken([{"from": "human", "value": " Caf\u0065\u0301? "}, {"from": "gpt", "value": "Yes."}]) == "Café?\nYes."
    assert (spoken(None), spoken(True)) == ("", "true")


def test_real_answers_are_guessed_above_chance(
    model: Model, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fits without the labels of a fifth of the crowd guess what these said. No statistics: the seed is fixed, and
    0.6 of 280 labels is more than 3 standard deviations above chance; docs/TEXT.md says what comes out.
    """
    path = tmp_path / "pairs.jsonl"
    packed = shared_data / "preference_text" / "llmfao_chosen_rejected_1500.jsonl.gz"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    words = ["--compare", "--epsilon", "4", "--public-data", "--json", "--embed", "32"]
    assert main(["fit", str(path), *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["held_out_labels"] == 280
    assert min(row["held_out_accuracy"] for row in told["trust"].values()) > 0.6
