"""The files of the real studies, read: comparisons, rankings, and comparisons of answers that a network described."""

import csv
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from client.sources.columns import Wanted
from client.sources.item_features import read_item_features
from client.sources.loading import read_table
from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from client.sources.table import Table

WORKERS = Path("pairwise/llmfao_crowd_comparisons.csv")
VECTORS = Path("embedding/llmfao_minilm_384.npz")
TRIADS = {
    "breadwheat": (Path("rankings/breadwheat_triadic.csv"), RankingWanted(best="overall_best")),
    "beans": (
        Path("rankings/beans_triadic.csv"),
        RankingWanted(items=("variety_a", "variety_b", "variety_c")),
    ),
}


def judges(folder: Path) -> Table:
    """MT-Bench: experts and authors compare the answers of 6 models to 80 questions."""
    return read_table(folder / "pairwise/mtbench_human_judgments.jsonl", True)


def workers(folder: Path) -> Table:
    """llmfao: crowd workers compare the answers of 59 models to 13 prompts."""
    return read_table(folder / WORKERS, True, Wanted(item_a="left", item_b="right"))


def parties(folder: Path) -> Table:
    """Respondents compare German parties, each all 15 pairs of 6."""
    return read_table(folder / "pairwise/german_parties_2009.csv", True)


def triads(folder: Path, name: str, comparisons: int) -> Table:
    """Farmers say which of three varieties was best and which worst: their top choice, or some comparisons."""
    path, wanted = TRIADS[name]
    return read_ranking_table(folder / path, True, wanted, RankingAs(comparisons))


def embedded(folder: Path) -> Table:
    """llmfao with every (prompt, model) an item of its own, described by the 384 numbers of its answer's vector.

    The two files are joined by (prompt, model). Raises SourceError for an answer without a vector.
    """
    with np.load(folder / VECTORS, allow_pickle=False) as stored:
        keys = [_key(prompt, model) for prompt, model in zip(stored["prompt"], stored["model"], strict=True)]
        vectors = stored["emb"].astype(np.float64)
    with TemporaryDirectory() as fleeting:
        described, joined = Path(fleeting) / "vectors.npz", Path(fleeting) / WORKERS.name
        np.savez(described, items=np.array(keys), features=vectors)
        with (folder / WORKERS).open(newline="", encoding="utf-8") as source, joined.open("w", newline="") as target:
            writer = csv.writer(target)
            writer.writerow(("worker", "item_a", "item_b", "winner"))
            for row in csv.DictReader(source):
                items = [_key(row["prompt"], row[side]) for side in ("model_x", "model_y")]
                writer.writerow((row["worker"], *items, row["winner"]))
        return read_table(joined, True, features=read_item_features(described))


def _key(prompt: object, model: object) -> str:
    return json.dumps([str(prompt), str(model)])
