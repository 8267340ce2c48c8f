"""What leaves a labeler's machine, and what it costs, in words for people who know no epsilon."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from client.ledger_view import Entry
from client.policy import Policy
from protocol.counting import counted
from protocol.decimals import canonical
from protocol.mechanisms.randomized_response import randomized_response
from protocol.trust import RANDOMIZED, Trust

SENT = {
    Trust.CENTRAL: "in an exact sum, to a curator who adds noise",
    Trust.DISTRIBUTED: "in a masked sum, with a share of the noise",
    Trust.SHUFFLED: "randomised, through a shuffler",
}
MUCH = Decimal(3)  # above, 19 answers of 20 and more are sent as they were given


@dataclass(frozen=True)
class Said:
    """A sentence about what leaves, under a head; `warns` where it lets out more than a careful labeler would."""

    head: str
    text: str
    warns: bool = False


@dataclass(frozen=True)
class Bounds:
    """The most that one labeler's policy lets be spent; None is no bound.

    `question`: by one answer in one question. `answer`: by one answer over all questions; `person`: by all answers of
    the labeler together.
    """

    question: Decimal | None
    answer: Decimal | None
    person: Decimal | None

    @classmethod
    def of(cls, policy: Policy, labeler: str) -> "Bounds":
        """The bounds of a policy.

        >>> Bounds.of(Policy(label_cap=Decimal(2), max_epsilon=Decimal(1)), "me").question
        Decimal('1')
        """
        answer = _least(policy.label_cap, policy.labeler_cap)
        return cls(_least(policy.level_of(labeler), answer), answer, policy.labeler_cap)


def leaves(policy: Policy, labeler: str, folder: str) -> list[Said]:
    """What leaves and when."""
    bounds, local = Bounds.of(policy, labeler), Trust.LOCAL in policy.trusts
    said = [Said("Before you release", f"Nothing. Your answers stay in {folder}, which only you can read.")]
    said += _randomised(bounds) if local else []
    said += _trusting(policy)
    said += _over_all(bounds) if local else []
    if policy.ties_public:
        said.append(Said("About equal", "A server may see which pairs these are: your policy says it is no secret."))
    elif hides_ties(policy):
        said.append(
            Said(
                "About equal",
                "Hidden as other answers are: a fair coin answers in its place, or it is randomised as a third answer.",
            )
        )
    skipped = (
        "Such pairs are left out, and the server sees that they are missing. If that would tell something about you, "
        "say “about equal” instead."
    )
    said.append(Said("Skipped, or not reached", skipped))
    said.append(Said("No secret", "That you take part, when, and which pairs you were asked about."))
    return said


def hides_ties(policy: Policy) -> bool:
    """Whether nobody learns for certain which pairs a labeler calls about equal."""
    return policy.trusts <= RANDOMIZED and not policy.ties_public


def before_release(policy: Policy, labeler: str) -> list[str]:
    """What a labeler is told once more before answers are released: that they are randomised, and every warning."""
    warned = [said.text for said in leaves(policy, labeler, "") if said.warns]
    alone = policy.trusts == {Trust.LOCAL}
    return ["Each is randomised here, by your own client, before anything is sent."] * alone + warned


def asked(entry: Entry) -> str:
    """What was sent for one task of a ledger."""
    what = counted(entry.labels, "new answer")
    if entry.trust is Trust.CLEAR:
        return f"{what} sent as given: no protection"
    if entry.trust is Trust.LOCAL and entry.epsilon is not None:
        most = f"at most {as_given(entry.epsilon)} (epsilon {_epsilon(entry.epsilon)})"
        return f"{what}, each sent as given with probability {most}"
    how = SENT.get(entry.trust, "sent")
    return f"{what} {how} (epsilon {_epsilon(entry.epsilon)})"


def as_given(epsilon: Decimal) -> str:
    """The probability that randomised response keeps an answer, e^epsilon / (1 + e^epsilon), for people.

    >>> as_given(Decimal(1)), as_given(Decimal("0.1")), as_given(Decimal(10))
    ('0.73', '0.52', '0.99995')
    """
    keeps = float(randomized_response(epsilon).probability(1, 1))
    digits = 2
    while digits < 9 and round(keeps, digits) >= 1 - 0.5 * 10.0**-digits:
        digits += 1
    return f"{keeps:.{digits}f}"


def odds(epsilon: Decimal) -> str:
    """e^epsilon to two digits: by how much what is sent can change the odds between two answers, at most.

    >>> odds(Decimal(1)), odds(Decimal(10))
    ('2.7', '22,000')
    """
    value = float(epsilon.exp())
    if value >= 1e9:
        return "a billion or more"
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 10 else f"{value:.1f}"


def _randomised(bounds: Bounds) -> Iterator[Said]:
    head = "When a server asks"
    start = "Each answer is randomised here, by your own client, and only what comes out is sent."
    if bounds.question is None:
        yield Said(head, start)
        yield Said("No limit", "Your policy sets none for one question: an answer may be sent as good as given.", True)
        return
    level, keeps = bounds.question, as_given(bounds.question)
    yield Said(
        head,
        f"{start} At the most that your policy allows in one question (epsilon {_epsilon(level)}), this answer is sent "
        f"as given with probability {keeps}, and as its opposite with probability {canonical(1 - Decimal(keeps))}. "
        f"Nobody can tell which: whoever held both answers for equally likely gets odds of {odds(level)} to 1 at most.",
    )
    if level > MUCH:
        yield Said("A high level", f"With probability {keeps} an answer is sent as given: that hides little.", True)


def _over_all(bounds: Bounds) -> Iterator[Said]:
    again = "To the same question your client repeats what it sent, at no cost: so nothing is averaged out."
    if bounds.answer is None:
        none = "Your policy sets none over many different questions: together they could tell your answers."
        yield Said("Asked again", again)
        yield Said("No limit", none, True)
        return
    together = "" if bounds.person is None else f", and all of yours together epsilon {_epsilon(bounds.person)}"
    yield Said(
        "Asked again",
        f"{again} Over all questions one answer spends at most epsilon {_epsilon(bounds.answer)}{together}; then your "
        f"client refuses. That is odds of {odds(bounds.answer)} to 1 at most about one answer; many answers together "
        "tell more about you than one.",
    )


def _trusting(policy: Policy) -> Iterator[Said]:
    if Trust.CENTRAL in policy.trusts:
        what = "single answers" if policy.central_rows else "an exact sum over your answers"
        text = f"Your policy trusts one: {what} may leave as given, and noise is added there, not here."
        yield Said("To a curator", text, True)
    if Trust.CLEAR in policy.trusts:
        yield Said("In clear", "Your policy lets answers leave as you gave them: a server that asks learns them.", True)
    if Trust.SHUFFLED in policy.trusts:
        most = "any level" if policy.max_local is None else f"up to epsilon {_epsilon(policy.max_local)}"
        text = f"Your policy trusts one: answers are randomised here, at {most}, and what is claimed beyond that holds"
        yield Said("Through a shuffler", f"{text} as long as nobody learns from it whose they are.", True)
    if Trust.DISTRIBUTED in policy.trusts:
        text = "Your policy trusts some: a sum of answers leaves masked, with a share of the noise, and is protected"
        yield Said("With other labelers", f"{text} as long as enough of those who add the rest are honest.", True)


def _least(*bounds: Decimal | None) -> Decimal | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _epsilon(level: Decimal | None) -> str:
    return "none" if level is None else canonical(level)
