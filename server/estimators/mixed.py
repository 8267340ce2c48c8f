"""Reports of several channels, where labelers chose their levels: each de-biased with its own, and weighed by it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address
from server.estimators.base import Evidence, wins
from server.estimators.features import Features, Passes
from server.estimators.workspace import PILOT, Reports, Workspace
from server.kernels import Array


class Channel(NamedTuple):
    """contrast, flip and third of a channel: see `Evidence`."""

    contrast: float
    flip: float
    third: float = 0.0


@dataclass(frozen=True, eq=False)
class WeightedFeatures(Passes):
    """Rows in parts, each with one weight: A(u) = sum over parts of share_g weight_g A_g(u), weights of mean one.

    noises: kappa_g, the variance that flipping adds to a de-biased report.
    """

    parts: tuple[Features, ...] = field(repr=False)
    weights: tuple[float, ...]
    noises: tuple[float, ...]

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """What part of all rows each part has."""
        return tuple(part.count / self.shape[0] for part in self.parts)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return sum(part.count for part in self.parts), self.parts[0].shape[1]

    @cached_property
    def reach(self) -> Array:
        """max_i |x_ij|."""
        return np.asarray(np.max([part.reach for part in self.parts], axis=0))

    @property
    def sample(self) -> None:
        """None: a fit starts on all rows."""

    @cached_property
    def second_moment(self) -> Array:
        """(1/n) sum v_i v_i', without weights, shape (p, p)."""
        moments = zip(self.shares, self.parts, strict=True)
        return np.asarray(sum(share * part.second_moment for share, part in moments))

    def cumulant(self, u: Array) -> tuple[float, Array, Array]:
        """Part after part."""
        value, gradient, hessian = 0.0, np.zeros(len(u)), np.zeros((len(u), len(u)))
        for share, weight, part in zip(self.shares, self.weights, self.parts, strict=True):
            own = part.cumulant(u)
            factor = share * weight
            value, gradient, hessian = value + factor * own[0], gradient + factor * own[1], hessian + factor * own[2]
        return value, gradient, hessian

    def score_variance(self, u: Array, hessian: Array, excess: float) -> Array:
        """(1/n) sum weight_i^2 (sigma'(z_i) + kappa_i) v_i v_i'; neither `hessian` nor one excess says that."""
        total = np.zeros_like(hessian)
        for share, weight, noise, part in zip(self.shares, self.weights, self.noises, self.parts, strict=True):
            total += share * weight**2 * part.score_variance(u, part.cumulant(u)[2], noise)
        return total


@dataclass(frozen=True, eq=False)
class MixedEvidence:
    """What the server holds about reports of several channels, in reduced coordinates.

    rows (n, p): public rounded features; symbols (n,): reports in row order, 0 and 1, or 2 for a tie that was
    randomised; which (n,): the channel of each row, a place in `channels`; features: the same rows arranged for the
    kernels; coins: those of a bootstrap.
    Raises ValueError for a row of no channel.
    """

    rows: NDArray[np.float64] = field(repr=False)
    symbols: NDArray[np.uint8] = field(repr=False)
    which: NDArray[np.uint8] = field(repr=False)
    channels: Sequence[Channel | tuple[float, float]]
    features: Features = field(repr=False)
    coins: Address | None = None

    def __post_init__(self) -> None:
        if self.which.shape != self.symbols.shape or self.which.max() >= len(self.channels):
            raise ValueError(f"expected one of {len(self.channels)} channels for each row, got {self.which.max()}")


