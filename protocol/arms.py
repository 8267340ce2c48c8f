"""Arms: whom labelers trust, what is done to labels, how the server estimates; and what can go together."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from protocol.decimals import canonical
from protocol.links import LINKS
from protocol.trust import Trust

Option = str | Decimal | bool

# Central mechanisms by name, and whether they clip. The noise of each is the curator's business: `server.mechanisms`.
CENTRAL = {
    "objective-perturbation-paper": False,
    "gaussian-statistic": False,
    "gaussian-statistic-clipped": True,
    "gaussian-statistic-shaped": True,
}

# Randomised response at every level of a study's population: each labeler uses the one it asks for.
MENU = "randomized-response-menu"

# Central mechanisms that protect a whole record: only an estimate, `RELEASED`, leaves their curator.
RECORD = ("objective-perturbation-standard", "approximate-minimiser")
RELEASED = "released"

# Laws of integer noise that labelers add in shares under secure aggregation: see `protocol.noise`.
DISTRIBUTED = ("skellam", "discrete-gaussian", "binomial")

# What an arm's labels may go through, by trust and kind of problem; the first one is the default, but for central arms:
# see `protocol.shaping:default_mechanism`.
MECHANISMS: dict[tuple[Trust | None, str], tuple[str, ...]] = {
    (None, "pairwise"): ("none",),
    (Trust.CLEAR, "pairwise"): ("none",),
    (Trust.LOCAL, "pairwise"): ("randomized-response", MENU),
    (Trust.CENTRAL, "pairwise"): (*CENTRAL, *RECORD),
    (Trust.DISTRIBUTED, "pairwise"): DISTRIBUTED,
    (Trust.SHUFFLED, "pairwise"): ("randomized-response",),
    (None, "choice"): ("none",),
    (Trust.CLEAR, "choice"): ("none",),
    (Trust.LOCAL, "choice"): ("subset-selection", "k-randomized-response", "random-pair"),
    (Trust.SHUFFLED, "choice"): ("k-randomized-response",),
    (Trust.CENTRAL, "choice"): ("objective-perturbation-paper", "gaussian-statistic", "gaussian-statistic-clipped"),
    (Trust.DISTRIBUTED, "choice"): DISTRIBUTED,
}


class Known(NamedTuple):
    """What an estimator of one trust model knows: its options, and the models of preferences it is for."""

    options: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset({"btl"})


# (trust, estimator) -> what it knows. `None` as trust: nobody sends anything.
ESTIMATORS: dict[tuple[Trust | None, str], Known] = {
    (None, "zero"): Known(),
    (Trust.CLEAR, "mle"): Known(frozenset({"ridge", "tau", "interval"})),
    (Trust.CLEAR, "sgd"): Known(frozenset({"step", "averaging"})),
    (Trust.LOCAL, "debiased-sgd"): Known(frozenset({"step", "averaging"})),
    (Trust.LOCAL, "debiased"): Known(frozenset({"ridge", "tau", "interval", "weights"})),
    (Trust.LOCAL, "one-step"): Known(frozenset({"interval"})),
    (Trust.LOCAL, "rr-mle"): Known(frozenset({"interval"})),
    (Trust.CLEAR, "notebook-sgd"): Known(frozenset({"nominal"})),
    (Trust.LOCAL, "notebook-sgd"): Known(),
    (Trust.LOCAL, "rr-map"): Known(frozenset({"tau"})),
    (Trust.LOCAL, "naive"): Known(frozenset({"ridge", "tau"})),
    (Trust.CENTRAL, "mle"): Known(frozenset({"ridge", "tau", "radius", "norm"})),
    (Trust.SHUFFLED, "rr-mle"): Known(frozenset({"honest"})),
    (Trust.SHUFFLED, "rr-map"): Known(frozenset({"tau", "honest"})),
    (Trust.SHUFFLED, "debiased"): Known(frozenset({"ridge", "tau", "honest"})),
    (Trust.SHUFFLED, "one-step"): Known(frozenset({"honest"})),
    (Trust.SHUFFLED, "naive"): Known(frozenset({"ridge", "tau", "honest"})),
    (Trust.DISTRIBUTED, "mle"): Known(frozenset({"ridge", "tau", "radius", "honest", "survivors"})),
    (Trust.CLEAR, "median-of-means"): Known(frozenset({"groups"})),
    (Trust.CLEAR, "objective-perturbation-sgd"): Known(frozenset({"step", "epsilon", "delta"})),
    (Trust.CENTRAL, RELEASED): Known(frozenset({"radius", "ridge", "constants"})),
    (Trust.CLEAR, "trimmed-mean"): Known(frozenset({"groups", "trim"})),
    (Trust.LOCAL, "debiased-median-of-means"): Known(frozenset({"groups"})),
    (Trust.LOCAL, "debiased-trimmed-mean"): Known(frozenset({"groups", "trim"})),
    (Trust.CENTRAL, "median-of-means"): Known(frozenset({"groups", "radius"})),
    (Trust.CENTRAL, "trimmed-mean"): Known(frozenset({"groups", "trim", "radius"})),
}
# Estimators that make no claim though they add noise: for simulated labels only.
UNPROVEN = frozenset({"objective-perturbation-sgd"})
# Estimators that compare groups of rows, and how many groups where an arm does not say.
GROUPED = frozenset({"median-of-means", "trimmed-mean", "debiased-median-of-means", "debiased-trimmed-mean"})
USUAL_GROUPS = 20
MOST_GROUPS = 1 << 12
# Where noise comes in shares: the share of rows that have to stay, and of these the share that keep their noise to
# themselves, where an arm does not say.
USUAL_SURVIVORS, USUAL_HONEST = Decimal(1), Decimal("0.9")


# The same for the top one of K choices.
_TOP = frozenset({"plackett-luce"})
ONLY = {"literal": "k-randomized-response"}  # estimators of one mechanism
CHOICE_ESTIMATORS: dict[tuple[Trust | None, str], Known] = {
    (None, "zero"): Known(models=_TOP),
    (Trust.CLEAR, "mle"): Known(frozenset({"ridge"}), _TOP),
    (Trust.CLEAR, "sgd"): Known(frozenset({"step"}), _TOP),
    (Trust.LOCAL, "debiased-sgd"): Known(frozenset({"step"}), _TOP),
    (Trust.LOCAL, "debiased"): Known(frozenset({"ridge"}), _TOP),
    (Trust.LOCAL, "rr-mle"): Known(frozenset({"ridge"}), _TOP),
    (Trust.LOCAL, "rr-map"): Known(frozenset({"tau"}), _TOP),
    (Trust.LOCAL, "naive"): Known(frozenset({"ridge"}), _TOP),
    (Trust.LOCAL, "literal"): Known(models=_TOP),
    (Trust.CENTRAL, "mle"): Known(frozenset({"ridge", "radius"}), _TOP),
    (Trust.DISTRIBUTED, "mle"): Known(frozenset({"ridge", "radius", "honest", "survivors"}), _TOP),
    (Trust.SHUFFLED, "rr-mle"): Known(frozenset({"ridge", "honest"}), _TOP),
    (Trust.SHUFFLED, "rr-map"): Known(frozenset({"tau", "honest"}), _TOP),
    (Trust.SHUFFLED, "debiased"): Known(frozenset({"ridge", "honest"}), _TOP),
    (Trust.SHUFFLED, "naive"): Known(frozenset({"ridge", "honest"}), _TOP),
}


# The same for pairs under another distribution function than the logistic one.
_LINKED = frozenset(LINKS) - {"btl"}
LINK_ESTIMATORS: dict[tuple[Trust | None, str], Known] = {
    (None, "zero"): Known(models=_LINKED),
    (Trust.CLEAR, "mle"): Known(models=_LINKED),
    (Trust.CLEAR, "matching"): Known(frozenset({"ridge", "tau"}), _LINKED),
    (Trust.CLEAR, "sgd"): Known(frozenset({"step"}), _LINKED),
    (Trust.LOCAL, "debiased-sgd"): Known(frozenset({"step"}), _LINKED),
    (Trust.LOCAL, "matching"): Known(frozenset({"ridge", "tau"}), _LINKED),
    (Trust.LOCAL, "rr-mle"): Known(models=_LINKED),
    (Trust.LOCAL, "rr-map"): Known(frozenset({"tau"}), _LINKED),
    (Trust.CENTRAL, "matching"): Known(frozenset({"ridge", "tau", "radius", "norm"}), _LINKED),
    (Trust.DISTRIBUTED, "matching"): Known(frozenset({"ridge", "tau", "radius", "honest", "survivors"}), _LINKED),
    (Trust.SHUFFLED, "matching"): Known(frozenset({"ridge", "tau", "honest"}), _LINKED),
    (Trust.SHUFFLED, "rr-mle"): Known(frozenset({"honest"}), _LINKED),
    (Trust.SHUFFLED, "rr-map"): Known(frozenset({"tau", "honest"}), _LINKED),
}


def mechanisms(trust: Trust | None, kind: str, model: str) -> tuple[str, ...]:
    """What an arm's labels may go through; a menu of levels, and records, are for the logistic model."""
    names = MECHANISMS[trust, kind]
    return names if model not in _LINKED else tuple(name for name in names if name not in (MENU, *RECORD))


