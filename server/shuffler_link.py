"""The way from a server to a shuffler over gRPC."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from protocol.errors import WireError
from protocol.sealed import FETCH, MOST_BYTES, SERVICE, Pile, decode_batch, encode_fetch, fetch_words
from server.batches import NoBatch

SECONDS = 120.0
_OPTIONS = [("grpc.max_receive_message_length", MOST_BYTES), ("grpc.enable_http_proxy", 0)]


@dataclass(frozen=True)
class GrpcBatches:
    """A shuffler at an address, over TLS that `authority` vouches for, None without; `sign` has the server's key."""

    address: str
    sign: Callable[[bytes], bytes] = field(repr=False)
    authority: Path | None = None
    seconds: float = SECONDS

    def fetch(self, task: bytes) -> tuple[Pile, ...]:
        """All piles of a task, which closes it. Raises NoBatch with the shuffler's reason, or why there is none."""
        raw = encode_fetch(task, self.sign(fetch_words(task)))
        try:
            with self._channel() as channel:
                call = channel.unary_unary(f"/{SERVICE}/{FETCH}", bytes, bytes)
                return decode_batch(call(raw, timeout=self.seconds, wait_for_ready=True))
        except grpc.RpcError as error:
            raise NoBatch(f"{self.address}: {error.code().name}: {error.details()}") from None
        except WireError as error:
            raise NoBatch(f"{self.address}: {error}") from None

    def _channel(self) -> grpc.Channel:
        if self.authority is None:
            return grpc.insecure_channel(self.address, _OPTIONS)
        return grpc.secure_channel(
            self.address, grpc.ssl_channel_credentials(self.authority.read_bytes()), options=_OPTIONS
        )
