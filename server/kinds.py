"""Kinds of problems on the server: how rows are arranged, what estimators see of reports, and which there are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from protocol.arms import RELEASED, Arm
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.trust import Trust
from server.choice_designs import ChoiceDesigns
from server.choice_evidence import choice_evidence
from server.designs import Designs
from server.estimators import ESTIMATORS
from server.estimators import choice_minimiser as minimiser
from server.estimators import choice_randomized as randomized
from server.estimators.base import Estimate, Options
from server.estimators.choice_base import ChoiceWorkspace
from server.estimators.deferred import SummedChoices
from server.estimators.links import LINK_ESTIMATORS
from server.estimators.side_by_side import together
from server.estimators.workspace import Reports
from server.evidence import Heard, Server
from server.link_evidence import link_evidence
from server.mixed_evidence import reports
from server.private_estimate import Released, released, released_estimate
from server.summed_evidence import summed_choices

CHOICE_ESTIMATORS: dict[str, Callable[[ChoiceWorkspace, Options], Estimate]] = {
    "mle": minimiser.mle,
    "sgd": minimiser.sgd,
    "debiased-sgd": minimiser.debiased_sgd,
    "debiased": minimiser.debiased,
    "rr-mle": randomized.rr_mle,
    "rr-map": randomized.rr_map,
    "naive": minimiser.naive,
    "literal": minimiser.literal,
}


def _seen(server: Server, heard: Heard, designs: Designs) -> Reports | Released:
    """Evidence of a repetition; of records only the estimate that their curator lets out."""
    if heard.task.unit is Unit.RECORD:
        return released_estimate(server, heard, designs)
    return reports(server, heard, designs)


def _seen_choices(server: Server, heard: Heard, designs: ChoiceDesigns) -> ChoiceWorkspace:
    if heard.task.trust is Trust.DISTRIBUTED:
        return SummedChoices(summed_choices(heard, designs))
    return ChoiceWorkspace(choice_evidence(server, heard, designs))


class Asked(NamedTuple):
    """An arm of one repetition: what was heard for it, what its estimator sees of that, and how to estimate."""

    arm: Arm
    heard: Heard
    seen: Any
    options: Options


def _one_by_one(_asked: Sequence[tuple[str, Any, Options]]) -> dict[int, Estimate]:
    return {}


class Kind(NamedTuple):
    """`designs` of one repetition; what estimators see of it (`seen`); the estimators by name, which take that.

    `together` has the estimates of arms that share a pass, by place: the bits of each alone, sooner.
    """

    designs: Callable[[Server, Problem, int, int], Any]
    seen: Callable[[Server, Heard, Any], Any]
    estimators: Mapping[str, Callable[[Any, Options], Estimate]]
    together: Callable[[Sequence[tuple[str, Any, Options]]], Mapping[int, Estimate]] = _one_by_one

    def estimates(self, asked: Sequence[Asked]) -> Iterator[Estimate]:
        """Of every arm of a repetition, in turn."""
        found = self.together([(one.arm.estimator, one.seen, one.options) for one in asked])
        for place, one in enumerate(asked):
            alone = self.estimators[one.arm.estimator]
            yield found[place] if place in found else alone(one.seen, one.options)


KINDS = {
    "pairwise": Kind(
        designs=Server.designs,
        seen=_seen,
        estimators={**ESTIMATORS, RELEASED: released},
        together=together,
    ),
    "choice": Kind(
        designs=lambda server, problem, n, repetition: ChoiceDesigns(server.features, problem, n, repetition),
        seen=_seen_choices,
        estimators=CHOICE_ESTIMATORS,
    ),
}
LINKED = Kind(designs=Server.designs, seen=link_evidence, estimators=LINK_ESTIMATORS)


def kind_of(problem: Problem) -> Kind:
    """The kind of a problem; pairs under another model than the logistic one have estimators of their own."""
    return LINKED if problem.kind == "pairwise" and problem.model != "btl" else KINDS[problem.kind]
