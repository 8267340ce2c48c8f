"""One task about labels of files: asked once, estimated with every arm of its study. For any runtime, like a round."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from protocol.messages import Task
from protocol.study import Study
from server.curator import LiveCurator
from server.evidence import Server
from server.kinds import kind_of
from server.outcome import Outcome, outcomes
from server.rounds import Ask, Check, complete, listen, options


def play_task(study: Study, task: Task, ask: Ask, server: Server, check: Check = complete) -> Iterator[Outcome]:
    """The outcome of each arm of a study whose one cell is this task. The ball is the study's, and not in the task.

    Guarantee: that of the outcomes' claim, for the task's unit and neighbours.
    Raises RoundFailed like `server.rounds.play`, EstimationError where there is no estimate, LedgerError.
    """
    asked = of_this_curator(task, server)
    heard, kind = listen([asked], ask, check)[asked], kind_of(asked.problem)
    seen = kind.seen(server, heard, kind.designs(server, asked.problem, asked.n, asked.first_repetition))
    for arm in study.arms:
        estimate = kind.estimators[arm.estimator](seen, options(study.problem, arm))
        yield from outcomes(study, arm, asked.first_repetition, heard, estimate)


def of_this_curator(task: Task, server: Server) -> Task:
    """The task under the name of the curator's ledger, where there is one.

    Labelers repeat an answer that they paid for. A curator without the ledger that holds its release would add fresh
    noise to the same sum; with another ledger this is another task, which they charge.
    """
    if not isinstance(server.curator, LiveCurator):
        return task
    return replace(task, study=hashlib.sha256(task.study + server.curator.ledger.identity).digest())
