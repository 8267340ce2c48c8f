"""Algorithms of rounds, by the name of an estimator: what is asked of holders of records, and what is made of it."""

from collections.abc import Callable

from server.algorithms.adaptive import any_descent
from server.algorithms.descent import algorithm_2_convex, algorithm_2_strong
from server.algorithms.mean import algorithm_1, algorithm_3, mean, median_of_means
from server.algorithms.recentred import recentred_mean
from server.algorithms.sparse import algorithm_5, hard_thresholding
from server.algorithms.sparse_local import two_phase, votes
from server.algorithms.steps import Room, Steps
from server.algorithms.thresholds_private import looking

ALGORITHMS: dict[str, Callable[[Room], Steps]] = {
    "mean": looking(mean),
    "recentred-mean": recentred_mean,
    "algorithm-1": algorithm_1,
    "algorithm-3": algorithm_3,
    "median-of-means": median_of_means,
    "descent": looking(any_descent),
    "algorithm-2-convex": algorithm_2_convex,
    "algorithm-2-strong": algorithm_2_strong,
    "hard-thresholding": hard_thresholding,
    "algorithm-5": algorithm_5,
    "two-phase": two_phase,
    "votes": votes,
}
