"""One task about labels of files: asked once, estimated with every arm of its study. For any runtime, like a round."""

from collections.abc import Iterator

from protocol.messages import Task
from protocol.study import Study
from server.evidence import Server
from server.kinds import kind_of
from server.listening import Ask, Check, complete, listen
from server.outcome import Outcome, outcomes
from server.rounds import options
from server.tasks import of_curator


def play_task(study: Study, task: Task, ask: Ask, server: Server, check: Check = complete) -> Iterator[Outcome]:
    """The outcome of each arm of a study whose one cell is this task. The ball is the study's, and not in the task.

    Guarantee: that of the outcomes' claim, for the task's unit and neighbours.
    Raises RoundFailed like `server.rounds.play`, EstimationError where there is no estimate, LedgerError.
    """
    asked = of_curator(task, server.curator_name, server.attempt)
    heard, kind = listen([asked], ask, check)[asked], kind_of(asked.problem)
    seen = kind.seen(server, heard, kind.designs(server, asked.problem, asked.n, asked.first_repetition))
    for arm in study.arms:
        estimate = kind.estimators[arm.estimator](seen, options(study.problem, arm))
        yield from outcomes(study, arm, asked.first_repetition, heard, estimate)
