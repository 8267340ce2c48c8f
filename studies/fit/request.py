"""What a user asks of `halftruth fit`."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from protocol.arms import DISTRIBUTED, MECHANISMS, Arm, Option
from protocol.messages import Ties
from protocol.privacy import Unit
from protocol.trust import Trust

# The way of each trust model: its mechanism, and the estimators that can follow, the default first.
WAYS: dict[Trust, tuple[str, tuple[str, ...]]] = {
    Trust.CLEAR: ("none", ("mle",)),
    Trust.LOCAL: ("randomized-response", ("rr-mle", "rr-map", "debiased", "debiased-sgd", "one-step")),
    Trust.CENTRAL: ("gaussian-statistic", ("mle",)),
    Trust.DISTRIBUTED: (DISTRIBUTED[0], ("mle",)),
    Trust.SHUFFLED: ("randomized-response", ("rr-mle", "rr-map", "debiased", "one-step")),
}
SLACK = (Trust.CENTRAL, Trust.DISTRIBUTED, Trust.SHUFFLED)  # guarantees with a delta
OWN = tuple(trust for trust in WAYS if trust is not Trust.SHUFFLED)  # where one holder has all of a file
OF_THREE = ("debiased", "debiased-sgd")  # that can follow where ties are randomised: they need a report's mean alone
# The same where a ranking's top choice is asked.
CHOICE_WAYS: dict[Trust, tuple[str, tuple[str, ...]]] = {
    Trust.CLEAR: ("none", ("mle",)),
    Trust.LOCAL: ("k-randomized-response", ("rr-mle", "rr-map", "debiased", "debiased-sgd")),
    Trust.CENTRAL: ("gaussian-statistic", ("mle",)),
    Trust.DISTRIBUTED: (DISTRIBUTED[0], ("mle",)),
    Trust.SHUFFLED: ("k-randomized-response", ("rr-mle", "rr-map", "debiased")),
}
CHOICE_MECHANISMS = MECHANISMS[Trust.LOCAL, "choice"]
ALL_MECHANISMS = (*CHOICE_MECHANISMS, *DISTRIBUTED)  # where there is a choice
AUTO, BALL, NONE = "auto", "ball", "none"  # bounds that are not numbers; AUTO is NONE in clear, BALL under a claim


@dataclass(frozen=True)
class Request:
    """One fit: `epsilon` None makes no claim; `bound` is a number, AUTO, BALL or NONE; `seed` None: the system's coins.

    `public` says that the labels are no secret, `ties_public` which of them are ties. With the unit LABELER
    `cap` labels of each labeler count. Ledgers live in the folder `state`.
    `kind` is that of the problem, "choice" where rows hold more than two items. Of a ranking `comparisons` labels are
    asked, so that it spends so many times epsilon; 0 where labels are no part of a ranking. `options` are the
    estimator's. `mechanism` is what a ranking's top choice goes through, or the law of noise in shares; empty: the
    usual one. Of noise in shares: `survivors`, the share of the rows that have to stay, and `honest`, the share of them
    whose noise nobody else knows; None as in a study.
    """

    path: Path
    trust: Trust
    epsilon: Decimal | None
    delta: Decimal | None
    bound: Decimal | str
    estimator: str
    state: Path
    public: bool
    seed: int | None
    ties: Ties
    ties_public: bool = False
    unit: Unit = Unit.LABEL
    cap: int = 0
    kind: str = "pairwise"
    comparisons: int = 0
    options: tuple[tuple[str, Option], ...] = ()
    mechanism: str = ""
    survivors: Decimal | None = None
    honest: Decimal | None = None

    @property
    def asked(self) -> Arm:
        """The arm whose task is sent, the same for every estimator: what follows a report costs nothing."""
        mechanism, estimators = (WAYS if self.kind == "pairwise" else CHOICE_WAYS)[self.trust]
        counted = {"honest": self.honest, "survivors": self.survivors}
        given = tuple((name, share) for name, share in counted.items() if share is not None)
        return Arm(self.trust, self.mechanism or mechanism, estimators[0], given)

    @property
    def budgeted(self) -> bool:
        """Whether labels pay, and answers are kept in the state folder.

        Clear labels make no claim, and addressed coins give the same answers by themselves.
        """
        return self.trust is not Trust.CLEAR and self.seed is None
