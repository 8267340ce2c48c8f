"""The probe of containers: well is who answers 200 at /health, over TLS exactly where there are certificates."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from deploy.certs import Certificates, ensure
from deploy.health import is_well, main
from deploy.ports import HOST, free_port


class Answer(BaseHTTPRequestHandler):
    """200 at /health while `well`, else 503; nothing is logged."""

    well = True

    def do_GET(self) -> None:
        """One answer."""
        self.send_response(200 if self.well and self.path == "/health" else 503)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Silence."""


class Quiet(HTTPServer):
    """A connection that breaks off, as one without TLS does, is not news."""

    def handle_error(self, *words: object) -> None:
        """Silence."""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of this machine."""
    return ensure(tmp_path_factory.mktemp("certs") / "certs")[0]


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def server(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[tuple[int, bool]]:
    """A port that answers, and whether it does over TLS."""
    with Quiet((HOST, 0), Answer) as answering:
        if request.param:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.certificate, certificates.key)
            answering.socket = context.wrap_socket(answering.socket, server_side=True)
        thread = threading.Thread(target=answering.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield answering.server_address[1], request.param
        answering.shutdown()
        thread.join()


def test_well_is_who_answers_as_expected(
    server: tuple[int, bool], certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, tls = server
    stranger, _ = ensure(tmp_path / "stranger")
    assert is_well(port, certificates.authority if tls else None)
    assert not is_well(port, None if tls else certificates.authority)
    assert not is_well(port, stranger.authority)
    folder = certificates.authority.parent if tls else tmp_path / "none"
    assert main([str(port), "--certs", str(folder)]) == 0
    monkeypatch.setattr(Answer, "well", False)
    assert main([str(port), "--certs", str(folder)]) == 1


def test_nobody_is_not_well() -> None:
    assert main([str(free_port())]) == 1