class Mixed(Reports):
    """Reports of channels c_i, b_i (contrast and flip), each de-biased with its own.

    Weights c_i^2 / c^2 depend on channels alone, c^2 = `contrast`^2 = (1/n) sum c_i^2: 4 c_i^2 is 1 / (1/4 + kappa_i),
    the inverse variance of a de-biased report where both labels are equally likely. The loss
    (1/n) sum (c_i^2 / c^2) [log(2 cosh(z_i / 2)) - (y_i - 1/2) z_i / c_i] = A(u) - S . u / (n c) is convex, and sees
    reports through S = sum c_i (y_i - 1/2) v_i / c alone. With one channel all of it is what `Workspace` has.
    With `equal` all weights w_i are one, and contrast^-2 = (1/n) sum w_i^2 / c_i^2 as before: noisier, but for the mean
    opinion of all where levels go with opinions.
    Guarantee: that of the reported labels; this is post-processing.
    Source: derived, see docs/ESTIMATORS.md.
    """

    features: WeightedFeatures

    def __init__(self, evidence: MixedEvidence, equal: bool = False) -> None:
        super().__init__()
        self.evidence, self.equal = evidence, equal
        self.parts = tuple(_parts(evidence))
        shares = [part.count / len(evidence.symbols) for part in self.parts]
        says = [1.0 if equal else part.contrast**2 for part in self.parts]
        mean = math.fsum(share * each for share, each in zip(shares, says, strict=True))
        weights = tuple(each / mean for each in says)
        ratios = [weight / part.contrast for weight, part in zip(weights, self.parts, strict=True)]
        self.contrast = math.fsum(share * ratio**2 for share, ratio in zip(shares, ratios, strict=True)) ** -0.5
        self.flip, self.noise_stddev = 0.5 * (1.0 - self.contrast), 0.0
        noises = tuple(part.flip * (part.flip + part.contrast) / part.contrast**2 for part in self.parts)
        self.features = WeightedFeatures(tuple(part.features for part in self.parts), weights, noises)
        sums = [ratio * part.half_sum for ratio, part in zip(ratios, self.parts, strict=True)]
        self.half_sum = self.contrast * np.asarray(sum(sums[1:], sums[0]))

    @property
    def coins(self) -> Address | None:
        """Those of a bootstrap."""
        return self.evidence.coins

    @property
    def clearest(self) -> float:
        """The largest contrast."""
        return max(part.contrast for part in self.parts)

    def likelihood(self, observed: bool, u: Array) -> tuple[float, Array, Array]:
        """Of each report through its own channel: no weights but those that the likelihood has."""
        value, gradient, information = 0.0, np.zeros(len(u)), np.zeros((len(u), len(u)))
        for share, part in zip(self.features.shares, self.parts, strict=True):
            own = part.likelihood(observed, u)
            value, gradient = value + share * own[0], gradient + share * own[1]
            information = information + share * own[2]
        return value, gradient, information

    def score_variance(self, u: Array, hessian: Array) -> Array:
        """Of randomised ties part after part."""
        if not any(part.third for part in self.parts):
            return super().score_variance(u, hessian)
        total, known = np.zeros_like(hessian), self.features
        for share, weight, part in zip(known.shares, known.weights, self.parts, strict=True):
            total += share * weight**2 * part.score_variance(u, part.features.cumulant(u)[2])
        return total

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """Stretches of one channel each, in the order of rows."""
        return ((columns, symbols) for columns, symbols, *_ in self.stretches())

    def stretches(self) -> Iterator[tuple[Array, Array, float, float, float]]:
        """Each with its channel; its age is the sum of c_i^2 before it, over its own."""
        held, columns = self.evidence, self.evidence.rows.T
        cuts = np.flatnonzero(np.diff(held.which)) + 1
        edges, total = [0, *cuts.tolist(), len(held.which)], 0.0
        for start, stop in pairwise(edges):
            contrast, flip = held.channels[held.which[start]][:2]
            own, symbols = np.ascontiguousarray(columns[:, start:stop]), wins(held.symbols[start:stop])
            yield own, symbols, contrast, flip, total / contrast**2
            total += (stop - start) * contrast**2

    def head(self) -> "Mixed":
        """The first reports, at most 1000."""
        held = self.evidence
        return Mixed(
            MixedEvidence(
                held.rows[:PILOT],
                held.symbols[:PILOT],
                held.which[:PILOT],
                held.channels,
                held.features.take(slice(PILOT)),
            ),
            self.equal,
        )

    def alike(self) -> "Mixed":
        """The same with weights of one."""
        return Mixed(self.evidence, equal=True)

    def plain(self) -> Workspace:
        """The reports as if they were clear labels."""
        held = self.evidence
        half_sum = _half_sum(held.rows, held.symbols)
        return Workspace(Evidence(held.rows, None, held.symbols, half_sum, 1.0, 0.0, 0.0, held.features, held.coins))

    def chances(self, u: Array) -> Array:
        """P(report = 1) of every row, each through its own channel."""
        result = np.empty(len(self.evidence.which))
        for part, places in zip(self.parts, _places(self.evidence), strict=True):
            result[places] = part.chances(u)
        return result

    def answering(self, symbols: NDArray[np.uint8]) -> "Mixed":
        """The same rows and channels with other reports."""
        return Mixed(replace(self.evidence, symbols=symbols, coins=None), self.equal)


def _places(evidence: MixedEvidence) -> list[NDArray[np.intp]]:
    """The rows of each channel that some row has."""
    places = [np.flatnonzero(evidence.which == channel) for channel in range(len(evidence.channels))]
    return [rows for rows in places if len(rows)]


def _parts(evidence: MixedEvidence) -> Iterator[Workspace]:
    for places in _places(evidence):
        contrast, flip, third = Channel(*evidence.channels[evidence.which[places[0]]])
        rows, symbols = evidence.rows[places], evidence.symbols[places]
        features, half_sum = evidence.features.take(places), _half_sum(rows, symbols)
        yield Workspace(Evidence(rows, None, symbols, half_sum, contrast, flip, 0.0, features, third=third))


def _half_sum(rows: Array, symbols: NDArray[np.uint8]) -> Array:
    """sum (y_i - 1/2) v_i: on the grid, halves included, so exact in whatever order a library adds."""
    total: Array = (wins(symbols) - 0.5) @ rows
    return total
