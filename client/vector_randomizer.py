"""The border for numbers: rows of numbers in, randomised rows out. Nothing else under a local claim leaves a client."""

import numpy as np
from numpy.typing import NDArray

from client.draws import Draws
from protocol.messages import Coins
from protocol.numeric.channel import Floats, Kept, NumericChannel, every
from protocol.numeric.spheres import SLACK, lengths

Rows = NDArray[np.int64]


def randomize_vectors(values: Floats, channel: NumericChannel, draws: Draws, rows: Rows) -> Floats:
    """One report for each row of numbers, by the channel's law, independent over rows: (rows, d) -> (rows, d).

    Guarantee: (channel.level, channel.delta)-local differential privacy of each row, given secret coins; neighbours:
    replace the row's numbers. How many coins are read does not depend on the numbers.
    Raises ValueError for anything but finite float64 of shape (rows, dimension), for numbers beyond the channel's bound
    (clip first), for rows that are not in increasing order, and for secret coins with a channel that is not live.
    Messages name bounds, never a number of the holder's.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    if draws.coins != Coins.ADDRESSED and not channel.live:
        raise ValueError(f"expected a live channel for secret coins, got {channel.terms.name}: it is for simulations")
    if values.dtype != np.float64 or rows.ndim != 1 or values.shape != (len(rows), channel.dimension):
        raise ValueError(f"expected float64 ({len(rows)}, {channel.dimension}), got {values.dtype} {values.shape}")
    if len(rows) > 1 and not (rows[1:] > rows[:-1]).all():
        raise ValueError("expected rows in increasing order, each once")
    if not np.isfinite(values).all():
        raise ValueError("expected finite numbers, got NaN or inf: drop or clip them first")
    if not within(values, channel).all():
        raise ValueError(f"expected numbers within {channel.norm} {channel.bound}, got larger ones: clip them first")
    return channel.report(values, draws.vectors(rows, channel.words))


def within(values: Floats, channel: NumericChannel) -> Kept:
    """Which rows are within the channel's bound; Euclidean norms up to a relative 2^-41, as clipping rounds."""
    if channel.norm == "l2":
        kept: Kept = lengths(values) <= channel.bound * (1 + SLACK / 2)
        return kept
    return every(np.abs(values) <= channel.bound)
