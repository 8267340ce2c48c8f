"""A federation behind a real nginx: nodes with keys work through it, and an outsider who has the CA can do nothing."""

import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deploy.certs import ensure
from deploy.federation import Record, State, read
from deploy.node_keys import ensure_key
from deploy.nodes import Nodes, node_toml
from deploy.ports import HOST, free_port
from deploy.processes import Processes, private_home
from deploy.stage import stage
from deploy.superlink import wait_until_ready
from studies.cli import main
from studies.load import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEMPLATE = DEPLOY / "nginx/halftruth.conf.template"
NGINX = shutil.which("nginx", path=os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/usr/local/sbin")))
NODES, SECONDS = 2, 120
MAIN = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/halftruth.conf;
}}
"""
CLOSED = (
    "/",
    "/docs",
    "/openapi.json",
    "/redoc",
    "/v1/runtime/acquire-task",
    "/v1/runtime/push-messages",
    "/v1/control/start-run",
    "/v1/control/register-node",
    "/v1/control/list-nodes",
    "/v1/fleet/register-node",
    "/v1/fleet/unregister-node",
    "/v1/fleet/",
    "/v1/fleet/get-run/",
    "/v1/fleet/get-run?x=1",
    "/v1/fleet/get-run%0a",
    "/v1/fleet/../control/start-run",
    "/v1/fleet/get-run/../../control/start-run",
    "/v1/fleet/%2e%2e/control/start-run",
    "/v1/fleet/get-run/%2E%2E/%2E%2E/control/start-run",
    "/v1/control/start-run/%2e%2e/%2e%2e/fleet/get-run",
    "/v1/control/start-run/../../fleet/get-run",
    "/v1//control/start-run",
    "//v1/fleet/get-run",
    "/v1/fleet//get-run",
    "/v1/fleet%2fget-run",
    "/v1%2ffleet/get-run",
    "/v1/./fleet/get-run",
    "/V1/fleet/get-run",
    "/v1/fleet/GET-RUN",
    "/v1/Control/start-run",
    "/v1/%66leet/get-run",
    "https://localhost/v1/control/start-run",
)

pytestmark = pytest.mark.skipif(NGINX is None and os.environ.get("CI") != "true", reason="nginx is not installed")


@dataclass(frozen=True)
class Outside:
    """What an outsider has: the proxy's port, the CA's certificate, and a Flower configuration `lab` for them."""

    port: int
    authority: Path
    home: Path

    def status(self, method: str, path: str) -> int:
        """The status of one request with a body that the path is written into as it stands."""
        trust = ssl.create_default_context(cafile=self.authority)
        talk = http.client.HTTPSConnection("localhost", self.port, context=trust, timeout=30)
        try:
            talk.putrequest(method, path, skip_host=False, skip_accept_encoding=True)
            talk.putheader("Content-Type", "application/protobuf")
            talk.putheader("Content-Length", "0")
            talk.endheaders()
            return talk.getresponse().status
        finally:
            talk.close()

    def flwr(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Flower's own command through the proxy."""
        return flwr(self.home, *words)


