"""Hosts with addresses of their own; without the right to make them there is nothing to test."""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    """A module beside this file: tests are imported without packages."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"halftruth_network_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


hosts_module = _load("hosts")
Make = Callable[[Sequence[str]], list]  # type: ignore[type-arg]


@pytest.fixture
def hosts() -> Iterator[Make]:
    """Makes a network of hosts by their names, gone when the test ends."""
    reason = hosts_module.unavailable()
    if reason is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        yield lambda names: stack.enter_context(hosts_module.network(names))


@pytest.fixture
def beside() -> Callable[[str], ModuleType]:
    """Modules of this folder by name."""
    return _load
