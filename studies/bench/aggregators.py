"""Figures of aggregators: 1,000 reports of 10,000 coordinates, beside plain numpy and what Flower's strategies do."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.coins import Address, Stream, words
from protocol.laws import Law
from server.aggregators import AGGREGATORS
from server.aggregators.base import Options
from studies.bench.figure import Prepared, Side, installed

Floats = NDArray[np.float64]
SEED = 11
HEAVY = Law.parse("student-t(3)")
FLOWER = "flwr.serverapp.strategy"


def _reports(small: bool) -> Floats:
    count, dimension = (60, 200) if small else (1_000, 10_000)
    coins = words(Address(SEED, Stream.RECORDS), 0, count * dimension * HEAVY.words)
    return HEAVY.sample(coins.reshape(count, dimension, HEAVY.words))


def _figure(
    name: str, options: Options, reports: Floats, plain: Callable[[Floats], Floats], flower: Sequence[Side] = ()
) -> Prepared:
    """An aggregator beside numpy's way and Flower's; the limit is to read all reports once."""
    function = AGGREGATORS[name].function

    def agree() -> None:
        found = function(reports, options)
        for run in (lambda: plain(reports), *(side.run for side in flower)):
            np.testing.assert_allclose(np.asarray(run()), found, rtol=1e-9, atol=1e-9)

    peers = (Side("plain numpy", lambda: plain(reports)), *flower)
    limit = Side("reading once", lambda: reports.max())
    return Prepared(Side("halftruth", lambda: function(reports, options)), peers, 1.0, "s", agree, limit)


def coordinate_median(small: bool) -> Prepared:
    """The median of each coordinate, beside what FedMedian computes."""
    reports = _reports(small)
    layers = list(reports)
    fed = Side("Flower FedMedian", lambda: np.median(np.stack(layers), axis=0))
    return _figure("coordinate-median", Options(), reports, lambda rows: np.median(rows, axis=0), [fed])


def median_of_means(small: bool) -> Prepared:
    """Medians of the means of twenty groups."""

    def plain(rows: Floats) -> Floats:
        means = [rows[first : first + len(rows) // 20].mean(axis=0) for first in range(0, len(rows), len(rows) // 20)]
        return np.asarray(np.median(means, axis=0))

    return _figure("median-of-means", Options(groups=20), _reports(small), plain)


def trimmed_mean(small: bool) -> Prepared:
    """Means without a tenth at each end, beside what FedTrimmedAvg computes."""
    reports = _reports(small)
    trim, layers = len(reports) // 10, list(reports)

    def plain(rows: Floats) -> Floats:
        return np.asarray(np.sort(rows, axis=0)[trim : len(rows) - trim].mean(axis=0))

    flower = []
    if installed("flwr"):
        trim_mean = import_module(f"{FLOWER}.fedtrimmedavg").trim_mean
        flower.append(Side("Flower FedTrimmedAvg", lambda: trim_mean(np.stack(layers), 0.1)))
    return _figure("trimmed-mean", Options(trim=trim), reports, plain, flower)


def geometric_median(small: bool) -> Prepared:
    """Weiszfeld's iteration from the coordinate median to the same tolerance."""

    def plain(rows: Floats) -> Floats:
        point = np.median(rows, axis=0)
        scale = np.median(np.linalg.norm(rows - point, axis=1))
        for _ in range(1_000):
            weights = scale / np.maximum(np.linalg.norm(rows - point, axis=1), 1e-8 * scale)
            moved = weights @ rows / weights.sum()
            step, point = np.linalg.norm(moved - point), moved
            if step <= 1e-10 * scale:
                break
        return np.asarray(point)

    return _figure("geometric-median", Options(), _reports(small), plain)


def krum(small: bool) -> Prepared:
    """Krum's choice, beside what Flower's Krum computes; the limit is a matrix product."""
    reports, function = _reports(small), AGGREGATORS["krum"].function
    faulty = len(reports) // 10
    peers = [Side("numpy by products", lambda: _by_products(reports, faulty))]
    if installed("flwr"):
        peers.append(Side("Flower Krum", partial(_flower_krum, _messages(reports), faulty)))

    def agree() -> None:
        few = reports[:60]
        np.testing.assert_array_equal(function(few, Options(faulty=6)), _by_loops(few, 6))
        for side in peers:
            np.testing.assert_array_equal(np.asarray(side.run()), function(reports, Options(faulty=faulty)))

    ours = Side("halftruth", lambda: function(reports, Options(faulty=faulty)))
    return Prepared(ours, tuple(peers), 1.0, "s", agree, Side("a matrix product", lambda: reports @ reports.T))


def _by_loops(rows: Floats, faulty: int) -> Floats:
    nearest = len(rows) - faulty - 2
    scores = [np.sort(((rows - row) ** 2).sum(axis=1))[1 : nearest + 1].sum() for row in rows]
    return np.asarray(rows[int(np.argmin(scores))])


def _by_products(rows: Floats, faulty: int) -> Floats:
    squares = (rows * rows).sum(axis=1)
    found = np.sort(squares[:, None] + squares - 2 * (rows @ rows.T), axis=1)
    return np.asarray(rows[int(np.argmin(found[:, 1 : len(rows) - faulty - 1].sum(axis=1)))])


def _messages(reports: Floats) -> list[Any]:
    app = import_module("flwr.app")
    return [app.RecordDict({"arrays": app.ArrayRecord([report])}) for report in reports]


def _flower_krum(messages: list[Any], faulty: int) -> Floats:
    (chosen,) = import_module(f"{FLOWER}.multikrum").select_multikrum(messages, faulty, 1)
    found: Floats = chosen["arrays"].to_numpy_ndarrays()[0]
    return found
