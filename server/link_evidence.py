"""From collected reports about pairs to what the estimators of a model see of one repetition."""

from dataclasses import replace

import numpy as np

from protocol.links import LINKS
from protocol.trust import Trust
from server.designs import Designs
from server.estimators.deferred import SummedWorkspace
from server.estimators.links import LinkedFeatures
from server.estimators.workspace import Workspace
from server.evidence import Heard, Server, evidence
from server.summed_evidence import summed_evidence

_NONE = np.empty(0)


def link_evidence(server: Server, heard: Heard, designs: Designs) -> Workspace:
    """Evidence as for the logistic model, its features arranged for the model of the task's problem."""
    summed = heard.task.trust is Trust.DISTRIBUTED
    known = summed_evidence(heard, designs) if summed else evidence(server, heard, designs)
    scales = _NONE if known.weights is None else 1.0 / known.weights
    link = LINKS[heard.task.problem.model]
    known = replace(known, features=LinkedFeatures(np.ascontiguousarray(known.rows), scales, link))
    return SummedWorkspace(known, link) if summed else Workspace(known)
