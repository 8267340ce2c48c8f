"""Algorithms whose tasks depend on what was heard: each repetition of a block by itself, all of them side by side."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from protocol.study import Cell
from server.algorithms.steps import Found, Room, Steps


def side_by_side(room: Room, algorithm: Callable[[Room], Steps]) -> Steps:
    """The algorithm in a room of one repetition each; tasks of all repetitions go out together, round by round."""
    runs = [algorithm(alone) for alone in _alone(room)]
    asked, found = {index: next(run) for index, run in enumerate(runs)}, dict[int, Found]()
    while asked:
        heard = iter((yield [task for tasks in asked.values() for task in tasks]))
        for index, tasks in list(asked.items()):
            own = [next(heard) for _ in tasks]
            try:
                asked[index] = runs[index].send(own)
            except StopIteration as stopped:
                del asked[index]
                found[index] = stopped.value
    ordered = [found[index] for index in range(len(runs))]
    warnings = dict.fromkeys(warning for each in ordered for warning in each.warnings)
    theta, boundary = (np.concatenate(each) for each in zip(*((f.theta, f.boundary) for f in ordered), strict=True))
    return Found(theta, boundary, tuple(warnings))


def _alone(room: Room) -> Iterator[Room]:
    first = room.cell.first_repetition
    for repetition in range(first, first + room.cell.repetitions):
        yield replace(room, cell=Cell(room.n, repetition, 1))
