"""Estimators: from one repetition's evidence to a parameter. A new one is a function and a line here."""

from collections.abc import Callable

from server.estimators.base import Estimate, Options
from server.estimators.grouped import median_of_means, trimmed_mean
from server.estimators.minimiser import debiased, mle, naive
from server.estimators.notebook import notebook_sgd
from server.estimators.perturbed import objective_perturbation_sgd
from server.estimators.randomized import one_step, rr_map, rr_mle
from server.estimators.sgd import debiased_sgd, sgd
from server.estimators.workspace import Workspace

Estimator = Callable[[Workspace, Options], Estimate]

ESTIMATORS: dict[str, Estimator] = {
    "mle": mle,
    "sgd": sgd,
    "notebook-sgd": notebook_sgd,
    "objective-perturbation-sgd": objective_perturbation_sgd,
    "debiased-sgd": debiased_sgd,
    "debiased": debiased,
    "one-step": one_step,
    "rr-mle": rr_mle,
    "rr-map": rr_map,
    "naive": naive,
    "median-of-means": median_of_means,
    "trimmed-mean": trimmed_mean,
    "debiased-median-of-means": median_of_means,
    "debiased-trimmed-mean": trimmed_mean,
}
