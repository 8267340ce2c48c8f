"""Sound mechanisms at exactly their level, audited again and again: alarms are no more frequent than stated.

Coins are fixed. A rate of 0.1 is exceeded by chance with less than 1e-9: P(B > 19) for B binomial of 40 and 0.1, and
P(B > 164) of 1,000. The table of docs/AUDIT.md is of the same runs, and of those of the registry.
"""

import pytest

from studies.audit.false_alarms import MADE, RUNS, Alarms, as_markdown, of_made

CONFIDENCE, FEW, MOST_OF_FEW, MOST = 0.9, 40, 19, 164


@pytest.mark.parametrize("name", MADE)
def test_a_few_sound_audits(name: str) -> None:
    assert of_made(name, FEW, 256, CONFIDENCE).alarms <= MOST_OF_FEW


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_a_thousand_sound_audits(name: str) -> None:
    found = of_made(name, RUNS, 256, CONFIDENCE)
    assert found.alarms <= MOST and found.limit <= 1 - CONFIDENCE, as_markdown([found])


def test_the_limit_of_a_rate_is_clopper_and_pearson_s() -> None:
    """No alarm of 1,000 runs: 1 - 0.001^(1/1000)."""
    found = of_made("canaries in one run", 1, 64, CONFIDENCE)
    assert isinstance(found, Alarms) and found.limit == pytest.approx(1 - 1e-3 ** (1 / found.runs))
    assert as_markdown([found]).count("\n") == 2
