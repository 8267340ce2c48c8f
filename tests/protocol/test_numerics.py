"""The fingerprint tells of a machine whose last bits differ in any function that models and noise call."""

import numpy as np
import pytest

from protocol import gaussian, links, numerics

MODULES = (links, gaussian)
CALLED = sorted({name for module in MODULES for name, found in vars(module).items() if isinstance(found, np.ufunc)})


def test_it_is_eight_bytes_and_stays() -> None:
    assert numerics.fingerprint() == numerics.fingerprint.__wrapped__()
    assert len(numerics.fingerprint()) == numerics.BYTES


@pytest.mark.parametrize("name", [*CALLED, "ndtri"])
def test_another_last_bit_is_another_fingerprint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = getattr(numerics, name)
    monkeypatch.setattr(numerics, name, lambda x: np.nextafter(function(x), np.inf))
    assert numerics.fingerprint.__wrapped__() != numerics.fingerprint()


def test_what_links_call_is_known() -> None:
    assert {"erfcx", "expit", "log_expit", "log_ndtr", "ndtr"} <= set(CALLED)
