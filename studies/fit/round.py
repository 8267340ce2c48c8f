"""One task to one node: the file's labels cross the border as in a study, and the server estimates."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.labeler import Node
from client.ledger_view import read_entries
from client.sources.table import Table
from protocol.codec import encode_task, identity
from protocol.decimals import decimal
from protocol.messages import Task, Ties
from protocol.trust import Trust
from protocol.warned import code_of, warn
from server.curator import LiveCurator
from server.evidence import Heard, Server
from server.kinds import KINDS
from server.listening import listen
from server.outcome import Outcome, outcomes
from server.release_file import LedgerError, read_releases
from server.rounds import options
from studies.described import Described
from studies.fit.graph import describe, groups, require_minimiser, top_wins, wins
from studies.fit.labelers import notes
from studies.fit.ranking import ranking_note
from studies.fit.request import AUTO, BALL, NONE, Request
from studies.fit.state import CURATOR, note_file
from studies.fit.task import policy_of, study_and_task
from studies.in_process import carried
from studies.own_room import own_room


@dataclass(frozen=True, eq=False)
class Fit:
    """What came out: the estimate, the public facts of the file, and how many labels paid in this run.

    `warnings` say where it may mislead, `notes` what to know of its claim and its counts; both are public.
    `charged` is None where nodes keep ledgers of their own.
    """

    request: Request
    table: Described
    task: Task
    outcome: Outcome
    bound: Decimal | None
    warnings: tuple[str, ...]
    charged: int | None
    notes: tuple[str, ...] = ()


def fit(request: Request, table: Table) -> Fit:
    """Ask the file's node once and estimate.

    The ball is the server's business and not in the task: for another one the same reports, or the same release, serve.
    Guarantee: that of the outcome's claim; unit: one label (a labeler's answers about one pair are one label), or all
    labels of a labeler.
    Raises StudyError for a claim that cannot be kept, RoundFailed for a refusal, EstimationError where there is no
    estimate, LedgerUnavailable and LedgerError.
    """
    table = replace(table, rows_held=np.arange(len(table.pairs)))  # a node's file alone is a whole
    problem, bound, kind = table.problem, ball(request, table), KINDS[request.kind]
    study, task = study_and_task(request, table)
    with _parts(request, table, task) as (node, ledger, server):
        odd = note_file(ledger.parent, table) if request.budgeted else ""
        if isinstance(server.curator, LiveCurator):
            check_release(task, ledger)
        before = _paid(ledger)
        heard = listen([task], lambda raws: carried(raws, [node]))[task]
        seen = kind.seen(server, heard, kind.designs(server, problem, heard.task.n, 0))
        charged = _paid(ledger) - before
    if request.trust is Trust.CLEAR and bound is None and table.features is None:
        _check_minimiser(table, heard)
    arm = replace(study.arms[0], estimator=request.estimator, options=study.arms[0].options + request.options)
    estimate = kind.estimators[arm.estimator](seen, options(replace(problem, bound=bound), arm))
    outcome = next(outcomes(study, arm, 0, heard, estimate))
    said = ranking_note(request) + notes(request, table, task, outcome)
    found = warnings(table, outcome, request.ties) + ((warn("known-labelers", odd),) if odd else ())
    return Fit(request, table, heard.task, outcome, bound, found, charged, said)


@contextmanager
def _parts(request: Request, table: Table, task: Task) -> Iterator[tuple[Node, Path, Server]]:
    """The node, its ledger's path, and the server. Where no label pays, ledgers are gone after the run."""
    where = request.state if request.budgeted else None
    with own_room(table, policy_of(request, task), where, request.trust, request.seed) as room:
        yield room


def check_release(task: Task, ledger: Path) -> None:
    """Raise LedgerError where labels paid for a task whose release is gone: a second one would not be charged."""
    name, curator = identity(encode_task(task)), ledger.with_name(CURATOR)
    paid = any(entry.task == name for entry in read_entries(ledger))
    if paid and all(release.request.task != name for release in read_releases(curator)):
        raise LedgerError(
            f"{curator}: expected the release that these labels paid for, found none: bring the file back, try again "
            "if another run is at work, or ask at another level, which is charged"
        )


def _paid(ledger: Path) -> int:
    """How many labels were charged so far, over all tasks."""
    return sum(entry.labels for entry in read_entries(ledger))


def ball(request: Request, table: Described) -> Decimal | None:
    """The radius of the ball: by default none in clear; under a claim one that lets |theta . x| be some 2 sqrt(2).

    With x one-hot that is 2 sqrt(items).
    """
    if request.bound == NONE or (request.bound == AUTO and request.trust is Trust.CLEAR):
        return None
    if request.bound not in (AUTO, BALL):
        return decimal(request.bound, "--bound")
    if table.features is None:
        return decimal(2 * math.sqrt(len(table.items)), "--bound")
    design = table.problem.design
    assert design is not None
    x = design.astype(float)
    if x.ndim == 3:  # choices: as if each but the first were compared with the first
        x = (x[:, 1:] - x[:, :1])[table.pairs[:, 1:] >= 0]
    return usual_radius(x)


def usual_radius(x: NDArray[np.float64]) -> Decimal:
    """A ball's radius that lets |theta . x| be some 2 sqrt(2) for the rows x (n, d): 2 sqrt(2 d / mean |x|^2)."""
    return decimal(2 * math.sqrt(2 * x.shape[1] / float((x**2).sum(axis=1).mean())), "--bound")


def _check_minimiser(table: Table, heard: Heard) -> None:
    assert heard.collected.symbols is not None
    held, labels = table.pairs[heard.collected.rows], heard.collected.symbols[0]
    won = wins(held, labels) if table.problem.kind == "pairwise" else top_wins(held, labels)
    require_minimiser(table.items, won)


def warnings(table: Described, outcome: Outcome, ties: Ties = Ties.NONE) -> tuple[str, ...]:
    """What a reader of a ranking has to know about its estimate and its comparisons."""
    found = [text for text in outcome.warnings if code_of(text) != "on-the-ball"]
    parts = groups(table.items, table.pairs)
    if len(parts) > 1 and table.features is None:
        apart = f"nobody compared items of these {len(parts)} groups with each other: {describe(parts)}"
        found.append(warn("unconnected", f"{apart}; ranks between groups mean nothing"))
    if outcome.hit_boundary:
        spread = f"the scores lie on the ball: the answers alone would spread them further{_advice(outcome, ties)}"
        found.append(warn("on-the-ball", spread))
    return tuple(found)


def _advice(outcome: Outcome, ties: Ties) -> str:
    """What helps where noise, and not the answers, spreads scores: an estimator that reads the same reports."""
    if outcome.arm.trust is not Trust.LOCAL or outcome.arm.estimator == "rr-map":
        return ""
    far = ". So its radius says how far apart they are, and there is no interval"
    if ties is Ties.RANDOMIZED:  # its reports have no likelihood
        return far
    return (
        f"{far}: with few answers --estimator rr-map is better, whose prior keeps scores small where reports say "
        "little; it reads the same reports and costs nothing"
    )
