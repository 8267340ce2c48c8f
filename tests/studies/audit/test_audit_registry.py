"""Every mechanism of every registry is audited, and keeps its claim.

Exact laws leave nothing to chance, but for the inputs tried. The coins of the sampled ones are fixed, except those of
ledgers and of a client on disk, which are the system's; each is called broken with probability at most 1e-9, all 73 at
most 8e-8 together.
"""

import math
from decimal import Decimal

import pytest

from protocol.arms import CENTRAL as ARM_CENTRAL
from protocol.arms import DISTRIBUTED, MECHANISMS, MENU, RECORD
from protocol.choice_law import CHOICE_LOCAL
from protocol.mechanisms import LOCAL
from protocol.numeric import NUMERIC, VOTES
from protocol.numeric.coordinates import SCALARS
from protocol.record_arms import RECORD_CENTRAL, RECORD_MECHANISMS
from server.mechanisms import CENTRAL
from server.mechanisms.exact_choices import CHOICES
from server.mechanisms.rounds import ROUNDS
from server.mechanisms.selections import SELECTIONS
from studies.audit.run import EXACT, audit
from studies.audit.shuffled import GROUPS
from studies.audit.subjects import SUBJECTS, build

LEVELS = tuple(map(Decimal, ("0.1", "1", "4")))
CONFIDENCE = 1 - 1e-9
DRAWS = 4000
EXACTLY = sorted(
    name
    for name in SUBJECTS
    if name.startswith(("label/", "choice/", "node/"))
    or name in {f"numbers/{one}/1" for one in SCALARS if one != "laplace"} | {"numbers/unary/2", "numbers/duchi-cube/3"}
)
NORMAL = ("numbers/gaussian/", "central/", "distributed/", "records/gaussian", "run/descent")  # whose noise is Gaussian
EXACTLY.remove("node/file")
SHUFFLED = sorted(name for name in SUBJECTS if name.startswith("shuffled/"))
SHARED = sorted(f"distributed/{name}/exact" for name in DISTRIBUTED)
SAMPLED = sorted(set(SUBJECTS) - set(EXACTLY) - set(SHUFFLED) - set(SHARED))


def named(kind: str) -> set[str]:
    return {name.split("/")[1] for name in SUBJECTS if name.startswith(f"{kind}/")}


def test_no_mechanism_of_a_registry_is_left_out() -> None:
    assert set(LOCAL) <= named("label") and set(CHOICE_LOCAL) == named("choice")
    assert {*NUMERIC, *VOTES, *SCALARS} == named("numbers")
    assert set(CENTRAL) == set(ARM_CENTRAL) == named("central")
    assert set(RECORD) == named("objective") and set(SELECTIONS) == named("selection")
    assert set(GROUPS) == named("shuffled") and set(DISTRIBUTED) == named("distributed")
    assert {*ROUNDS, *CHOICES} == named("records") and {*NUMERIC, "sums"} == named("canary")
    assert {"exceedances" if name in ("threshold", "histogram") else name for name in named("records")} == set(
        RECORD_CENTRAL
    )
    known = {
        *LOCAL,
        MENU,
        *CHOICE_LOCAL,
        *CENTRAL,
        *DISTRIBUTED,
        *RECORD,
        "none",
    }  # a menu is one of its levels a label
    assert {name for names in MECHANISMS.values() for name in names} <= known
    assert {name for names in RECORD_MECHANISMS.values() for name in names} <= {
        *(*NUMERIC, *RECORD_CENTRAL, *DISTRIBUTED, "none")
    }


@pytest.mark.parametrize("name", EXACTLY)
def test_exact_laws_keep_their_claim_and_reach_it(name: str) -> None:
    for level in LEVELS if name != "node/tasks" else LEVELS[1:2]:  # a ledger on disk is slow
        found = audit(build(name, level), DRAWS, CONFIDENCE, seed=1)
        assert found.way == EXACT and not found.broken
        assert found.found == pytest.approx(float(level), rel=0.01) and not math.isinf(found.found)


@pytest.mark.parametrize("name", SHUFFLED)
def test_exact_laws_of_groups_keep_their_claim_at_its_delta(name: str) -> None:
    """Of two answers the level is computed exactly, and used up; of more it is a bound."""
    for level in LEVELS:
        found = audit(build(name, level), DRAWS, CONFIDENCE, seed=1)
        assert found.way == EXACT and not found.broken
        reached = float(level) * (0.999 if name == "shuffled/randomized-response" else 0.6)
        assert reached <= found.found <= float(level) * (1 + 1e-9)


@pytest.mark.parametrize("name", SHARED)
def test_exact_laws_of_shares_keep_their_claim_and_nearly_reach_it(name: str) -> None:
    """Rounded noise is a little more than is needed, the coarser the grid the more."""
    found = audit(build(name, Decimal(1)), DRAWS, CONFIDENCE, seed=1)
    assert found.way == EXACT and not found.broken
    assert 0.93 <= found.found <= 1


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_bounds_stay_below_the_claim(name: str) -> None:
    found = audit(build(name, Decimal(1)), DRAWS, CONFIDENCE, seed=1)
    assert not found.broken, found
    assert max(found.found, found.normal or 0.0) <= float(found.claim.epsilon) < found.detects
    assert (found.normal is not None) == name.startswith(NORMAL)
    assert found.detects < math.inf or name in ("canary/sums", "canary/gaussian")  # a delta takes many canaries


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_every_subject_is_offered_at_every_level(level: Decimal) -> None:
    assert {build(name, level).name for name in SUBJECTS} == set(SUBJECTS)
