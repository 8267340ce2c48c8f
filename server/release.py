"""The curator's release: a sum is noised, or a choice is made, once, and is on disk before anyone sees the result.

A restart replays what was committed: fresh noise on the same sum would let a reader average the noise away.
Entropy for the curator's noise is created here and nowhere else.
"""

import math
import operator
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from server.choice_record import Choice, ChoiceRequest
from server.mechanisms.discrete_gaussian import calibrate, calibrate_run, sample_discrete_gaussian, scaled_stddev
from server.release_file import LedgerError, failing_closed, find, insert, open_ledger, read_identity, transaction
from server.release_record import Release, ReleaseRequest, SimulatedRelease

Integers = Sequence[int] | NDArray[np.int64]
E = TypeVar("E", Release, Choice)
IDENTITY_BYTES = 16


class ReleaseLedger:
    """One release or choice for each (task, repetition), in a SQLite file; None: in memory, while the process lives.

    Belongs to the process and thread that opened it; any number of processes may open one file. A context manager.
    `identity`: random bytes that tell this ledger from every other, also from one that took its place.
    Raises LedgerError for a file that is damaged, newer, not writable, or not a curator's ledger.
    """

    def __init__(self, path: Path | None) -> None:
        self._process = os.getpid()
        self._database = open_ledger(path, secrets.token_bytes(IDENTITY_BYTES))
        self.identity = read_identity(self._database)

    def release(self, request: ReleaseRequest, exact_sum: Integers) -> Release:
        """Commit exact_sum plus noise, then return it; or return what this (task, repetition) released before.

        Noise is an independent discrete Gaussian in every coordinate, its scale set by `_stddev` for the request's
        mechanism and claim. A replay ignores the sum it is given, and carries its own list of accepted reports.
        The exact sum, in units of 2^exponent, is never written.

        Guarantee: (request.epsilon, request.delta) over all calls of all processes that share the file, for a unit that
        moves the sum by at most sqrt(sensitivity_squared); neighbours: replace one label, or all of one labeler.
        Raises LedgerError where the ledger fails or the (task, repetition) was released with other parameters, and
        TypeError or ValueError for a sum or a claim that can't be noised. Nothing is released then.
        """
        total = _integers(exact_sum)
        release = self._committed(request, lambda: _draw(request, total))
        if len(total) != len(release.values):
            raise LedgerError("expected the parameters this task and repetition were released with, got others")
        return release

    def choose(self, request: ChoiceRequest, scores: Integers) -> Choice:
        """Commit places chosen among scores, and noisy values of them, then return them; or what was chosen before.

        Places and noise are drawn by the request's `chooser`. A replay ignores the scores it is given, and carries its
        own list of accepted reports. Scores, in units of 2^exponent, are never written.

        Guarantee: (request.epsilon, request.delta) over the request's rounds and all calls of all processes that share
        the file, for a unit that moves each score by at most `moved`; neighbours: replace one record, or all of a
        holder. Raises as `release`, also for another number of scores.
        """
        exact = _integers(scores)
        if len(exact) != request.width:
            raise ValueError(f"expected {request.width} scores, got {len(exact)}")
        return self._committed(request, lambda: Choice(request, *request.chooser.choose(exact, secrets.randbits)))

    def _committed(self, request: ReleaseRequest | ChoiceRequest, draw: Callable[[], E]) -> E:
        """The entry under the request's key: the one on disk, else a new one, which is on disk when this returns."""
        if os.getpid() != self._process:
            raise LedgerError("expected the process that opened the ledger, got a fork of it: open the ledger again")
        with failing_closed(), transaction(self._database):
            entry = find(self._database, request.task, request.repetition)
            if entry is None:
                entry = draw()
                insert(self._database, entry)
        if replace(request, accepted=entry.request.accepted, count=entry.request.count) != entry.request:
            raise LedgerError("expected the parameters this task and repetition were released with, got others")
        return cast(E, entry)

    def close(self) -> None:
        """Close the ledger; what a file holds stays."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def simulated_release(
    request: ReleaseRequest, exact_sum: Integers, normals: Sequence[float] | NDArray[np.float64]
) -> SimulatedRelease:
    """Add floating-point Gaussian noise made of given standard normal numbers, one a coordinate.

    values = exact_sum + noise_multiplier * sensitivity * normals, in units of 2^exponent. There is no ledger for it:
    the same address gives the same noise, and no file takes a float.

    Guarantee: none. Raises TypeError and ValueError for a sum or normals of the wrong kind, length or value.
    """
    total = _integers(exact_sum)
    coins = [float(coin) for coin in normals]
    if len(coins) != len(total) or not all(map(math.isfinite, coins)):
        raise ValueError(f"expected {len(total)} finite normal numbers, got {len(coins)}, or some not finite")
    stddev = request.noise_multiplier * math.sqrt(request.sensitivity_squared)
    return SimulatedRelease(request, tuple(s + stddev * z for s, z in zip(total, coins, strict=True)), stddev)


def _draw(request: ReleaseRequest, total: tuple[int, ...]) -> Release:
    stddev = _stddev(request, len(total))
    noise = sample_discrete_gaussian(stddev**2, len(total), secrets.randbits)
    return Release(request, tuple(s + z for s, z in zip(total, noise, strict=True)), stddev)


def _stddev(request: ReleaseRequest, dimension: int) -> int:
    """The scale of the noise on a sum, in units of its grid: alone, or as one of `rounds` that share the claim."""
    epsilon, delta, multiplier = request.epsilon, request.delta, request.noise_multiplier
    if request.rounds == 1:
        return calibrate(epsilon, delta, request.sensitivity_squared, dimension, multiplier)
    least = calibrate_run(epsilon, delta, dimension, multiplier, request.rounds)
    return scaled_stddev(least, request.sensitivity_squared)


def _integers(exact_sum: Integers) -> tuple[int, ...]:
    """The sum as exact integers; refuses floats, and shows no value in the error."""
    try:
        total = tuple(operator.index(value) for value in exact_sum)
    except TypeError:
        raise TypeError("expected the sum as integers in units of the grid, got another type") from None
    if not total:
        raise ValueError("expected a sum of at least one coordinate, got none")
    return total
