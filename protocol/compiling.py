"""How loops are compiled on both sides of the border; whoever has a compiler passes it in."""

import functools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def compiler(njit: Callable[..., Any]) -> Callable[[Function], Function]:
    """A decorator: compile by numba's `njit` on first use, keep the code on disk; IEEE arithmetic in the order written.

    Decorated functions are in files called kernels*.py: code that is kept beside them is renewed where any of a
    folder's is newer.
    """

    def compiled(function: Function) -> Function:
        dispatcher = njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function)
        sources = Path(function.__code__.co_filename).parent
        if Path(dispatcher.stats.cache_path) == sources / "__pycache__":
            forget_stale(sources)
        return cast(Function, dispatcher)

    return compiled


@functools.cache
def forget_stale(sources: Path) -> None:
    """Drop kept code older than any kernel's source: numba itself looks at a function's own file only."""
    changed = max(source.stat().st_mtime for source in (Path(__file__), *sources.glob("kernels*.py")))
    for index in (sources / "__pycache__").glob("kernels*.nbi"):
        with suppress(FileNotFoundError):
            if index.stat().st_mtime < changed:
                index.unlink()
