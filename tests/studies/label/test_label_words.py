"""What a labeler is told is what their policy allows, and every way past randomisation is a warning."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.ledger_view import Entry
from client.policy import Policy
from protocol.messages import Coins
from protocol.privacy import Unit
from protocol.trust import Trust
from studies.label.words import Bounds, as_given, asked, before_release, hides_ties, leaves, odds

CARE = {"label_cap": 2, "max_epsilon": 1}


def told(**policy: object) -> str:
    return " ".join(said.text for said in leaves(Policy.parse({**CARE, **policy}), "me", "/mine"))


def warned(**policy: object) -> list[str]:
    return [said.head for said in leaves(Policy.parse({**CARE, **policy}), "me", "/mine") if said.warns]


@pytest.mark.parametrize(
    ("policy", "question", "answer"),
    [
        ({}, 1, 2),
        ({"max_epsilon": 3}, 2, 2),
        ({"labeler_cap": 0.5}, 0.5, 0.5),
        ({"levels": {"me": 0.25, "you": 0.1}}, 0.25, 2),
        ({"label_cap": "unlimited"}, 1, None),
        ({"label_cap": "unlimited", "max_epsilon": "unlimited"}, None, None),
    ],
)
def test_bounds_are_the_least_of_all_that_apply(
    policy: dict[str, object], question: float | None, answer: float | None
) -> None:
    bounds = Bounds.of(Policy.parse({**CARE, **policy}), "me")
    found = [None if bound is None else float(bound) for bound in (bounds.question, bounds.answer)]
    assert found == [question, answer]


def test_a_careful_policy_has_no_warning() -> None:
    said = told()
    assert not warned() and before_release(Policy.parse(CARE), "me") == [
        "Each is randomised here, by your own client, before anything is sent."
    ]
    for words in ("/mine", "epsilon 1)", "probability 0.73", "probability 0.27", "2.7 to 1", "epsilon 2", "7.4 to 1"):
        assert words in said


@pytest.mark.parametrize(
    ("policy", "heads"),
    [
        ({"trust": ["local", "clear"]}, ["In clear"]),
        ({"trust": ["central"]}, ["To a curator"]),
        ({"trust": ["central"], "central_rows": True}, ["To a curator"]),
        ({"trust": ["shuffled"]}, ["Through a shuffler"]),
        ({"trust": ["distributed"]}, ["With other labelers"]),
        ({"label_cap": "unlimited"}, ["No limit"]),
        ({"label_cap": "unlimited", "max_epsilon": "unlimited"}, ["No limit", "No limit"]),
        ({"label_cap": 5, "max_epsilon": 5}, ["A high level"]),
    ],
)
def test_what_lets_out_more_is_a_warning_and_told_again_before_a_release(
    policy: dict[str, object], heads: list[str]
) -> None:
    assert warned(**policy) == heads
    again = before_release(Policy.parse({**CARE, **policy}), "me")
    assert len(again) == len(heads) + (policy.get("trust") is None)


def test_every_trust_but_a_local_one_is_told_of() -> None:
    for trust in Trust:
        if trust is not Trust.LOCAL:
            assert warned(trust=["local", trust.label])


def test_ties_are_called_hidden_only_where_they_are() -> None:
    for policy, hidden in (({}, True), ({"ties_public": True}, False), ({"trust": ["local", "clear"]}, False)):
        assert ("a fair coin answers" in told(**policy)) is hidden is hides_ties(Policy.parse({**CARE, **policy}))
    assert "no secret" in told(ties_public=True)


@given(st.decimals("0.001", "30", places=3))
def test_probabilities_are_those_of_the_channel_and_never_one(level: Decimal) -> None:
    shown, keeps = as_given(level), 1 / (1 + math.exp(-float(level)))
    assert 0.5 <= float(shown) < 1 or float(level) > 20
    assert float(shown) == pytest.approx(keeps, abs=0.51 * 10.0 ** -len(shown.partition(".")[2]))


def test_odds_grow_with_the_level() -> None:
    assert [odds(Decimal(level)) for level in (0, 1, 5, 60)] == ["1.0", "2.7", "150", "a billion or more"]


def test_a_ledgers_tasks_in_words() -> None:
    entry = Entry(b"", Trust.LOCAL, Unit.LABEL, "rr", Decimal(1), None, Decimal(1), 1, 1, Coins.OS)
    assert asked(entry) == "1 new answer, each sent as given with probability at most 0.73 (epsilon 1)"
    clear = Entry(b"", Trust.CLEAR, Unit.LABEL, "none", None, None, None, 7, 1, Coins.OS)
    assert asked(clear) == "7 new answers sent as given: no protection"
    central = Entry(b"", Trust.CENTRAL, Unit.LABEL, "sum", Decimal(1), None, None, 7, 1, Coins.OS)
    assert "exact sum" in asked(central) and "epsilon 1" in asked(central)
