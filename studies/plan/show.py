"""A plan on a terminal, and as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from protocol.counting import counted
from protocol.decimals import canonical
from protocol.warned import spoken
from server.task_shares import counted_on
from studies.plan.assumed import Assumed
from studies.plan.ways import Prediction, Way
from studies.terminal import print_line, print_table
from studies.theory.sandwich import central_noise

NEVER = "out of reach"


@dataclass(frozen=True, eq=False)
class Plan:
    """What was asked: two of error, level and n. Each way's answer: None where the target is out of reach."""

    assumed: Assumed
    ways: Mapping[str, Way]
    way: Way
    error: float | None
    epsilon: Decimal | None
    n: int | None
    delta: Decimal
    answers: Mapping[str, Prediction | None]

    @property
    def answer(self) -> Prediction | None:
        """That of the way which was asked for."""
        return self.answers[self.way.name]

    @property
    def crossing(self) -> float | None:
        """The n at which the curator's noise costs as much as sampling, at the answer's level and sensitivity."""
        found = self.answers["central"]
        if found is None or found.setting.epsilon is None:
            return None
        theory, at = self.assumed.theory, found.setting
        return theory.crossing(*central_noise(theory, found.way.arm, at.n, found.setting.epsilon, at.delta))

    @property
    def honest(self) -> Decimal:
        """The share of the rows whose noise has to be enough where it comes in shares."""
        return counted_on(self.ways["distributed"].arm)["honest"]

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against the answer: first the assumption's own doubts."""
        return self.assumed.doubts + (() if self.answer is None else self.answer.doubts)


def sentence(plan: Plan) -> str:
    """The answer in one sentence."""
    found, words = plan.answer, plan.way.words
    if found is None:
        asked = (
            "any number of labels" if plan.n is None else f"{counted(plan.n, 'label', ',')}, not even at epsilon = 40"
        )
        return f"{words}: no error of {plan.error:g} with {asked}."
    at = found.setting
    level = "" if at.epsilon is None else f" at epsilon = {canonical(at.epsilon)}"
    if plan.n is None:
        return f"{words}: {counted(at.n, 'labeler', ',')}{level} for an error of {plan.error:g}."
    if plan.error is None or at.epsilon is None:
        return f"{words}: an error of {found.error:.3g} with {counted(at.n, 'labeler', ',')}{level}."
    return (
        f"{words}: epsilon = {canonical(at.epsilon)} is enough for an error of {plan.error:g} with "
        f"{counted(at.n, 'labeler', ',')}."
    )


def show(plan: Plan) -> None:
    """Print the answer, all ways beside each other, and doubts."""
    print_line(sentence(plan), style="bold")
    columns = ("", "labels", "epsilon", "error", "a label is worth", "sound")
    print_table(columns, (_cells(plan.ways[name], found) for name, found in plan.answers.items()), left=["", "sound"])
    problem = plan.assumed.theory.problem
    ball = "no ball" if problem.bound is None else f"ball of radius {canonical(problem.bound)}"
    print_line(f"Assumed: {plan.assumed.words}; {counted(problem.reduced_dimension, 'free coordinate')}, {ball}.")
    if plan.crossing is not None:
        noise = f"Central, delta = {plan.delta:e}: noise costs as much as sampling at n = {plan.crossing:,.0f}"
        print_line(f"{noise}, and less above.")
    honest = canonical(plan.honest)
    print_line(
        f"Distributed: enough noise where {honest} of the rows stay and tell nobody theirs (--survivors, --honest)."
    )
    print_line("Error: root mean square L2. A label is worth: clear labels that do as much.")
    for doubt in plan.doubts:
        print_line(f"{spoken(doubt)}.", style="yellow")


def as_json(plan: Plan) -> str:
    """Everything that `show` shows, as JSON."""
    content = {
        "assumed": plan.assumed.words,
        "free_coordinates": plan.assumed.theory.problem.reduced_dimension,
        "asked": {
            "trust": plan.way.name,
            "error": plan.error,
            "epsilon": None if plan.epsilon is None else float(plan.epsilon),
            "labels": plan.n,
            "delta": float(plan.delta),
        },
        "answer": sentence(plan),
        "doubts": list(plan.doubts),
        "central_crossing": plan.crossing,
        "honest": float(plan.honest),
        "ways": {name: None if found is None else _facts(found) for name, found in plan.answers.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _facts(found: Prediction) -> dict[str, object]:
    level = found.setting.epsilon
    return {
        "labels": found.setting.n,
        "epsilon": None if level is None else float(level),
        "error": found.error,
        "score_error": found.score_error,
        "label_worth": found.worth,
        "doubts": list(found.doubts),
    }


def _cells(way: Way, found: Prediction | None) -> tuple[str, ...]:
    if found is None:
        return way.words, NEVER, "", "", "", ""
    level = found.setting.epsilon
    return (
        way.words,
        f"{found.setting.n:,}",
        "none" if level is None else canonical(level),
        f"{found.error:.3g}",
        f"{found.worth:.3g}",
        "no" if found.doubts else "yes",
    )
