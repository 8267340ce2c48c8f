"""How many threads a process may use at once, and work that is spread over them; no result depends on their number."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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

    The caller only waits. Where it took parts, too, its helpers were seen to stay on its core: half as fast.
    """
    count = min(threads(), len(parts))
    if count < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, parts))
