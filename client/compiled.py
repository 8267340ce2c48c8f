"""The compiled way to the randomiser's bits, where it pays: numpy has the same bits, and is always there."""

import functools
import sys
from importlib import import_module
from types import ModuleType

PAYS = 1 << 16  # rows, words or numbers from which on compiled loops pay, in a process that has a compiler already
ALONE = 1 << 28  # from which on they pay for its import too: most of a second


def kernels(work: int) -> ModuleType | None:
    """`client.kernels` for so many rows or words at once, or None where numpy is to do it.

    A server in the same process has the compiler; a node that answers with millions of labels gets none for that.
    """
    there = _kernels.cache_info().currsize > 0
    return _kernels() if there or pays(work, ALONE) else None


def pays(work: int, alone: int) -> bool:
    """Whether compiled loops pay for so much work; from `alone` on they pay for the compiler's import too."""
    return work >= (PAYS if "numba" in sys.modules else alone)


@functools.cache
def _kernels() -> ModuleType | None:
    return loaded("client.kernels") if sys.byteorder == "little" else None  # they take lanes out of a word's bytes


@functools.cache
def loaded(name: str) -> ModuleType | None:
    """A module of kernels, or None where they cannot be had."""
    try:
        return import_module(name)
    except Exception:  # no compiler, one that does not fit, no folder for what it makes: numpy's way is as good
        return None
