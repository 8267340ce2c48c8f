"""Which shuffler a server fetches from: a strict file on its own machine, named by nobody's run."""

import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from protocol import strict
from protocol.strict import StudyError, reason
from server.batches import Shuffling
from server.listening import RoundFailed
from server.signatures import SIGNING, KeyUnusable, server_key

SHUFFLER, STATE, SERVER_KEY = "HALFTRUTH_SHUFFLER", "HALFTRUTH_STATE", "HALFTRUTH_KEY"
IN_STATE = "shuffler.toml"
KEYS = ("address", "insecure", "root_certificates", "sealing_key")
UNUSABLE = (ValueError, TypeError, UnsupportedAlgorithm)
Ask = Callable[[list[bytes]], list[bytes]]


def through_shuffler(ask: Ask, environment: Mapping[str, str]) -> Ask:
    """Ask so that what nodes handed to this machine's shuffler comes along; as before where it has none.

    The file is the one that HALFTRUTH_SHUFFLER names, else shuffler.toml of the state folder where there is one.
    Raises RoundFailed where it does not read, or the server has no key to fetch with.
    """
    path = _file(environment)
    if path is None:
        return ask
    if not environment.get(SERVER_KEY):
        raise RoundFailed(f"expected {SERVER_KEY} to name the server's key, with which {path} is acted on, got none")
    try:
        return read_shuffling(path, Path(environment[SERVER_KEY])).asking(ask)
    except (StudyError, KeyUnusable) as error:
        raise RoundFailed(str(error)) from None


def read_shuffling(path: Path, own: Path) -> Shuffling:
    """Read the file; relative paths in it are relative to its folder.

    ```
    [shuffler]
    address = "shuffler.example.org:9443"
    root_certificates = "shuffler-ca.crt"    # or insecure = true
    sealing_key = "sealing.key"              # opens reports: halftruth keys sealing sealing.key
    ```

    Raises StudyError naming the key, and KeyUnusable.
    """
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise StudyError(f"{path}: expected where the shuffler is, {strict.unopened(error)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: expected TOML, {error}") from None
    try:
        return _read(strict.table(content, "top level", ("shuffler",), ("shuffler",))["shuffler"], path.parent, own)
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from None


def opening_key(path: Path) -> X25519PrivateKey:
    """The private key that opens sealed reports, a file that only its owner can read. Raises KeyUnusable."""
    try:
        raw, mode = path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise KeyUnusable(f"{path}: expected the key of sealed reports, but the system says: {reason(error)}") from None
    try:
        key = load_pem_private_key(raw, password=None)
    except UNUSABLE:
        raise KeyUnusable(f"{path}: expected a private key in PEM without a passphrase, got another file") from None
    if not isinstance(key, X25519PrivateKey):
        raise KeyUnusable(f"{path}: expected a private key on X25519, got one of another kind: halftruth keys sealing")
    if os.name == "posix" and mode & 0o077:
        raise KeyUnusable(f"{path}: expected a key that only its owner can read, got one open to others: chmod 600")
    return key


def _file(environment: Mapping[str, str]) -> Path | None:
    if environment.get(SHUFFLER):
        return Path(environment[SHUFFLER])
    there = Path(environment[STATE]) / IN_STATE if environment.get(STATE) else None
    return there if there is not None and there.exists() else None


def _read(content: Any, folder: Path, own: Path) -> Shuffling:
    from server.shuffler_link import GrpcBatches  # gRPC: where a server needs it

    top = strict.table(content, "shuffler", KEYS, ("address", "sealing_key"))
    insecure = strict.boolean(top.get("insecure", False), "[shuffler] insecure")
    if ("root_certificates" in top) == insecure:
        raise StudyError("[shuffler] root_certificates: expected it exactly unless insecure = true")
    paths = {key: folder / strict.text(top[key], f"[shuffler] {key}") for key in KEYS[2:] if key in top}
    key, address = server_key(own), strict.text(top["address"], "[shuffler] address")
    batches = GrpcBatches(address, lambda words: key.sign(words, SIGNING), paths.get("root_certificates"))
    return Shuffling(batches, opening_key(paths["sealing_key"]))
