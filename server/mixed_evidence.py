"""What estimators see of a task: reports of one channel, of several where labelers chose, or a curator's sum."""

from dataclasses import replace

import numpy as np

from protocol.coins import Address, Stream
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.terms import law
from protocol.trust import Trust
from server.designs import Designs
from server.estimators.deferred import SummedWorkspace
from server.estimators.mixed import Mixed, MixedEvidence
from server.estimators.workspace import Reports, Workspace
from server.evidence import Heard, Server, answered_rows, channel_of, evidence
from server.summed_evidence import summed_evidence


def reports(server: Server, heard: Heard, designs: Designs) -> Reports:
    """The reports of one repetition. Where all took one mechanism of a menu, they are as if it alone were offered."""
    task, collected = heard.task, heard.collected
    used = [] if collected.ways is None else np.unique(collected.ways).tolist()
    if len(used) == 1:
        heard = replace(heard, task=replace(task, menu=(task.menu[used[0]],)))
    if task.trust is Trust.DISTRIBUTED:
        return SummedWorkspace(summed_evidence(heard, designs))
    if len(used) < 2:
        return Workspace(evidence(server, heard, designs))
    assert collected.symbols is not None and collected.ways is not None
    design = designs.get(exponent(task.n, row_bound(task.problem, None)), None, answered_rows(heard))
    return Mixed(
        MixedEvidence(
            rows=design.rows,
            symbols=collected.symbols[designs.repetition - task.first_repetition],
            which=collected.ways,
            channels=[channel_of(law(task, mechanism)) for mechanism in task.menu],
            features=design.features,
            coins=Address(server.seed, Stream.BOOTSTRAP, task.n, designs.repetition),
        )
    )