def flwr(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Flower's own command with a configuration of its own."""
    quiet = {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    command = [str(Path(sys.executable).with_name("flwr")), *words]
    return subprocess.run(
        command, env={**os.environ, **quiet}, capture_output=True, text=True, check=False, timeout=SECONDS
    )


def configure(home: Path, port: int, authority: Path) -> Path:
    """A Flower home whose only connection, `lab`, is a port of this machine over TLS."""
    home.mkdir()
    connection = f'[superlink]\ndefault = "lab"\n[superlink.lab]\naddress = "localhost:{port}"\n'
    (home / "config.toml").write_text(f'{connection}root-certificates = "{authority}"\n', encoding="ascii")
    return home


def start_proxy(processes: Processes, folder: Path, certs: Path, superlink: int, name: str = "nginx") -> int:
    """Start nginx with the template's variables filled in; returns the port that it listens on."""
    assert NGINX is not None, "expected nginx in continuous integration"
    folder.mkdir()
    port = free_port()
    (folder / "halftruth.conf").write_text(
        Template(TEMPLATE.read_text("ascii")).safe_substitute(
            PROXY_LISTEN=f"{HOST}:{port}",
            PROXY_NAME="localhost",
            PROXY_CERTIFICATE=certs / "server.crt",
            PROXY_KEY=certs / "server.key",
            SUPERLINK_ADDRESS=f"{HOST}:{superlink}",
            SUPERLINK_NAME="localhost",
            SUPERLINK_CA=certs / "ca.crt",
        )
    )
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
    processes.start(name, [NGINX, "-e", f"{folder}/error.log", "-p", str(folder), "-c", f"{folder}/nginx.conf"])
    assert wait_until_ready(processes, name, port), processes.log(name).read_text()
    return port


@dataclass(frozen=True)
class Federation:
    """Everything behind the proxy, and what an outsider has. `state`: the server's folder; `inner`: its Flower home."""

    processes: Processes
    state: Path
    inner: Path
    outside: Outside
    certs: Path

    @property
    def inner_port(self) -> int:
        """Where the SuperLink listens on the loopback interface."""
        return int((self.inner / "config.toml").read_text("ascii").split("127.0.0.1:")[1].split('"')[0])


def image_command(image: str, instruction: str, **places: object) -> list[str]:
    """What an image runs, by this Python and with other places."""
    (line,) = re.findall(rf"(?m)^(?:{instruction}) (\[.*)$", (DEPLOY / f"docker/Dockerfile.{image}").read_text("utf-8"))
    start, *words = json.loads(line)
    told = {
        "SERVER_STATE": "/var/lib/halftruth",
        "CERTS": "/etc/halftruth/certs",
        "NODE_FILE": "/etc/halftruth/node.toml",
    }
    told |= {"SERVER_PORT": "8000", "NODE_PORT": "9094"}
    replaced = {told[name]: str(place) for name, place in places.items()}
    words = [replaced.get(word, word) for word in words]
    return [sys.executable, *(["-m", "studies"] if start == "halftruth" else []), *words]


def start_server(processes: Processes, state: Path, certs: Path) -> Record:
    """Start what the image of the server starts, and wait until it says that it is ready."""
    port = free_port()
    places = {"SERVER_STATE": state, "CERTS": certs, "SERVER_PORT": port}
    processes.start("server", image_command("server", "CMD", **places), PYTHONPATH=str(ROOT))
    deadline = time.monotonic() + SECONDS
    while "ready at" not in processes.log("server").read_text():
        assert time.monotonic() < deadline and processes.lives("server"), processes.log("server").read_text()
        time.sleep(0.1)
    probe = image_command("server", " +CMD", CERTS=certs, SERVER_PORT=port)
    assert subprocess.run(probe, cwd=ROOT, check=False).returncode == 0, "the image's own probe"
    record = read(State(state))
    assert record is not None
    return record


@pytest.fixture(scope="module")
def federation(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """A server on loopback with TLS and node keys, nginx before it, and two nodes whose keys are registered."""
    folder = tmp_path_factory.mktemp("nginx")
    certs, state = folder / "certs", folder / "state"
    ensure(certs)
    with private_home(folder / "logs") as processes:
        record = start_server(processes, state, certs)
        port = start_proxy(processes, folder / "nginx", certs, int(record.address.rpartition(":")[2]))
        words = {}
        for client in range(NODES):
            key = folder / f"node-{client}"
            ensure_key(key)
            assert main(["keys", "register", key.name, f"{key}.pub", "--state", str(state)]) == 0
            plain = node_toml(load(small).study, client, NODES, f"localhost:{port}")
            way = f'root_certificates = "{certs / "ca.crt"}"\nkey = "{key}"'
            file = folder / f"{key.name}.toml"
            file.write_text(plain.replace("insecure = true", way))
            words[key.name] = ("--config", str(file))
        nodes = Nodes(processes, words).start()
        nodes.wait()
        for number in nodes.ports.values():
            probe = image_command("node", " +CMD", NODE_PORT=number)
            assert subprocess.run(probe, cwd=ROOT, check=False).returncode == 0, "the image's own probe"
        outside = Outside(port, certs / "ca.crt", configure(folder / "outside", port, certs / "ca.crt"))
        yield Federation(processes, state, Path(record.home), outside, certs)


def test_a_study_through_the_proxy_has_the_bits_of_one_process(
    federation: Federation, command: Callable[..., Any], reference: pa.Table
) -> None:
    run = command("--on", "deployment", "--federation", str(federation.state))
    code, said = run.end()
    assert code == 0, said
    assert pq.read_table(run.out / "results.parquet").drop_columns("runtime").equals(reference)
    federation.processes.check()
    log = (federation.state.parent / "nginx/access.log").read_text()
    assert log.count("/v1/fleet/push-messages") >= NODES, "nodes came through the proxy"


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_an_outsider_reaches_nothing_but_the_nodes_paths(federation: Federation, method: str) -> None:
    outside = federation.outside
    assert {path: status for path in CLOSED if (status := outside.status(method, path)) != 403} == {}


def test_what_is_open_is_open_in_one_way(federation: Federation) -> None:
    outside = federation.outside
    assert outside.status("GET", "/health") == 200
    assert outside.status("POST", "/health") == 403
    assert outside.status("GET", "/v1/fleet/pull-messages") == 403
    assert outside.status("POST", "/v1/fleet/pull-messages") == 401, "without a registered key"


def test_an_outsider_can_neither_start_a_run_nor_register_a_key(federation: Federation, tmp_path: Path) -> None:
    app, key = stage(tmp_path / "app"), tmp_path / "mine"
    ensure_key(key)
    for words in (("run", str(app), "lab"), ("supernode", "register", f"{key}.pub", "lab"), ("list", "lab")):
        done = federation.outside.flwr(*words)
        assert done.returncode != 0 and "403" in done.stdout + done.stderr, (words, done.stdout, done.stderr)
    listed = flwr(federation.inner, "supernode", "list", "private", "--format", "json")
    assert listed.stdout.count('"node-id"') == NODES, listed.stdout


def test_a_node_with_a_key_that_nobody_registered_ends(federation: Federation, tmp_path: Path) -> None:
    outside, key = federation.outside, tmp_path / "mine"
    ensure_key(key)
    words = ["flower-supernode", "--superlink", f"localhost:{outside.port}", "--root-certificates"]
    words += [str(outside.authority), "--auth-supernode-private-key", str(key), "--port", str(free_port())]
    child = federation.processes.start("stranger", words)
    try:
        assert child.wait(SECONDS) != 0
    finally:
        federation.processes.forget("stranger")
    assert "2004" in federation.processes.log("stranger").read_text()


def test_the_proxy_does_not_speak_to_another_superlink(federation: Federation, tmp_path: Path) -> None:
    """A server whose certificate somebody else signed gets nothing: here the SuperLink itself, by another CA."""
    other, _ = ensure(tmp_path / "other")
    shutil.copy(other.authority, tmp_path / "ca.crt")
    for name in ("server.crt", "server.key"):
        shutil.copy(federation.certs / name, tmp_path / name)
    port = start_proxy(federation.processes, tmp_path / "nginx", tmp_path, federation.inner_port, "proxy")
    assert Outside(port, federation.certs / "ca.crt", tmp_path).status("GET", "/health") == 502
    assert "upstream SSL certificate verify error" in (tmp_path / "nginx/error.log").read_text()
