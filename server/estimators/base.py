"""What an estimator is given and what it returns."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from protocol.arms import USUAL_GROUPS
from protocol.coins import Address
from protocol.terms import TIE
from server.estimators.features import Features

_SMALLEST_FLIP = 2.0**-63  # tables count in units of this


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the server holds about one repetition of one task, in reduced coordinates (p of them).

    rows (n, p): public rounded features v_i = w_i x_i; weights (n,): public clipping weights in (0, 1], None where all
    are one; symbols (n,): reported labels in row order, clear or randomised (a 2 is a tie: y = 1/2), None in the
    central model; half_sum (p,):
    sum_i (y_i - 1/2) v_i of what was reported, with the curator's noise of `noise_stddev` per coordinate;
    contrast = keep - flip and flip: the channel that the server asked for, 1 and 0 for clear labels; third: of ties
    that were randomised as a third symbol, the probability q of each of the two other symbols, 0 of two symbols; then
    contrast = 1 - 3 q and flip = 3 q / 2, since a report's y has the mean flip + contrast E[y]; features: the same
    rows arranged for the kernels, where they are at hand; group_sums (G, p): half_sum by groups of consecutive rows,
    where a curator released them; coins: where a bootstrap finds its own; noise_factor (p, p):
    F, where the curator's noise has the covariance noise_stddev^2 F F^T; None: F = I; summed (n, p): the rows that
    half_sum is a sum of, where these were rounded to a coarser grid than `rows`; None: `rows`.
    Raises ValueError for a wrong shape or dtype, a value that is not finite, or a channel that is none.
    """

    rows: NDArray[np.float64] = field(repr=False)
    weights: NDArray[np.float64] | None = field(repr=False)
    symbols: NDArray[np.uint8] | None = field(repr=False)
    half_sum: NDArray[np.float64] = field(repr=False)
    contrast: float
    flip: float
    noise_stddev: float
    features: Features | None = field(default=None, repr=False)
    coins: Address | None = None
    group_sums: NDArray[np.float64] | None = field(default=None, repr=False)
    noise_factor: NDArray[np.float64] | None = field(default=None, repr=False)
    third: float = 0.0
    summed: NDArray[np.float64] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or 0 in self.rows.shape:
            raise ValueError(f"expected rows of shape (n, p) with n, p > 0, got {self.rows.shape}")
        n, p = self.rows.shape
        if self.features is None or not self.features.vouch_for(self.rows):
            _check_array("rows", self.rows, np.float64, (n, p))
        _check_array("half_sum", self.half_sum, np.float64, (p,))
        if self.weights is not None:
            _check_array("weights", self.weights, np.float64, (n,))
            if self.weights.min() <= 0.0 or self.weights.max() > 1.0:
                raise ValueError(f"expected weights in (0, 1], got {self.weights.min()}..{self.weights.max()}")
        if self.symbols is not None:
            _check_array("symbols", self.symbols, np.uint8, (n,))
            if self.symbols.max() > (TIE if self.flip == 0.0 or self.third else 1):
                raise ValueError(f"expected symbols 0 and 1, or 2 for ties, got {self.symbols.max()}")
        if not (self.flip == 0.0 or _SMALLEST_FLIP <= self.flip < 0.5):
            raise ValueError(f"expected flip = 0 or 2^-63 <= flip < 0.5, got {self.flip}")
        if not (0.0 < self.contrast <= 1.0 and abs(self.contrast + 2.0 * self.flip - 1.0) <= 1e-15):
            raise ValueError(f"expected contrast = 1 - 2 flip > 0 at flip = {self.flip}, got {self.contrast}")
        if self.third and not abs(1.5 * self.third - self.flip) <= 1e-15 * self.flip:
            raise ValueError(f"expected third = 0, or 2 flip / 3 at flip = {self.flip}, got {self.third}")
        if self.group_sums is not None:
            _check_array("group_sums", self.group_sums, np.float64, (len(self.group_sums), p))
        if not 0.0 <= self.noise_stddev < math.inf:
            raise ValueError(f"expected a finite noise_stddev >= 0, got {self.noise_stddev}")
        if self.noise_factor is not None:
            _check_array("noise_factor", self.noise_factor, np.float64, (p, p))
        if self.summed is not None:
            _check_array("summed", self.summed, np.float64, (n, p))
        if self.features is not None and self.features.shape != (n, p):
            raise ValueError(f"expected features of shape {(n, p)}, got {self.features.shape}")


