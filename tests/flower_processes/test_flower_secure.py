"""Sessions between real processes: sums that members open over Flower's engines are those of one process."""

from collections.abc import Callable

import pytest

STUDY = """
study = { name = "shares", seed = 7, repetitions = 2 }
problem = { kind = "pairwise", dimension = 3, features = "gaussian", theta = [0.5, 0.0, -0.5], bound = 1 }
grid = { n = [120], epsilon = [1.0, 4.0], delta = [1e-5] }
arm = [
  { trust = "central", mechanism = "gaussian-statistic-clipped", estimator = "mle" },
  { trust = "distributed", mechanism = "skellam", estimator = "mle", honest = 0.8 },
  { trust = "distributed", mechanism = "binomial", estimator = "mle", honest = 1.0 },
]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("runtime", "clients"), [("deployment", 3), ("simulation", 5)])
def test_members_in_processes_of_their_own_open_the_same_sums(
    expect_bits: Callable[[str, str, int], None], runtime: str, clients: int
) -> None:
    expect_bits(STUDY, runtime, clients)
