"""What the labels of a file report under local privacy: one task to one node, as in `halftruth fit`."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.labeler import answer
from client.sources.table import Table
from protocol.decimals import canonical
from protocol.messages import Ties
from protocol.terms import law
from protocol.trust import Trust
from server.listening import listen
from studies.fit.request import AUTO, WAYS, Request
from studies.fit.state import note_file
from studies.fit.task import policy_of, study_and_task
from studies.own_room import own_room


@dataclass(frozen=True, eq=False)
class Reported:
    """Randomised labels: `rows` (k,) of the file, and `second` (k,): whether the second of the pair is said to win.

    `flip` is the probability with which a label was turned round, of the table that was executed; `most` says how many
    labels the labeler of most labels has. `secret`: coins were the system's.
    """

    rows: NDArray[np.int64] = field(repr=False)
    second: NDArray[np.bool_] = field(repr=False)
    epsilon: Decimal
    flip: float
    most: int
    secret: bool


def reported(table: Table, epsilon: Decimal, state: Path, seed: int | None) -> Reported:
    """Ask every label of a file once, by randomised response; one that has answered at this level answers the same.

    Guarantee: `epsilon`-local differential privacy of each label, over all times it is asked at this level, where
    `seed` is None; unit: one label; neighbours: replace one label.
    Raises StudyError, RoundFailed and LedgerUnavailable.
    Source: derived, see docs/PRIVACY.md.
    """
    table = replace(table, rows_held=np.arange(len(table.pairs)))
    local = Trust.LOCAL
    request = Request(table.path, local, epsilon, None, AUTO, WAYS[local][1][0], state, table.public, seed, Ties.COIN)
    _, task = study_and_task(request, table)
    where = state if request.budgeted else None
    with own_room(table, policy_of(request, task), where, local, seed) as (node, ledger, _server):
        if request.budgeted:
            note_file(ledger.parent, table)
        collected = listen([task], lambda raws: [answer(raw, node) for raw in raws])[task].collected
    assert collected.symbols is not None
    flip = law(task, task.menu[0]).probability(0, 1)
    most = int(np.bincount(table.owners[table.first]).max())
    return Reported(collected.rows, collected.symbols[0] == 1, epsilon, float(flip), most, seed is None)


def guarantee(found: Reported) -> str:
    """The claim in words."""
    if not found.secret:
        return "none: coins had addresses, which protects nobody"
    level = canonical(found.epsilon)
    return f"epsilon = {level}, delta = 0, local; unit: one label; neighbours: replace one label"
