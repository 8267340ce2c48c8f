"""Members of sums under masks: the keys of a split's nodes, and in each folder the list of all of them."""

from collections.abc import Sequence
from pathlib import Path

from client.node_file import LEAST_MEMBERS
from deploy.node_keys import ensure_key
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.federate.folder import open_private

KEY, MEMBERS = "node.key", "members"
NODE_LINE = f'key = "{KEY}"                # the node\'s own: signs its part of each session\n'
POLICY = f"""\
members = "{MEMBERS}"             # public keys of all members: the node takes part in sums with these alone
least_members = {LEAST_MEMBERS}               # fewer, or fewer who stay, and it takes no part
"""
TOLD = """\
Each node has a key of its own, and the list of all of them. Whoever split the file has seen these keys, as it has seen
the file: a node that runs somewhere else makes its own (halftruth keys new node.key) and tells the others its .pub."""


def check_members(trust: Trust, nodes: int) -> None:
    """Raise StudyError for fewer nodes than sums under masks hide one of."""
    if trust is Trust.DISTRIBUTED and nodes < LEAST_MEMBERS:
        raise StudyError(
            f"--nodes: expected {LEAST_MEMBERS} or more for --trust distributed, got {nodes}: of two, each would know "
            "what the other added"
        )


def write_members(folders: Sequence[Path]) -> None:
    """Make a key for each node, readable by its owner only, and write into each folder the public halves of all."""
    lines = [ensure_key(folder / KEY)[0].line for folder in folders]
    listed = "".join(f"{line} {folder.name}\n" for line, folder in zip(lines, folders, strict=True))
    for folder in folders:
        with open_private(folder / MEMBERS) as file:
            file.write(listed)
