"""What tests of sources share: a second reader of files."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def obvious() -> ModuleType:
    """The module `obvious` beside this file: tests are imported without packages."""
    spec = importlib.util.spec_from_file_location("halftruth_obvious_reader", Path(__file__).with_name("obvious.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
