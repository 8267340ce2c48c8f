"""Randomisers of numbers: exact laws of those made of integers, draws of the others, through the client's border."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from client.vector_randomizer import randomize_vectors
from protocol.coins import Words
from protocol.numeric import numeric_channel
from protocol.numeric.channel import NumericChannel
from protocol.numeric.coordinates import Coordinates
from protocol.numeric.discrete_laplace import DiscreteLaplace
from protocol.numeric.duchi import Duchi
from protocol.numeric.duchi_cube import DuchiCube
from protocol.numeric.gaussian_noise import GaussianNoise
from protocol.numeric.hybrid import Hybrid
from protocol.numeric.piecewise import Piecewise
from protocol.numeric.scalar import Scalar
from protocol.numeric.unary import Unary
from studies.audit.coins import AuditCoins
from studies.audit.exact import Axis, Box, Law, NotExact, enumerated
from studies.audit.given import GivenDraws
from studies.audit.subject import Claim, Floats, Subject, all_pairs

UNIT = "record"
HALF, ONE = 1 << 62, 1 << 63
NUMBERS = (1.0, -1.0, 0.37, 0.0)  # in units of the bound
WHOLE = Axis.cut(())
_TRIED = (
    {"first axis", "opposite"},
    {"first axis", "last axis"},
    {"corner", "opposite corner"},
    {"1", "-1"},
    {"1", "0.37"},
)
_EXACT, _DRAWN = "client.vector_randomizer on all classes of words", "client.vector_randomizer"
SHIFT = Decimal("1e-5")  # the delta of Gaussian noise


def of_numbers(name: str, epsilon: Decimal, dimension: int) -> Subject:
    """A mechanism of `protocol.numeric` in so many dimensions, one coordinate reported where it samples them."""
    asked = {"epsilon": epsilon, "threshold": Decimal(1), "dimension": Decimal(dimension)}
    if name == "gaussian":
        asked["delta"] = SHIFT
    return of_channel(f"numbers/{name}/{dimension}", epsilon, numeric_channel(name, asked))


def of_channel(name: str, epsilon: Decimal, channel: NumericChannel) -> Subject:
    """What the border makes of a channel: exactly where its classes of words are known, else by draws."""
    inputs = _inputs(channel)
    claim, pairs = Claim(epsilon, channel.delta, UNIT), all_pairs(inputs)
    boxes = _boxes(channel)
    if boxes is not None:
        return Subject(name, claim, inputs, pairs, _EXACT, laws=lambda: _laws(channel, inputs, boxes))

    pairs = tuple(pair for pair in pairs if set(pair) in _TRIED)

    def draw(value: Floats, count: int, coins: AuditCoins) -> Floats:
        return randomize_vectors(np.tile(value, (count, 1)), channel, coins.draws(), np.arange(count))

    return Subject(
        name, claim, inputs, pairs, _DRAWN, draw=draw, reals=not channel.live, normal=isinstance(channel, GaussianNoise)
    )


def _inputs(channel: NumericChannel) -> dict[str, Floats]:
    """Rows on the bound, opposite ones among them, the centre, and of one coordinate something between."""
    bound, d = channel.bound, channel.dimension
    if d == 1:
        return {f"{t:g}": np.array([t * bound]) for t in NUMBERS}
    first, last = np.zeros(d), np.zeros(d)
    first[0] = last[-1] = bound
    found = {"first axis": first, "opposite": -first, "last axis": last}
    if channel.norm == "linf":
        found |= {"corner": np.full(d, bound), "opposite corner": np.full(d, -bound)}
    return found


def _laws(channel: NumericChannel, inputs: Mapping[str, Floats], boxes: "Boxes") -> dict[str, Law]:
    def run(value: Floats, words: Words) -> NDArray[np.float64]:
        values = np.tile(value, (len(words), 1))
        return randomize_vectors(values, channel, GivenDraws(words), np.arange(len(words)))

    return {name: enumerated(partial(run, value), boxes(value / channel.bound)) for name, value in inputs.items()}


Boxes = Callable[[Floats], Sequence[Box]]


def _boxes(channel: NumericChannel) -> Boxes | None:
    """Classes of words given a row in units of the bound; None where outputs are a continuum, or classes too many."""
    if isinstance(channel, Coordinates) and channel.dimension == 1 and channel.scalar.live:
        return lambda row: scalar_boxes(channel, float(row[0]))
    if isinstance(channel, Unary) and channel.dimension <= 3:
        coin = Axis.cut([HALF << 1, channel.other << 1])
        return lambda row: [[coin] * channel.words]
    if isinstance(channel, DuchiCube) and channel.dimension in (1, 3):  # odd: no ties, one corner
        corner = Axis.low_bits(channel.dimension)
        return lambda row: [[*(Axis.cut([_lean(t, 2.0**62)]) for t in row), Axis.cut([channel.hit << 1]), corner]]
    return None


def scalar_boxes(channel: NumericChannel, t: float) -> Sequence[Box]:
    """Classes of the words of a number in units of the bound. Raises NotExact for a channel of another kind."""
    if not isinstance(channel, Coordinates) or channel.dimension != 1:
        raise NotExact(f"expected a channel of one number, got {channel.terms.name}")
    return _scalar(channel.scalar, t)


def _scalar(law: Scalar, t: float) -> list[Box]:
    if isinstance(law, Duchi):
        return [[Axis.cut([_lean(t, float(law.lean))])]]
    if isinstance(law, Piecewise):
        hit = law.hit << 1
        near, far = _below(law.window), _below(law.count)
        between = Axis.cut([_between(t * float(law.steps))])
        return [[Axis.cut((), 0, hit), between, near], [Axis.cut((), hit), WHOLE, far]]
    if isinstance(law, DiscreteLaplace):
        cuts = [threshold << 1 for threshold in law.thresholds.tolist()]
        between = Axis.cut([_between(t * float(law.steps))])
        noise, rest = Axis.cut(cuts, 0, cuts[-1]), Axis.cut((), cuts[-1])
        return [[noise, between, WHOLE], [rest, WHOLE, _below(law.count)]]
    if isinstance(law, Hybrid):
        hit = law.wide.hit << 1
        wide = [[Axis.cut((), 0, hit), *box] for box in _scalar(law.wide, t)]
        return [*wide, [Axis.cut((), hit), *_scalar(law.narrow, t)[0], WHOLE, WHOLE]]
    raise NotExact(f"expected a law whose classes of words are known, got {type(law).__name__}")


def _lean(t: float, most: float) -> int:
    """The word from which on a coin says no to a lean."""
    return HALF + int(t * most) << 1


def _between(place: float) -> int:
    """The word from which on the lower of two places is taken."""
    return int((place - np.floor(place)) * 2.0**63) << 1


@lru_cache(maxsize=8)
def _below(count: int) -> Axis:
    """Classes of words of the same floor((w | 1) count / 2^64)."""
    return Axis.cut(-(-(value << 64) // count) & ~1 for value in range(1, count))
