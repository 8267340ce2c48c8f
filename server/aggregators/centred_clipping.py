"""Centred clipping: from a start, a few steps towards the reports, in which nobody pulls further than the radius."""

import numpy as np

from server.aggregators.arithmetic import distances, mean_rows, median_rows
from server.aggregators.base import LARGEST, Array, Options, Sensitivity, check_reports, check_setting, minority


def centred_clipping(reports: Array, options: Options) -> Array:
    """v <- v + (1/n) sum_i (x_i - v) min(1, radius / ||x_i - v||), options.steps times from options.start, shape (d,).

    Without a start it is the coordinate median, without a radius the median distance to the start; what rests on
    either has no sensitivity worth using.
    Raises ValueError for reports that are not finite float64 of shape (n, d), and for a start of another length.
    Source: Karimireddy, He, Jaggi 2021, section 4.
    """
    check_reports(reports)
    point = median_rows(reports) if options.start is None else _start(options.start, reports.shape[1])
    radius = options.radius
    if radius is None:
        radius = float(np.median(distances(reports, point)))
        if radius == 0.0:
            return point  # half of the reports are there
    for _ in range(options.steps):
        pulled, size = reports - point, distances(reports, point)
        point = point + mean_rows(pulled * (radius / np.maximum(size, radius))[:, None])
    return point + 0.0


def sensitivity(count: int, dimension: int, threshold: float, options: Options) -> Sensitivity:
    """2 L radius / n in l2 norm over L steps, from a start that is public or already released; tight for one step.

    A step is non-expansive in v, so that what one report added in earlier steps never grows; nothing makes it shrink.
    Sound for reports of any size; threshold only bounds what rounding adds.
    Raises ValueError without a start or a radius, and for a setting out of range.
    Source: derived, see docs/HEAVY_TAILS.md.
    """
    check_setting(count, dimension, threshold)
    if options.start is None or options.radius is None:
        raise ValueError(
            "expected a radius and a start that are public or already released, such as the last round's estimate, "
            "got none: the coordinate median as a start has a sensitivity of its own"
        )
    largest = threshold + float(np.abs(_start(options.start, dimension)).max()) + options.steps * options.radius
    rounding = options.steps * dimension * largest * 2.0**-48
    bound = 2.0 * options.steps * options.radius / count + rounding
    return Sensitivity(bound, bound)


def breakdown(count: int, options: Options) -> float:
    """floor((n - 1) / 2) / n; and from a public start never further than steps radius, whoever lies."""
    return minority(count)


def _start(start: tuple[float, ...], dimension: int) -> Array:
    point = np.array(start, dtype=np.float64)
    if len(point) != dimension or not (np.abs(point) <= LARGEST).all():
        raise ValueError(f"expected a start of {dimension} finite numbers, got {len(point)}")
    return point
