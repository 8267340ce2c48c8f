"""Channels by short names."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from protocol.numeric import numeric_channel
from protocol.numeric.channel import NumericChannel


@pytest.fixture(scope="session")
def make() -> Callable[..., NumericChannel]:
    """make(name, dimension, epsilon, threshold="1", coordinates=None): a channel; delta of gaussian is 1e-5."""

    def channel(
        name: str, dimension: int, epsilon: str, threshold: str = "1", coordinates: int | None = None
    ) -> NumericChannel:
        parameters = {
            "epsilon": Decimal(epsilon),
            "threshold": Decimal(threshold),
            "dimension": Decimal(dimension),
        }
        if name == "gaussian":
            parameters["delta"] = Decimal("1e-5")
        if coordinates is not None:
            parameters["coordinates"] = Decimal(coordinates)
        return numeric_channel(name, parameters)

    return channel
