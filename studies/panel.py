"""A panel: few questions, each answered by many labelers. Row r has the features of question r mod Q, drawn once."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol import strict
from protocol.choice_features import blocks
from protocol.coins import Address, Stream
from protocol.features import differences
from protocol.problem import Problem
from protocol.strict import StudyError
from protocol.study import MOST
from protocol.study_file import parse_problem

ITEMS = "items"
KEY = "questions"


def panel(content: Mapping[str, Any]) -> Problem | None:
    """The problem of a study whose [problem] says how many `questions` there are, or that features are "items".

    Questions are the first rows that "gaussian" or "sphere" features would have in a repetition of no rows, the same
    in all repetitions; with "items", all pairs of `dimension` items in the order 0-1, 0-2, 1-2, 0-3, ..., or the first
    Q of them. They become features by value, which travel. None for any other study.
    Raises StudyError for a count out of range, and where it says nothing of labels.
    """
    table = content.get("problem")
    if not isinstance(table, Mapping) or (KEY not in table and table.get("features") != ITEMS):
        return None
    public = {key: value for key, value in table.items() if key not in ("theta", KEY)}
    rows = _rows(content)
    if public.get("features") == ITEMS:
        asked = _items(public, table)
    else:
        count = strict.integer(table[KEY], f"[problem] {KEY}", 1, rows)
        asked = _drawn(parse_problem(public), _seed(content), count)
    return parse_problem(public, asked[np.arange(rows) % len(asked)], "values")


def _rows(content: Mapping[str, Any]) -> int:
    grid = strict.table(content.get("grid", {}), "grid", ("n", "epsilon", "delta"), ("n",))
    return max(strict.integer(value, "[grid] n", 1, MOST) for value in strict.sequence(grid["n"], "[grid] n"))


def _seed(content: Mapping[str, Any]) -> int:
    head = strict.table(content.get("study", {}), "study", ("name", "seed", "repetitions"), ("seed",))
    return strict.integer(head["seed"], "[study] seed", 0, (1 << 128) - 1)


def _drawn(problem: Problem, seed: int, count: int) -> NDArray[np.float64]:
    """Features of the questions: differences (count, dimension), or of choices blocks (count, K, dimension)."""
    if problem.kind == "records":
        raise StudyError(f"[problem] {KEY}: expected it of pairs or choices: records have no questions")
    address = Address(seed, Stream.PROBLEM)
    return (differences if problem.kind == "pairwise" else blocks)(problem, address, 0, count)


def _items(public: Mapping[str, Any], table: Mapping[str, Any]) -> NDArray[np.float64]:
    if public.get("kind") != "pairwise":
        raise StudyError(f'[problem] features: expected kind = "pairwise" for {ITEMS!r}')
    items = strict.integer(public.get("dimension"), "[problem] dimension", 2, 1 << 10)
    every = sorted(combinations(range(items), 2), key=lambda pair: pair[::-1])
    count = strict.integer(table.get(KEY, len(every)), f"[problem] {KEY}", 1, len(every))
    x = np.zeros((count, items))
    for row, (first, second) in enumerate(every[:count]):
        x[row, first], x[row, second] = -1.0, 1.0
    return x
