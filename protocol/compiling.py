"""How loops are compiled on both sides of the border; whoever has a compiler passes it in."""

import functools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
_WIDEST = '"prefer-vector-width"="512"'


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


def widening(intrinsic: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[[], None]:
    """What a kernel calls to have its loops take as many numbers at once as the processor has room for.

    By itself the compiler takes half of that, since some processors then slow their clock. No bit depends on it.
    Made by numba's `intrinsic` and its type of `nothing`.
    """

    def wide(_typing: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            set.add(builder.function.attributes, _WIDEST)  # llvmlite's own `add` knows few names
            return context.get_dummy_value()

        return nothing(), generate

    return cast(Callable[[], None], intrinsic(wide))


SHARED = (Path(__file__), Path(__file__).with_name("turning.py"))  # sources of which kernels of any folder are made


@functools.cache
def forget_stale(sources: Path) -> None:
    """Drop kept code older than any kernel's source: numba itself looks at a function's own file only."""
    changed = max(source.stat().st_mtime for source in (*SHARED, *sources.glob("kernels*.py")))
    for index in (sources / "__pycache__").glob("kernels*.nbi"):
        with suppress(FileNotFoundError):
            if index.stat().st_mtime < changed:
                index.unlink()
