"""The main study as a figure: all its arms, all repetitions, n to 100,000, on all cores."""

import tempfile
from pathlib import Path

import pyarrow as pa

from studies.bench.figure import Prepared, Side
from studies.load import load
from studies.run import run

STUDY = Path(__file__).parents[1] / "toml" / "figure1.toml"
SMALL = ["study.repetitions=4", "grid.n=[200, 500]", "grid.epsilon=[1.0]"]


def figure1(small: bool) -> Prepared:
    """`halftruth run figure1.toml`, from reading it to results.parquet, worker processes included."""
    loaded = load(STUDY, SMALL if small else [])
    few = load(STUDY, SMALL)

    def whole() -> pa.Table:
        with tempfile.TemporaryDirectory() as out:
            return run(loaded, Path(out))

    def agree() -> None:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            assert run(few, Path(one), jobs=1).equals(run(few, Path(other), jobs=2, clients=3, block=1))

    return Prepared(Side("halftruth", whole), (), 1.0, "s", agree)
