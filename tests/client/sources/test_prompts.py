"""Answers to prompts as items, and vectors that join by name: rows, identities, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.sources.columns import Wanted
from client.sources.item_features import ItemFeatures, read_item_features
from client.sources.loading import read_table
from client.sources.prompts import answer_to
from client.sources.reading import SourceError

VOTES = "labeler,prompt,chosen,rejected\nann,Is it?,Yes,No\nann,Can it?,No,Yes\nbob,Is it?,No,Maybe\n"
KEYS = (("Is it?", "Yes"), ("Is it?", "No"), ("Is it?", "Maybe"), ("Can it?", "Yes"), ("Can it?", "No"))
NUMBERS = np.array([[1, 2], [3, 5], [7, 11], [13, 17], [19, 23]], dtype=np.float32)


def as_parquet(path: Path) -> Path:
    prompts, answers = zip(*KEYS, strict=True)
    pq.write_table(pa.table({"prompt": prompts, "response": answers, "vector": NUMBERS.tolist()}), path)
    return path


def as_numbers(path: Path) -> Path:
    prompts, answers = zip(*KEYS, strict=True)
    columns = {"0": NUMBERS[:, 0], "1": NUMBERS[:, 1]}
    pq.write_table(pa.table({"prompt": prompts, "item": answers, **columns}), path)
    return path


def as_npz(path: Path) -> Path:
    prompts, answers = (np.array(names) for names in zip(*KEYS, strict=True))
    with path.open("wb") as file:
        np.savez(file, prompt=prompts, items=answers, emb=NUMBERS.astype(np.float16))
    return path


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES, encoding="utf-8")
    return path


@pytest.mark.parametrize("write", [as_parquet, as_numbers, as_npz])
def test_vectors_join_by_prompt_and_answer(tmp_path: Path, votes: Path, write: Callable[[Path], Path]) -> None:
    features = read_item_features(write(tmp_path / "vectors"))
    assert (features.prompt, features.columns) == ("prompt", ("0", "1"))
    table = read_table(votes, False, features=features)
    told = dict(zip(KEYS, NUMBERS.tolist(), strict=True))
    expected = [
        np.subtract(told[prompt, high], told[prompt, low]).tolist()
        for prompt, low, high in (("Is it?", "No", "Yes"), ("Can it?", "No", "Yes"), ("Is it?", "Maybe", "No"))
    ]
    assert table.problem.design is not None
    assert table.problem.design.tolist() == expected
    assert table.values.reveal().tolist() == [1, 0, 1]
    assert table.answers[answer_to("Yes", "Can it?")] == ("Yes", "Can it?")


def test_labels_keep_their_names_and_pairs_their_order(votes: Path) -> None:
    plain, asked = read_table(votes, False), read_table(votes, False, Wanted(prompt="prompt"))
    assert list(plain.identities) == list(asked.identities)
    assert (plain.label_count, asked.label_count) == (3, 3)
    assert [tuple(asked.items[item] for item in pair) for pair in asked.pairs.tolist()] == [
        tuple(answer_to(text, prompt) for text in texts)
        for prompt, *texts in (("Is it?", "No", "Yes"), ("Can it?", "No", "Yes"), ("Is it?", "Maybe", "No"))
    ]
    assert len(plain.items) == 3
    assert len(asked.items) == 5


@pytest.mark.parametrize("pair", [("Yes", "Yes please"), ("a\nb", "a b"), ("s" * 80 + "1", "s" * 80 + "2")])
def test_an_answer_that_a_ledger_keeps_is_for_the_same_side(tmp_path: Path, pair: tuple[str, str]) -> None:
    """A label has one name with prompts and without, so its value has to mean the same text, whoever is first."""
    path = tmp_path / "pairs.jsonl"
    lines = [{"labeler": "ann", "prompt": f"Why {n}?", "chosen": pair[0], "rejected": pair[1]} for n in range(16)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    plain, asked = read_table(path, False), read_table(path, False, Wanted(prompt="prompt"))
    assert list(plain.identities) == list(asked.identities)
    assert plain.values.reveal().tolist() == asked.values.reveal().tolist()


def test_what_nothing_describes_is_named(tmp_path: Path, votes: Path) -> None:
    few = ItemFeatures(tmp_path / "few.npz", ("Maybe",), ("0",), np.ones((1, 1)))
    with pytest.raises(SourceError, match=r"few.npz: expected features of every item, got none of 'No', 'Yes'$"):
        read_table(votes, False, features=few)
    with pytest.raises(SourceError, match=r"got none of 'a', 'b', 'c' and 2 more of 6$"):
        few.of(("a", "b", "c", "d", "e", "Maybe"))
    lost = tmp_path / "lost.csv"
    lost.write_text(VOTES.replace("prompt", "asked"), encoding="utf-8")
    with pytest.raises(SourceError, match="expected one column 'prompt'"):
        read_table(lost, False, features=read_item_features(as_npz(tmp_path / "vectors.npz")))
    assert read_table(lost, False, Wanted(prompt="asked")).columns.describe(Wanted(prompt="asked")).count("asked") == 1


def test_vectors_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "vectors.parquet"
    for values, message in (
        ([[1.0, 2.0], [3.0]], "row 2, field v: expected a list of 2 numbers, got 1"),
        ([[1.0], None], "row 2, field v: expected a list of 1 numbers, got 0"),
        ([[], []], "row 1, field v: expected a list of 1 numbers, got 0"),
        ([[1.0], [None]], "item 'b', column 0: expected a finite number"),
    ):
        pq.write_table(pa.table({"item": ["a", "b"], "v": pa.array(values, pa.list_(pa.float64()))}), path)
        with pytest.raises(SourceError, match=message.replace("[", r"\[")):
            read_item_features(path)
    pq.write_table(pa.table({"item": ["a"], "v": [[1.0]], "w": [[2.0]]}), path)
    with pytest.raises(SourceError, match="field v: expected one column of lists and names beside it"):
        read_item_features(path)
    with pytest.raises(SourceError, match=r"expected columns out of 0\.\.1, got '2'"):
        read_item_features(as_parquet(tmp_path / "two.parquet"), ("2",))
    assert read_item_features(tmp_path / "two.parquet", ("1",)).values[:, 0].tolist() == NUMBERS[:, 1].tolist()


def test_real_vectors_of_real_answers_join(shared_data: Path) -> None:
    """750 vectors by (prompt, model), made elsewhere, describe all 8,931 comparisons as they are."""
    features = read_item_features(shared_data / "embedding" / "llmfao_minilm_384.npz")
    path = shared_data / "pairwise" / "llmfao_crowd_comparisons.csv"
    table = read_table(path, True, Wanted(item_a="model_x", item_b="model_y", coding="sides"), features=features)
    assert (len(table.pairs), table.problem.dimension) == (8931, 384)
