"""The replica of a notebook's descent against its recursion written out, and what its noise is worth."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from protocol.coins import Address, Stream, normal, words
from server.estimators import ESTIMATORS, Workspace
from server.estimators.base import Evidence, Options
from server.estimators.notebook import last_label

Draw = Callable[..., Any]
PLACE = Address(5, Stream.BOOTSTRAP, 300, 2)


def path(evidence: Evidence, bound: float, noise: Any) -> Any:
    """The last iterate of the notebook's loop."""
    c, u = evidence.contrast, np.zeros(evidence.rows.shape[1])
    for v, symbol, shift in zip(evidence.rows, evidence.symbols, noise, strict=True):
        a, sigma = (1 + c) / 2, 1 / (1 + math.exp(-u @ v))
        gradient = a * (sigma - symbol) - (1 - a) * (sigma - (1 - symbol))  # as the notebook has it
        u = u - gradient * v - shift
        u = u / max(1.0, np.linalg.norm(u) / bound)
    return u


@pytest.mark.parametrize("epsilon", [None, 0.5, 2.0])
def test_the_last_iterate_is_that_of_the_loop(drawn: Draw, epsilon: float | None) -> None:
    evidence = drawn(1, 300, epsilon=epsilon).evidence
    found = ESTIMATORS["notebook-sgd"](Workspace(evidence), Options(1.5))
    np.testing.assert_allclose(found.u, path(evidence, 1.5, np.zeros((300, 4))), rtol=1e-9)
    assert found.covariance is None
    assert found.warnings[0].startswith("replica: of a published notebook")


@pytest.mark.parametrize("nominal", [0.1, 1.0])
def test_noise_in_every_step_is_fresh_and_scaled_as_in_the_notebook(drawn: Draw, nominal: float) -> None:
    evidence = replace(drawn(2, 300).evidence, coins=PLACE)
    found = ESTIMATORS["notebook-sgd"](Workspace(evidence), Options(1.5, nominal=nominal))
    coins = normal(words(replace(PLACE, stream=Stream.CURATOR), 0, 1200)).reshape(300, 4)
    longest = np.linalg.norm(evidence.rows, axis=1).max()
    noise = coins * longest * math.sqrt(math.log(1000)) / (nominal * math.sqrt(300))
    np.testing.assert_allclose(found.u, path(evidence, 1.5, noise), rtol=1e-8)
    assert any(text.startswith("no-claim: ") for text in found.warnings)


def test_noise_needs_clear_labels_and_coins(drawn: Draw) -> None:
    for evidence in (drawn(3, 50).evidence, replace(drawn(3, 50, epsilon=1.0).evidence, coins=PLACE)):
        with pytest.raises(ValueError, match="expected clear labels and addressed coins"):
            ESTIMATORS["notebook-sgd"](Workspace(evidence), Options(1.5, nominal=1.0))


def test_what_the_noise_is_worth_for_the_last_label() -> None:
    """n = 10,000 and delta = 0.001, as computed elsewhere; a shorter last row is covered better."""
    assert last_label(10_000, 1.0) == pytest.approx((38.0, 840), rel=2e-3)
    assert last_label(10_000, 0.1) == pytest.approx((3.80, 18.3), rel=2e-3)
    assert last_label(10_000, 0.1, share=0.5)[1] < 9
    assert last_label(1, 0.001)[1] == 0.0
