"""Top choices and Thurstone's model over real processes: the results of in-process, apart from where they were made."""

from collections.abc import Callable

import pytest

CHOICE_ARMS = "".join(
    f"[[arm]]\ntrust = 'local'\nmechanism = '{mechanism}'\nestimator = '{estimator}'\n"
    for mechanism in ("k-randomized-response", "subset-selection", "random-pair")
    for estimator in ("debiased", "debiased-sgd", "rr-mle")
)
CHOICES = f"""
study = {{ name = "choices", seed = 11, repetitions = 2 }}
problem = {{ kind = "choice", choices = 5, dimension = 3, features = "sphere", theta = [1.0, 0.0, -1.0], bound = 3.0 }}
grid = {{ n = [150], epsilon = [0.5], delta = [1e-5] }}
{CHOICE_ARMS}
[[arm]]
trust = "clear"
estimator = "mle"
[[arm]]
trust = "central"
mechanism = "gaussian-statistic-clipped"
estimator = "mle"
"""
LINK_ARMS = "".join(
    f"[[arm]]\ntrust = '{trust}'\nestimator = '{estimator}'\n"
    for trust, estimator in (
        ("clear", "mle"),
        ("local", "matching"),
        ("local", "debiased-sgd"),
        ("local", "rr-mle"),
        ("central", "matching"),
    )
)
THURSTONE = f"""
study = {{ name = "thurstone", seed = 11, repetitions = 2 }}
problem = {{ kind = "pairwise", model = "thurstone", dimension = 3, features = "sphere", theta = [1, 0, 0], bound = 3 }}
grid = {{ n = [150], epsilon = [0.5], delta = [1e-5] }}
{LINK_ARMS}
"""


@pytest.mark.slow
@pytest.mark.parametrize("study", [CHOICES, THURSTONE], ids=["choices", "thurstone"])
@pytest.mark.parametrize(("runtime", "clients"), [("simulation", 3), ("deployment", 2)])
def test_the_same_bits(expect_bits: Callable[[str, str, int], None], study: str, runtime: str, clients: int) -> None:
    expect_bits(study, runtime, clients)
