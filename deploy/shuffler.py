"""A shuffler as a process of its own: a gRPC service of two calls, over what `deploy.shuffler_desk` says."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from deploy.shuffler_desk import Desk, Refused, desk_of
from deploy.shuffler_file import ShufflerFile
from deploy.shuffler_store import Store, StoreUnusable
from protocol.failure import RunFailed
from protocol.sealed import FETCH, MOST_BYTES, SERVICE, SUBMIT

WORKERS = 8
GRACE = 5.0  # seconds for calls that are under way when a shuffler ends
AGE = 150.0  # seconds of a connection, longer than any call's: one that stops halfway has a worker for so long
ALIVE = 30.0  # seconds after which a connection that is silent is asked whether anybody is there
Call = Callable[[bytes], bytes]


@contextmanager
def serving(asked: ShufflerFile) -> Iterator[str]:
    """Serve until the block is left; yields the address with the port that it listens on.

    Raises RunFailed where the address is taken, or a file does not read.
    """
    try:
        desk = desk_of(Store(asked.state), asked.register, asked.server, asked.least)
    except StoreUnusable as error:
        raise RunFailed(str(error)) from None
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=_options(), maximum_concurrent_rpcs=None)
    server.add_generic_rpc_handlers((handlers(desk),))
    host, _, _ = asked.address.rpartition(":")
    try:
        port = _bind(server, asked)
    except (RuntimeError, OSError) as error:
        raise RunFailed(f"{asked.address}: expected an address to listen on, but: {error}") from None
    server.start()
    try:
        yield f"{host}:{port}"
    finally:
        server.stop(GRACE).wait()


def handlers(desk: Desk) -> grpc.GenericRpcHandler:
    """The two calls, of bytes."""
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            name: grpc.unary_unary_rpc_method_handler(_told(call), bytes, bytes)
            for name, call in ((SUBMIT, desk.submit), (FETCH, desk.fetch))
        },
    )


def until_ended() -> None:
    """Wait for Ctrl-C or a signal to end."""
    ended = threading.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: ended.set())
    ended.wait()


def _options() -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", MOST_BYTES),
        ("grpc.max_send_message_length", MOST_BYTES),
        ("grpc.so_reuseport", 0),  # a port that is another one's is refused
        ("grpc.max_connection_age_ms", round(1000 * AGE)),
        ("grpc.max_connection_age_grace_ms", round(1000 * GRACE)),
        ("grpc.keepalive_time_ms", round(1000 * ALIVE)),
        ("grpc.keepalive_timeout_ms", round(1000 * GRACE)),
    ]


def _told(call: Call) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    def answer(raw: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return call(raw)
        except Refused as error:
            context.abort(grpc.StatusCode[error.code], str(error))
        except Exception as error:  # its text stays here
            context.abort(grpc.StatusCode.INTERNAL, type(error).__name__)
        return b""

    return answer


def _bind(server: grpc.Server, asked: ShufflerFile) -> int:
    if asked.certificate is None or asked.key is None:
        return int(server.add_insecure_port(asked.address))
    pair = asked.key.read_bytes(), asked.certificate.read_bytes()
    return int(server.add_secure_port(asked.address, grpc.ssl_server_credentials([pair])))
