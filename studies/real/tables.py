"""A real study is measured: each line of its table over seeds, and whether it shows what was expected."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from client.sources.ranking_labels import RankingAs
from client.sources.table import Table
from studies.real.evaluate import Claim, Guessed, guessed, mean, split
from studies.real.files import read
from studies.real.study import TOP, Cells, Expected, RealStudy

Parts = list[tuple[Table, Table]]
SIGN = {"accuracy": 1, "log-loss": -1}  # of more that is better


def measured(study: RealStudy, seeds: int) -> Iterator[tuple[Cells, list[Guessed]]]:
    """The cells that name each line, and what was guessed under each seed.

    Whatever is asked of rankings, what is guessed are the top choices of those who were kept out.
    Raises StudyError for data that does not read, EstimationError where nothing can be estimated.
    """
    parts: dict[RankingAs | None, Parts] = {}
    for line in study.lines():
        guessing = None if line.asked is None else TOP
        for asked in (guessing, line.asked):
            if asked not in parts:
                table = read(study, asked)
                parts[asked] = [split(table, seed, study.by_labeler, study.one_in) for seed in range(seeds)]
        pairs = [(train, test) for (train, _), (_, test) in zip(parts[line.asked], parts[guessing], strict=True)]
        claim = Claim(line.level or study.levels[0], study.delta, study.unit, line.cap)
        count = 0 if line.asked is None else line.asked.pairs
        yield study.cells(line), [guessed(line.way, claim, seed, *pair, count) for seed, pair in enumerate(pairs)]


def as_json(study: RealStudy, found: Mapping[Cells, Sequence[Guessed]]) -> dict[str, Any]:
    """A measured study for machines: of each line its cells, its guesses under each seed, and their warnings."""
    lines = [
        dict(zip(study.heads, cells, strict=True))
        | {"accuracy": [one.accuracy for one in guesses], "log_loss": [one.log_loss for one in guesses]}
        | {"warnings": [list(one.warnings) for one in guesses]}
        for cells, guesses in found.items()
    ]
    return {"study": study.name, "lines": lines, "expected": [verdict(expected, found) for expected in study.expected]}


def by_how_much(expected: Expected, found: Mapping[Cells, Sequence[Guessed]]) -> list[float]:
    """How much better one line is than another, under each seed."""
    better, than = (
        [one.accuracy if expected.measure == "accuracy" else one.log_loss for one in found[cells]]
        for cells in (expected.better, expected.than)
    )
    return [SIGN[expected.measure] * (one - other) for one, other in zip(better, than, strict=True)]


def verdict(expected: Expected, found: Mapping[Cells, Sequence[Guessed]]) -> str:
    """One line on what was expected: whether it is so, and by how much, mean and standard error of paired seeds."""
    differences = by_how_much(expected, found)
    return f"Expected: {expected}. {'So it is' if sum(differences) > 0 else 'It is not so'}, by {mean(differences)}"
