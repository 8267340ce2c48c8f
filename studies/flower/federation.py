"""`--federation` of commands that use a federation which runs on this machine: halftruth up, or halftruth server."""

from deploy.federation import Record
from deploy.look import link_of, running
from deploy.processes import FlowerFailed
from protocol.counting import counted
from protocol.strict import StudyError
from protocol.version import version
from studies.flower.state_flag import state_of


def join(folder: str, clients: int | None) -> tuple[Record, int]:
    """The federation of a state folder ("": the user's own), and how many nodes are there: all of them take part.

    Raises FlowerFailed where none runs, where nobody is there or not as many as `clients`, and where it was started by
    another version.
    """
    record = running(state_of(folder or None))
    if record.version != version():
        raise FlowerFailed(
            f"expected a federation of halftruth {version()}, got one that {record.version} started: halftruth down, "
            "and start it again"
        )
    online = sum(node.status == "online" for node in link_of(record).nodes())
    if not online:
        raise FlowerFailed(f"expected nodes at {record.address}, found none: halftruth status shows who was there")
    if clients is not None and clients != online:
        raise StudyError(
            f"expected {counted(clients, 'node')} at {record.address}, where all that are online take part, found "
            f"{online}: see halftruth status"
        )
    return record, online
