"""[shuffler] of a node's file: where shuffled answers go, and the key that they are sealed to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.policy import Policy
from client.shuffled import ToShuffler
from client.table_file import path_at
from protocol import strict
from protocol.strict import StudyError
from protocol.trust import Trust

SHUFFLER = "shuffler"
KEYS = ("address", "insecure", "root_certificates", "server_key")


@dataclass(frozen=True)
class ShufflerAt:
    """Where shuffled answers go, over TLS unless there are no certificates; the key that they are sealed to, and the
    one that submissions are signed with.
    """

    address: str
    root_certificates: Path | None
    server_key: Path
    key: Path


def linked(shuffler: ShufflerAt | None) -> ToShuffler | None:
    """The way to a node's shuffler, with its keys read; nothing is sent yet. None without one. Raises KeyUnusable."""
    if shuffler is None:
        return None
    from client.shuffler_link import to_shuffler  # gRPC: where a node needs it

    return to_shuffler(shuffler.address, shuffler.root_certificates, shuffler.server_key, shuffler.key)


def parse_shuffler(content: Any, folder: Path, key: Path | None) -> ShufflerAt:
    """Read the table; `key` is the node's own. Raises StudyError naming the key of the table."""
    top = strict.table(content, SHUFFLER, KEYS, ("address", "server_key"))
    insecure = strict.boolean(top.get("insecure", False), f"[{SHUFFLER}] insecure")
    if ("root_certificates" in top) == insecure:
        raise StudyError(f"[{SHUFFLER}] root_certificates: expected it exactly unless insecure = true")
    if key is None:
        raise StudyError("[node] key: expected the key that submissions to a shuffler are signed with, got none")
    sealing = path_at(top, "server_key", f"[{SHUFFLER}]", folder)
    assert sealing is not None
    address = strict.text(top["address"], f"[{SHUFFLER}] address")
    return ShufflerAt(address, path_at(top, "root_certificates", f"[{SHUFFLER}]", folder), sealing, key)


def check_shuffler(policy: Policy, shuffler: ShufflerAt | None, entropy: str) -> None:
    """Raise StudyError for a trust in a shuffler that nobody names; coins with addresses protect nobody anyway."""
    if Trust.SHUFFLED in policy.trusts and shuffler is None and entropy == "os":
        raise StudyError(
            f'[{SHUFFLER}] expected where shuffled answers go, for trust = ["shuffled"]: its address and '
            "server_key, as docs/SHUFFLING.md has them"
        )
