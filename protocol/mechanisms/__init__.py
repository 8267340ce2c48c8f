"""The registry of local mechanisms: name -> (parameters -> channel). One file a mechanism, one line here."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from protocol.channel import DiscreteChannel
from protocol.mechanisms.randomized_response import k_randomized_response, randomized_response

Parameters = Mapping[str, Decimal]

LOCAL: dict[str, tuple[frozenset[str], Callable[[Parameters], DiscreteChannel]]] = {
    "randomized-response": (frozenset({"epsilon"}), lambda p: randomized_response(p["epsilon"])),
    "k-randomized-response": (
        frozenset({"epsilon", "outcomes"}),
        lambda p: k_randomized_response(p["epsilon"], int(p["outcomes"])),
    ),
}


def channel(name: str, parameters: Parameters) -> DiscreteChannel:
    """The channel that a local mechanism executes; client and server derive it from the same decimals.

    Raises ValueError for an unknown mechanism, and for missing or unknown parameters.

    >>> channel("randomized-response", {"epsilon": Decimal(2)}).outcomes
    2
    """
    if name not in LOCAL:
        raise ValueError(f"expected a local mechanism out of {sorted(LOCAL)}, got {name!r}")
    needed, build = LOCAL[name]
    if set(parameters) != needed:
        raise ValueError(f"expected parameters {sorted(needed)} for {name}, got {sorted(parameters)}")
    outcomes = parameters.get("outcomes")
    if outcomes is not None and outcomes != int(outcomes):
        raise ValueError(f"expected outcomes to be an integer, got {outcomes}")
    return build(parameters)
