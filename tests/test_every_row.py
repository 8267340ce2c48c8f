"""Every test value of heavy-tailed estimation is some test's."""

from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent


def test_no_test_value_is_left_out(request: pytest.FixtureRequest, heavy_oracle: Any) -> None:
    """Comes last; where only some of the tests that ask for values are run, there is nothing to say."""
    ask = {path for path in TESTS.rglob("test_*.py") if "heavy_oracle(" in path.read_text("utf-8")}
    run = {item.path for item in request.session.items if "heavy_oracle" in getattr(item, "fixturenames", ())}
    if not ask <= run:
        pytest.skip(f"run all tests, or also {', '.join(sorted(path.name for path in ask - run))}")
    left = sorted(heavy_oracle.values.keys() - heavy_oracle.asked)
    assert not left, f"no test asks for {left}"
