"""Lies of many kinds, each found within a minute; what they are made from passes in test_audit_registry.py.

Exact ones leave nothing to chance; sampled ones are missed with probability below 1e-6. Seeds are fixed.
"""

from decimal import Decimal

import pytest

from protocol.failure import RunFailed
from studies.audit import central
from studies.audit.central import RECORDS
from studies.audit.given import GivenRecords
from studies.audit.planted import ARMS, BUGS, caught, sensitivity_of_one_coordinate

LIMIT = 60.0  # seconds
AT_ONCE = ("a threshold is rounded down", "rows with ties are not sent", "one coin for all rows")  # with every change


@pytest.mark.parametrize("bug", [bug if bug in AT_ONCE else pytest.param(bug, marks=pytest.mark.slow) for bug in BUGS])
def test_the_lie_is_found_within_a_minute(bug: str) -> None:
    found, seconds = caught(bug)
    assert found.broken, (found.found, found.detects, found.event)
    assert seconds < LIMIT


def test_a_scale_that_follows_labels_is_no_subject() -> None:
    """What is public of a release may not differ between neighbours, however little noise would hide of it."""
    one = Decimal(1)
    released = {name: central.released_by(ARMS["gaussian"], one, GivenRecords(rows)) for name, rows in RECORDS.items()}
    first, *others = released
    planted, claim = sensitivity_of_one_coordinate(released[first]), central.Claim(one, central.DELTA, "record")
    with pytest.raises(RunFailed, match="BROKEN"):
        central.subject_of("planted", claim, {**released, first: planted}, ((first, others[0]),))
