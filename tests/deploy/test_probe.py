"""What a node finds out about its server before it connects: against real servers of this process."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from deploy.certs import Certificates, ensure
from deploy.ports import free_port
from deploy.probe import look
from deploy.processes import FlowerFailed


class Healthy(BaseHTTPRequestHandler):
    """Says that it is well, and when."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return ensure(tmp_path_factory.mktemp("certs"))[0]


def serve(context: ssl.SSLContext | None) -> Iterator[str]:
    server = HTTPServer(("", 0), Healthy)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def plain() -> Iterator[str]:
    yield from serve(None)


@pytest.fixture
def safe(certificates: Certificates) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    yield from serve(context)


def test_a_good_server(plain: str, safe: str, certificates: Certificates) -> None:
    assert look(plain, None, keyed=False) is None
    assert look(safe, certificates.authority, keyed=True) is None


def test_a_server_of_another_authority_is_refused(safe: str, tmp_path: Path) -> None:
    other, _ = ensure(tmp_path / "other")
    with pytest.raises(FlowerFailed, match=r"expected a server with a certificate of .*ca\.crt"):
        look(safe, other.authority, keyed=True)


def test_a_server_without_encryption_is_refused(plain: str, certificates: Certificates) -> None:
    with pytest.raises(FlowerFailed, match="expected a server that speaks TLS"):
        look(plain, certificates.authority, keyed=True)


def test_a_host_that_the_certificate_does_not_hold_is_refused(safe: str, certificates: Certificates) -> None:
    port = int(safe.rpartition(":")[2])
    with socket.socket() as attempt:
        if attempt.connect_ex(("127.0.0.2", port)) != 0:
            pytest.skip("this machine has one loopback address only")
    with pytest.raises(FlowerFailed, match=r"127\.0\.0\.2"):
        look(f"127.0.0.2:{port}", certificates.authority, keyed=True)


@pytest.mark.parametrize(("shift", "words"), [(1000, "seconds ahead of that of"), (-1000, "seconds behind that of")])
def test_a_clock_that_flower_refuses_is_told(safe: str, certificates: Certificates, shift: float, words: str) -> None:
    now = time.time() + shift
    with pytest.raises(FlowerFailed, match=f"{words} .*: set the clock"):
        look(safe, certificates.authority, keyed=True, now=now)
    assert look(safe, certificates.authority, keyed=False, now=now) is None


def test_a_server_that_is_not_there_may_come(certificates: Certificates) -> None:
    said = look(f"127.0.0.1:{free_port()}", certificates.authority, keyed=True)
    assert said is not None
    assert "keeps trying" in said