def estimators(trust: Trust | None, kind: str, model: str) -> dict[str, Known]:
    """What can estimate from labels of this trust model in a problem of this kind and model, by name."""
    table = CHOICE_ESTIMATORS if kind == "choice" else ESTIMATORS if model == "btl" else LINK_ESTIMATORS
    return {name: known for (where, name), known in table.items() if where == trust and model in known.models}


class OptionRule(NamedTuple):
    """What values an option takes: `words`, a number > 0 where `number`, and 0 where `zero`."""

    words: frozenset[str] = frozenset()
    number: bool = True
    zero: bool = False


OPTIONS: dict[str, OptionRule] = {
    "averaging": OptionRule(frozenset({"last", "half", "all"}), number=False),
    "constants": OptionRule(frozenset({"paper", "tight"}), number=False),
    "delta": OptionRule(),
    "epsilon": OptionRule(),
    "groups": OptionRule(),
    "honest": OptionRule(),
    "interval": OptionRule(frozenset({"wald", "bootstrap"}), number=False),
    "nominal": OptionRule(),
    "norm": OptionRule(frozenset({"projected", "unprojected"}), number=False),
    "radius": OptionRule(),
    "ridge": OptionRule(frozenset({"tempered"}), zero=True),
    "step": OptionRule(frozenset({"pilot", "oracle"})),
    "survivors": OptionRule(),
    "tau": OptionRule(frozenset({"bound", "marginal"})),
    "trim": OptionRule(),
    "weights": OptionRule(frozenset({"precision", "equal"}), number=False),
}
CHOICE_OPTIONS: dict[str, OptionRule] = {
    "honest": OptionRule(),
    "radius": OptionRule(),
    "ridge": OptionRule(zero=True),
    "step": OPTIONS["step"],
    "survivors": OptionRule(),
    "tau": OptionRule(),
}


