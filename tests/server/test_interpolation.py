"""Secrets put together from shares: the bits of pycryptodome's, whose shares they are."""

import pytest
from Crypto.Protocol.SecretSharing import Shamir
from hypothesis import given, settings
from hypothesis import strategies as st

from server.secure.interpolation import BITS, at_zero, inverse, product

ELEMENTS = st.integers(0, (1 << BITS) - 1)


@given(st.binary(min_size=16, max_size=16), st.integers(2, 12), st.integers(0, 8), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_any_shares_that_are_enough_give_the_secret(secret: bytes, threshold: int, more: int, chance: object) -> None:
    shares = Shamir.split(threshold, threshold + more, secret, False)
    chosen = [(place, bytes(share)) for place, share in chance.sample(shares, threshold)]  # type: ignore[attr-defined]
    assert at_zero(chosen) == secret == bytes(Shamir.combine(chosen, False))


@given(st.lists(st.tuples(st.integers(1, 1 << 32), st.binary(min_size=16, max_size=16)), min_size=2, max_size=5))
@settings(max_examples=30, deadline=None)
def test_shares_of_nothing_are_put_together_alike(shares: list[tuple[int, bytes]]) -> None:
    """Made-up shares at any places: whatever they are of, it is the same."""
    chosen = list(dict(shares).items())
    assert len(chosen) == 1 or at_zero(chosen) == bytes(Shamir.combine(chosen, False))
    assert len(chosen) > 1 or at_zero(chosen) == chosen[0][1]


@given(ELEMENTS, ELEMENTS, ELEMENTS)
def test_the_field_has_its_laws(one: int, two: int, three: int) -> None:
    assert product(one, two) == product(two, one)
    assert product(one, product(two, three)) == product(product(one, two), three)
    assert product(one, two ^ three) == product(one, two) ^ product(one, three)
    assert one == 0 or product(one, inverse(one)) == 1


@pytest.mark.parametrize("places", [(), (0, 1), (1, 2, 1), (-1, 2), (1, 1 << BITS)])
def test_places_that_are_none_are_refused(places: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="different places"):
        at_zero([(place, bytes(16)) for place in places])
    with pytest.raises(ValueError, match="not 0"):
        inverse(0)
