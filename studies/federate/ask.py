"""The one task of a federated ranking, from public facts alone."""

from dataclasses import replace

from protocol.messages import Runs, Task, Ties
from protocol.strict import StudyError
from protocol.study import Study
from server.task_shares import about
from studies.federate.facts import Facts
from studies.fit.request import Request
from studies.fit.round import ball
from studies.fit.task import arm_of, clipped, named, task_of


def study_and_task(request: Request, facts: Facts) -> tuple[Study, Task]:
    """A study of one cell, whose problem has the ball of the estimate, and the task that nodes are asked.

    The same folder and claim are the same task at every run: nodes repeat what they answered, at no cost. Its
    fingerprint also covers whose labels about what are asked, since item numbers do not tell two files apart.
    Raises StudyError for a claim that cannot be kept.
    """
    problem, rows = facts.problem, facts.rows
    arm = arm_of(request, problem)
    if facts.groups is not None:
        arm = clipped(request, problem, rows, facts.groups)
    study, task = task_of(request, problem, arm, facts.groups)
    if request.ties is Ties.DROP:
        assert facts.ties is not None
        rows = rows[~facts.ties[rows]]
        if not len(rows):
            raise StudyError("--ties drop: expected at least one answer that is no tie, found none")
    task = replace(about(task, arm, Runs.of(rows.tolist())), study=named(study, facts.whose))
    arm = replace(arm, estimator=request.estimator)
    return replace(study, problem=replace(problem, bound=ball(request, facts)), arms=(arm,)), task
