"""pfl's simulation of users with one label each: they return its randomised answer, and all answers are added."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from protocol.coins import Address, Stream, words
from studies.bench.measure import timed

DIMENSION = 4
KEEP = 0.7310585786300049  # the probability of the label in randomised response at epsilon = 1
ANSWER = "answer"


class _Answering:
    """What pfl asks of an algorithm in a simulation: a user's statistics, here their features times their answer."""

    def __init__(self) -> None:
        self._statistics = import_module("pfl.stats").MappedVectorStatistics
        self._metrics = import_module("pfl.metrics").Metrics

    def simulate_one_user(self, model: Any, user: Any, context: Any) -> tuple[Any, Any]:
        features, label, coin = user.raw_data
        answer = label[0] ^ (coin[0] >= KEEP)
        return self._statistics({ANSWER: answer * features[0]}, weight=1.0), self._metrics()


def by_pfl(n: int) -> Callable[[], float]:
    """The seconds of one central iteration over a cohort of all users, with arrays of numpy, in one process."""
    context = import_module("pfl.context").CentralContext
    training = import_module("pfl.common_types").Population.TRAIN
    numbers = (words(Address(7, Stream.PAIRS, n, 0), 0, n * (DIMENSION + 2)) / 2.0**64).reshape(n, -1)
    users = {str(at): (one[None, :DIMENSION], one[-2:-1] > 0.5, one[-1:]) for at, one in enumerate(numbers)}
    sampler = import_module("pfl.data.sampling").MinimizeReuseUserSampler(list(users))
    people = import_module("pfl.data").FederatedDataset.from_slices(users, sampler)
    backend = import_module("pfl.aggregate.simulate").SimulatedBackend(people, people)
    algorithm = _Answering()

    def iteration() -> None:
        asked = context(0, False, n, training, None, None)
        statistics, _ = backend.gather_results(None, algorithm, central_context=asked)
        assert statistics.weight == n and statistics[ANSWER].shape == (DIMENSION,), "a user is missing"

    return lambda: timed(iteration, time.perf_counter)
