"""The subjects that are audited, by name: every mechanism of every registry, and whole clients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from protocol.arms import DISTRIBUTED, MECHANISMS, RECORD
from protocol.choice_law import CHOICE_LOCAL
from protocol.mechanisms import LOCAL
from protocol.messages import Ties
from protocol.numeric import NUMERIC, VOTES
from protocol.strict import StudyError
from protocol.trust import Trust
from server.mechanisms import CENTRAL
from server.mechanisms.exact_choices import HISTOGRAM, THRESHOLD
from server.mechanisms.rounds import ROUNDS
from server.mechanisms.selections import SELECTIONS
from studies.audit.subject import Subject

Build = Callable[[Decimal], Subject]
SHUFFLED = tuple(MECHANISMS[Trust.SHUFFLED, kind][0] for kind in ("pairwise", "choice"))
ONE = Decimal(1)
DIMENSIONS = {"duchi-cube": (3, 2), "unary": (2,), "gaussian": (2,), "duchi-ball": (3,)}  # of numbers; others (1, 3)
_ARMS: dict[str, dict[str, object]] = {
    **{name: {"mechanism": name, "estimator": "mean", "threshold": ONE} for name in ROUNDS},
    THRESHOLD: {"mechanism": "gaussian", "estimator": "mean", "threshold": "private"},
    HISTOGRAM: {"mechanism": "gaussian", "estimator": "mean", "threshold": "histogram"},
    **{
        name: {
            "mechanism": name,
            "estimator": "hard-thresholding",
            "sparsity": ONE,
            "rounds": ONE,
            "step": ONE,
            "threshold": ONE,
        }
        for name in SELECTIONS
    },
}


@dataclass(frozen=True)
class NotOffered(Exception):
    """The program itself refuses a mechanism at this claim."""

    why: str


def build(name: str, epsilon: Decimal) -> Subject:
    """The subject of a name out of `SUBJECTS` at a level. Raises NotOffered where the program refuses that claim."""
    try:
        return replace(SUBJECTS[name](epsilon), asked=epsilon)
    except (StudyError, ValueError) as error:
        raise NotOffered(str(error)) from None


def _registered() -> Mapping[str, Build]:
    found: dict[str, Build] = {}
    for name in LOCAL:
        found[f"label/{name}"] = partial(_label, name, Ties.NONE)
    found["label/randomized-response+ties"] = partial(_label, "randomized-response", Ties.COIN)
    found["label/randomized-response+randomized-ties"] = partial(_label, "randomized-response", Ties.RANDOMIZED)
    for name in CHOICE_LOCAL:
        found[f"choice/{name}"] = partial(_choice, name)
    for name in SHUFFLED:
        found[f"shuffled/{name}"] = partial(_shuffled, name)
    for name in (*NUMERIC, *VOTES):
        for dimension in DIMENSIONS.get(name, (3,) if name.startswith("priv-unit") else (1, 3)):
            found[f"numbers/{name}/{dimension}"] = partial(_numbers, name, dimension)
    for name in DISTRIBUTED:
        found[f"distributed/{name}"] = partial(_distributed, name, False)
        found[f"distributed/{name}/exact"] = partial(_distributed, name, True)
    found["distributed/skellam/records"] = partial(_distributed_records, "skellam")  # of others only the law differs
    for name in CENTRAL:
        found[f"central/{name}"] = partial(_central, name, False)
    found["central/gaussian-statistic/ledger"] = partial(_central, "gaussian-statistic", True)
    found["central/gaussian-statistic/2 times"] = partial(_composed, "gaussian-statistic")
    for name in RECORD:
        found[f"objective/{name}"] = partial(_objective, name)
    for name in _ARMS:
        found[f"records/{name}"] = partial(_records, name)
    for name in SELECTIONS:
        found[f"selection/{name}"] = partial(_selection, name)
    for name in (*NUMERIC, "sums"):
        found[f"canary/{name}"] = partial(_canary, name)
    for name in ("labels", "ties", "randomized-ties", "records"):
        found[f"node/{name}"] = partial(_client, name)
    found["node/file"] = _file
    found["node/tasks"] = _tasks
    found["node/rounds"] = _replies
    for name in ("descent", "threshold"):
        found[f"run/{name}"] = partial(_run, name)
    return found


def _label(name: str, ties: Ties, epsilon: Decimal) -> Subject:
    from studies.audit.labels import of_label

    return of_label(name, epsilon, ties)


def _choice(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.labels import of_choice

    return of_choice(name, epsilon)


def _shuffled(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.shuffled import of_group

    return of_group(name, epsilon)


def _distributed(name: str, exact: bool, epsilon: Decimal) -> Subject:
    from studies.audit.shares import of_members, of_one

    return of_one(name, epsilon) if exact else of_members(name, epsilon)


def _distributed_records(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.record_shares import of_records

    return of_records(name, epsilon)


def _numbers(name: str, dimension: int, epsilon: Decimal) -> Subject:
    from studies.audit.numbers import of_numbers

    return of_numbers(name, epsilon, dimension)


def _central(name: str, ledger: bool, epsilon: Decimal) -> Subject:
    from studies.audit.central import of_labels

    return of_labels(name, epsilon, ledger=ledger)


def _composed(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.central import of_releases

    return of_releases(name, epsilon)


def _records(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.central import of_records

    return of_records(name, _ARMS[name], epsilon)


def _objective(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.simulated import of_objective

    return of_objective(name, epsilon)


def _selection(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.simulated import of_selection

    return of_selection(name, epsilon)


def _canary(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.canaries import of_sums, of_vectors

    return of_sums(epsilon) if name == "sums" else of_vectors(name, epsilon)


def _client(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.client import of_client

    return of_client(name, epsilon)


def _file(epsilon: Decimal) -> Subject:
    from studies.audit.client import of_file

    return of_file(epsilon)


def _tasks(epsilon: Decimal) -> Subject:
    from studies.audit.tasks import of_tasks

    return of_tasks(epsilon)


def _replies(epsilon: Decimal) -> Subject:
    from studies.audit.rounds import of_replies

    return of_replies(epsilon)


def _run(name: str, epsilon: Decimal) -> Subject:
    from studies.audit.rounds import of_run

    return of_run(name, epsilon)


SUBJECTS: Mapping[str, Build] = _registered()
