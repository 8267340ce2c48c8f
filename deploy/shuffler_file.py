"""A shuffler's own file: where it listens, whom it knows, who may fetch; a strict TOML."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from client.table_file import path_at
from deploy.node_keys import read_public
from protocol import strict
from protocol.strict import StudyError
from protocol.study import MOST
from server.register import Register, RegisterError, read_register
from server.signatures import public_key

KEYS = ("address", "insecure", "certificate", "key", "state", "nodes", "server_key", "least")
NEEDED = ("address", "state", "nodes", "server_key")


@dataclass(frozen=True)
class ShufflerFile:
    """A shuffler's file, read. `certificate` and `key` are for TLS, both None without; `least` is its own bound."""

    address: str
    certificate: Path | None
    key: Path | None
    state: Path
    register: Register
    server: EllipticCurvePublicKey
    least: int


def read_shuffler(path: Path) -> ShufflerFile:
    """Read a shuffler's file; relative paths in it are relative to its folder.

    ```
    [shuffler]
    address = "0.0.0.0:9443"       # port 0: any free one, which is printed
    certificate = "shuffler.crt"   # and key, for TLS; or insecure = true
    key = "shuffler.key"
    state = "shuffler.sqlite"      # made where it is not there
    nodes = "nodes.toml"           # the nodes whose reports are taken: a register as a server's
    server_key = "server.key.pub"  # under which batches are fetched: halftruth keys new
    least = 50                     # the fewest reports of a question that are passed on, whatever nodes want (2)
    ```

    Raises StudyError naming the key.
    """
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise StudyError(f"{path}: expected a shuffler's file, {strict.unopened(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: expected TOML, {error}") from None
    try:
        return _read(strict.table(content, "top level", ("shuffler",), ("shuffler",))["shuffler"], path.parent)
    except (ValueError, RegisterError) as error:
        raise StudyError(f"{path}: {error}") from None


def _read(content: Any, folder: Path) -> ShufflerFile:
    top = strict.table(content, "shuffler", KEYS, NEEDED)
    insecure = strict.boolean(top.get("insecure", False), "[shuffler] insecure")
    for name in ("certificate", "key"):
        if (name in top) == insecure:
            raise StudyError(f"[shuffler] {name}: expected it exactly unless insecure = true")
    paths = {name: path_at(top, name, "[shuffler]", folder) for name in (*NEEDED[1:], "certificate", "key")}
    state, nodes, server = paths["state"], paths["nodes"], paths["server_key"]
    assert state is not None
    assert nodes is not None
    assert server is not None
    return ShufflerFile(
        address=strict.text(top["address"], "[shuffler] address"),
        certificate=paths["certificate"],
        key=paths["key"],
        state=state,
        register=read_register(nodes),
        server=public_key(read_public(server).line, str(server)),
        least=strict.integer(top.get("least", 2), "[shuffler] least", 2, MOST),
    )
