"""`--federation` of commands that use a federation which runs on this machine: halftruth up, or halftruth server."""

import time

from deploy.federation import Record
from deploy.look import link_of, running
from deploy.processes import FlowerFailed
from deploy.superlink import SUPERLINK
from protocol.counting import counted
from protocol.strict import StudyError
from protocol.version import version
from studies.flower.state_flag import state_of

COMING = 60.0  # seconds that own nodes are waited for
PAUSE = 2.0  # seconds between two looks, each of which starts a program


def join(folder: str, clients: int | None) -> tuple[Record, int]:
    """The federation of a state folder ("": the user's own), and how many nodes are there: all of them take part.

    Nodes that it started itself are waited for: one of them may have been started again a moment ago.
    Raises FlowerFailed where none runs, where nobody is there or not as many as `clients`, and where it was started by
    another version.
    """
    record = running(state_of(folder or None))
    if record.version != version():
        raise FlowerFailed(
            f"expected a federation of halftruth {version()}, got one that {record.version} started: halftruth down, "
            "and start it again"
        )
    own = sum(not child.left for name, child in record.children.items() if name != SUPERLINK)
    deadline = time.monotonic() + COMING
    while (online := _online(record)) < own and time.monotonic() < deadline:
        time.sleep(PAUSE)
    if online < own:
        raise FlowerFailed(f"expected {counted(own, 'node')} at {record.address}, found {online}: see halftruth status")
    if not online:
        raise FlowerFailed(f"expected nodes at {record.address}, found none: halftruth status shows who was there")
    if clients is not None and clients != online:
        raise StudyError(
            f"expected {counted(clients, 'node')} at {record.address}, where all that are online take part, found "
            f"{online}: see halftruth status"
        )
    return record, online


def _online(record: Record) -> int:
    return sum(node.status == "online" for node in link_of(record).nodes())