@dataclass(frozen=True)
class Options:
    """How to estimate.

    bound: radius of the ball ||u|| <= bound, inf for none; ridge: adds ridge ||u||^2 / 2 to the mean loss, "tempered"
    for what a Gaussian prior N(0, tau^2 I) and the noise of privacy ask for; tau: that prior's standard deviation,
    "bound" for bound / sqrt(p), "marginal" for the reports' own; step of the last iterate: "pilot" or the number alpha;
    nominal: the level that the noise in every step of notebook_sgd is named after, inf for none;
    averaging of iterates: "last" (none), "half" or "all"; interval: "wald", or "bootstrap" of the reports; groups: how
    many groups of rows a robust mean is taken over; trim: the share of them that it leaves out at each end; epsilon,
    delta: what the noise of an estimate without a claim is named after; weights of reports of several channels:
    "precision", by what each says, or "equal".
    Raises ValueError for bound <= 0, alpha <= 0, tau <= 0, ridge < 0, groups < 3, trim outside (0, 1/2), for other
    words, and for values that are not numbers.
    """

    bound: float
    step: str | float = "pilot"
    tau: str | float = 1.0
    ridge: str | float = 0.0
    averaging: str = "last"
    interval: str = "wald"
    weights: str = "precision"
    nominal: float = math.inf
    epsilon: float = math.inf
    delta: float = 0.5
    groups: float = USUAL_GROUPS
    trim: float = 0.25

    def __post_init__(self) -> None:
        if not self.bound > 0.0:
            raise ValueError(f"expected bound > 0 (inf for no ball), got {self.bound}")
        _check_option("step", self.step, ("pilot",))
        _check_option("tau", self.tau, ("bound", "marginal"))
        _check_option("ridge", self.ridge, ("tempered",), zero=True)
        _check_option("averaging", self.averaging, ("last", "half", "all"), zero=None)
        _check_option("interval", self.interval, ("wald", "bootstrap"), zero=None)
        _check_option("weights", self.weights, ("precision", "equal"), zero=None)
        if not self.nominal > 0.0:
            raise ValueError(f"expected nominal > 0, got {self.nominal}")
        if not (self.groups == int(self.groups) and self.groups >= 3 and 0.0 < self.trim < 0.5):
            raise ValueError(f"expected groups >= 3 and trim in (0, 1/2), got {self.groups} and {self.trim}")
        if self.tau == "bound" and math.isinf(self.bound):
            raise ValueError('expected a finite bound for tau = "bound", got none: give tau a number')


@dataclass(frozen=True, eq=False)
class Estimate:
    """u (p,), its plug-in covariance (p, p) or None where no valid interval is known, and how it was found.

    replicas (r, p): the estimates of resampled reports, in whose quantiles an interval ends; None for a Wald interval.
    iterations: passes or steps over all rows; decrement: the last Newton decrement, NaN where there is none.
    """

    u: NDArray[np.float64]
    covariance: NDArray[np.float64] | None
    hit_boundary: bool
    warnings: tuple[str, ...]
    iterations: int
    decrement: float
    replicas: NDArray[np.float64] | None = None


def wins(symbols: NDArray[np.uint8]) -> NDArray[np.float64]:
    """y of symbols: 0, 1, and 1/2 for a tie."""
    y = symbols.astype(np.float64)
    y[symbols == TIE] = 0.5
    return y


def _check_array(name: str, values: NDArray[np.generic], dtype: type[np.generic], shape: tuple[int, ...]) -> None:
    if values.dtype != dtype or values.shape != shape:
        raise ValueError(
            f"expected {name} of {dtype.__name__} and shape {shape}, got {values.dtype} and {values.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()  # not finite where a value is not; of finite ones it may overflow
    if not (np.isfinite(total) or np.isfinite(values).all()):
        raise ValueError(f"expected finite {name}, got NaN or inf")


def _check_option(name: str, value: str | float, words: tuple[str, ...], zero: bool | None = False) -> None:
    """Refuse other words, and numbers that are not > 0, or >= 0 where `zero`; None: any number."""
    if isinstance(value, str) or zero is None:
        if value not in words:
            raise ValueError(f"expected {name} out of {words}{'' if zero is None else ' or a number'}, got {value!r}")
    elif not (0.0 < value < math.inf or (zero and value == 0.0)):
        raise ValueError(f"expected a finite {name} {'>=' if zero else '>'} 0, got {value}")
