"""`--state` of the commands that start, show and end a federation."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a command's --help need not wait for what it runs
    from deploy.federation import State

WHERE = "folder of the federation: keys, certificates, register, logs (the user's state folder)"


def add_state_argument(parser: argparse.ArgumentParser, text: str = WHERE) -> None:
    """The flag."""
    parser.add_argument("--state", metavar="DIR", help=text)


def state_of(text: str | None) -> "State":
    """What it says, as an absolute path. Raises StudyError where a file is there."""
    from deploy.federation import State
    from studies import own_flags

    folder = own_flags.state_of(text)
    return State((folder if text is not None else folder / "federation").resolve())