def misfit(estimator: str, mechanism: str) -> str | None:
    """Why a mechanism and an estimator do not go together; None where they do."""
    if ONLY.get(estimator, mechanism) != mechanism:
        return f"expected mechanism {ONLY[estimator]!r} for {estimator}, got {mechanism!r}"
    if (estimator == RELEASED) != (mechanism in RECORD):
        return f"expected estimator {RELEASED!r} exactly for mechanisms {RECORD}, got {estimator!r} for {mechanism!r}"
    return None


def conflict(estimator: str, options: Mapping[str, Option], ball: bool) -> str | None:
    """Why options of an arm do not go together, with or without a ball; None where they do."""
    if "step" in options and options.get("averaging", "last") != "last":
        return "expected no step beside averaging, whose steps are its own"
    if "tau" in options and estimator != "rr-map" and options.get("ridge") != "tempered":
        return 'expected ridge = "tempered" beside tau: nothing else uses it'
    if estimator == RELEASED and options.get("ridge", 1) in (0, "tempered"):
        return "expected a ridge > 0 where records are protected, or none for one from public constants"
    if estimator in UNPROVEN and not _claim(options.get("epsilon"), options.get("delta")):
        return "expected epsilon and a delta below 1, which name the noise of an arm that makes no claim"
    if options.get("tau") == "bound" and not ball:
        return 'expected a bound in [problem] for tau = "bound"'
    groups, trim = options.get("groups", USUAL_GROUPS), options.get("trim", Decimal("0.25"))
    if not (isinstance(groups, int | Decimal) and groups == int(groups) and 3 <= groups <= MOST_GROUPS):
        return f"expected a whole number of groups from 3 to {MOST_GROUPS}"
    honest = options.get("honest", Decimal(1))
    if not (isinstance(honest, Decimal) and 0 < honest <= 1):
        return "expected honest, a share of those who answer, above 0 and at most 1"
    survivors = options.get("survivors", USUAL_SURVIVORS)
    counted = honest if "honest" in options else Decimal(0)
    if not (isinstance(survivors, Decimal) and 0 < survivors <= 1 and counted <= survivors):
        return "expected survivors, a share of those who are asked, at most 1 and no less than honest"
    if not (isinstance(trim, Decimal) and 0 < trim < Decimal("0.5")):
        return "expected trim between 0 and 0.5"
    return None


def _claim(epsilon: Option | None, delta: Option | None) -> bool:
    return isinstance(epsilon, Decimal) and isinstance(delta, Decimal) and 0 < epsilon <= 1000 and 0 < delta < 1


@dataclass(frozen=True)
class Arm:
    """One way to an estimate: whom labelers trust, what is done to labels, how the server estimates."""

    trust: Trust | None
    mechanism: str
    estimator: str
    options: tuple[tuple[str, Option], ...] = ()

    @property
    def trust_name(self) -> str:
        """The trust model in lower case; "none" where nothing is sent."""
        return "none" if self.trust is None else self.trust.label

    @property
    def name(self) -> str:
        """What tables and legends call the arm: `trust/mechanism/estimator` and its options."""
        parts = [f"{key}={canonical(value) if isinstance(value, Decimal) else value}" for key, value in self.options]
        return "/".join((self.trust_name, self.mechanism, self.estimator)) + (f"[{', '.join(parts)}]" if parts else "")

    def get(self, name: str) -> Option | None:
        """The value of an option, or None for its default."""
        return dict(self.options).get(name)
