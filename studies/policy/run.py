"""Playing the worlds of a policy study, each in a results folder of its own, and judging what was learned there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from protocol import strict
from studies.files import write_atomically
from studies.load import Loaded
from studies.policy.score import SCHEMA, Judge
from studies.policy.study_file import PolicyStudy
from studies.policy.worlds import World, worlds

RESULTS = "policies.parquet"

# Plays an ordinary study into a folder and returns its results: in this process, or over Flower.
Play = Callable[[Loaded, Path], pa.Table]


def run_policies(study: PolicyStudy, out: Path, play: Play) -> pa.Table:
    """Play every world into OUT/worlds, and write and return OUT/policies.parquet: one row per estimate and policy.

    Rows are ordered by world, then as the results of a run are. The bytes depend on the study only.
    Raises what `play` raises, StudyError for a study that an ordinary one would refuse, and RunFailed where a bound
    that is a theorem does not hold.
    """
    every = list(worlds(study))  # a wrong study is refused before the first is played
    rows: list[dict[str, Any]] = []
    for world in every:
        rows += _judged(study, world, out, play)
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    write_atomically(out / RESULTS, lambda draft: pq.write_table(table, draft, compression="zstd"))
    return table


def _judged(study: PolicyStudy, world: World, out: Path, play: Play) -> Iterator[dict[str, Any]]:
    folder = out / "worlds" / world.name
    strict.make_folder(folder.parent, "--out")
    yield from Judge(study, world).rows(play(world.loaded, folder))
