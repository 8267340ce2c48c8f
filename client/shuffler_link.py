"""The way to a shuffler over gRPC, as a node's own file says where it is and who opens what goes there."""

import logging
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from client.secure.membership import fingerprint_of
from client.shuffled import ShufflerUnavailable, ToShuffler
from client.signing import SIGNING, UNUSABLE, KeyUnusable, own_key
from protocol.sealed import MOST_BYTES, SERVICE, SUBMIT
from protocol.strict import reason

SECONDS = 60.0
_log = logging.getLogger("halftruth.client")
_OPTIONS = [("grpc.max_send_message_length", MOST_BYTES), ("grpc.enable_http_proxy", 0)]


@dataclass(frozen=True)
class GrpcLink:
    """A shuffler at an address, over TLS that `authority` vouches for, None for a connection that hides nothing.

    Reports are sealed either way; without TLS whoever listens sees who answers, and when. A channel is made for each
    call, since nodes answer in forked children.
    """

    address: str
    authority: bytes | None = None
    seconds: float = SECONDS

    def submit(self, raw: bytes) -> None:
        """Hand over a signed submission. Raises ShufflerUnavailable: the shuffler's reason, or why there is none."""
        try:
            with self._channel() as channel:
                call = channel.unary_unary(f"/{SERVICE}/{SUBMIT}", bytes, bytes)
                call(raw, timeout=self.seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            _log.warning("%s: no shuffler takes the answer: %s: %s", self.address, error.code().name, error.details())
            raise ShufflerUnavailable(f"{self.address}: {error.code().name}: {error.details()}") from None

    def _channel(self) -> grpc.Channel:
        if self.authority is None:
            return grpc.insecure_channel(self.address, _OPTIONS)
        return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(self.authority), _OPTIONS)


def to_shuffler(address: str, authority: Path | None, server_key: Path, own: Path) -> ToShuffler:
    """What a node file's [shuffler] says, with its keys read. Raises KeyUnusable naming the file."""
    key = own_key(own)
    return ToShuffler(
        server=sealing_key(server_key),
        sign=lambda words: key.sign(words, SIGNING),
        key=fingerprint_of(key.public_key()),
        link=GrpcLink(address, None if authority is None else _read(authority, "certificates")),
    )


def sealing_key(path: Path) -> X25519PublicKey:
    """The public key that reports are sealed to, in a file in PEM. Raises KeyUnusable."""
    try:
        key = load_pem_public_key(_read(path, "the server's public key for sealed reports"))
    except UNUSABLE:
        key = None
    if not isinstance(key, X25519PublicKey):
        raise KeyUnusable(f"{path}: expected a public key on X25519 in PEM, got another file: halftruth keys sealing")
    return key


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KeyUnusable(f"{path}: expected {what}, but the system says: {reason(error)}") from None
