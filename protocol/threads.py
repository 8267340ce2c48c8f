"""How many threads a process may use at once, and work that is spread over them; no result depends on their number."""

import os
from collections.abc import Callable, Sequence
from threading import Thread
from typing import TypeVar

LIMIT = "OMP_NUM_THREADS"  # what other libraries read too: 1 in a process that shares the machine with others like it

Part = TypeVar("Part")
Found = TypeVar("Found")


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """These cores, or fewer where the environment says so."""
    limit = os.environ.get(LIMIT, "")
    return max(1, min(cores(), int(limit))) if limit.isdecimal() else cores()


def spread(work: Callable[[Part], Found], parts: Sequence[Part]) -> list[Found]:
    """[work(part) for part in parts], some of them at once: for compiled loops, which let go of the interpreter.

    The caller's thread takes parts, too: a pool's start and its locks cost as much as ten thousand rows. Of several
    errors the first part's is raised.
    """
    count = min(threads(), len(parts))
    if count < 2:
        return [work(part) for part in parts]
    found: dict[int, Found] = {}
    failed: dict[int, BaseException] = {}
    places = iter(range(len(parts)))  # which no two threads advance at once

    def take() -> None:
        for place in places:
            try:
                found[place] = work(parts[place])
            except BaseException as error:
                failed[place] = error
            if failed:
                return

    helpers = [Thread(target=take) for _ in range(count - 1)]
    for helper in helpers:
        helper.start()
    take()
    for helper in helpers:
        helper.join()
    if failed:
        raise failed[min(failed)]
    return [found[place] for place in range(len(parts))]
