"""How long nodes are waited for, and whether all of them have to answer: flags of commands that ask over Flower."""

import argparse
from dataclasses import dataclass
from typing import Any

from protocol.quorum import check_quorum
from protocol.runconfig import DEADLINE
from protocol.strict import StudyError


@dataclass(frozen=True)
class Patience:
    """`deadline`: seconds of a round. `mode` "strict": every node has to answer; "live": those that did by then count,
    if they are at least a `quorum`, a number or a share ("": one).
    """

    deadline: float = DEADLINE
    mode: str = "strict"
    quorum: str = ""

    def told(self) -> dict[str, Any]:
        """As fields of a run's configuration."""
        return {"deadline": self.deadline, "mode": self.mode, "quorum": self.quorum}


def patience_of(args: argparse.Namespace) -> Patience:
    """What the flags --deadline, --mode and --quorum say. Raises StudyError."""
    if args.quorum and args.mode != "live":
        raise StudyError("--quorum: expected --mode live with it: otherwise every node has to answer")
    return Patience(args.deadline or DEADLINE, args.mode or "strict", check_quorum(args.quorum or "", "--quorum"))
