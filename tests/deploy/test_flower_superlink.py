"""A SuperLink that does less for routine calls answers all as Flower's own does; with another Flower it is that one."""

import asyncio
import base64
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.dependencies import utils
from flwr.common.constant import TIMESTAMP_HEADER
from flwr.proto.control_pb2 import GetLoginDetailsRequest, ListNodesRequest
from flwr.proto.fleet_pb2 import PullMessagesRequest, RegisterNodeFleetRequest
from flwr.proto.node_pb2 import Node
from flwr.proto.runtime_pb2 import GetNodesRequest
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.date import now
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes, sign_message
from flwr.supercore.protobuf.constants import PROTOBUF_MEDIA_TYPE
from flwr.superlink import main
from flwr.superlink.routers.control.middlewares import ControlAuthenticationMiddleware
from flwr.superlink.routers.fleet.middlewares import FleetEventLogMiddleware

from deploy.flower_private import superlink as flower_superlink

SECRET, KEY = generate_key_pairs()
RAW = public_key_to_bytes(KEY)
PULL = PullMessagesRequest(node=Node(node_id=7))


def signed(raw: bytes = RAW) -> dict[str, str]:
    at = now().isoformat()
    signature = sign_message(SECRET, at.encode())
    return {
        FLEET_HTTP_PUBLIC_KEY_HEADER: base64.b64encode(raw).decode(),
        FLEET_HTTP_SIGNATURE_HEADER: base64.b64encode(signature).decode(),
        TIMESTAMP_HEADER: at,
    }


CALLS: dict[str, tuple[str, Any, dict[str, str]]] = {
    "registering": ("/v1/fleet/register-node", RegisterNodeFleetRequest(public_key=RAW), signed()),
    "registering again": ("/v1/fleet/register-node", RegisterNodeFleetRequest(public_key=RAW), signed()),
    "another's node": ("/v1/fleet/pull-messages", PULL, signed()),
    "an unknown key": ("/v1/fleet/pull-messages", PULL, signed(public_key_to_bytes(generate_key_pairs()[1]))),
    "no signature": ("/v1/fleet/pull-messages", PULL, {}),
    "no token": ("/v1/runtime/get-nodes", GetNodesRequest(), {}),
    "control": ("/v1/control/list-nodes", ListNodesRequest(), {}),
    "sensitive": ("/v1/control/get-login-details", GetLoginDetailsRequest(), {}),
    "up": ("/v1/fleet/%2e%2e/control/list-nodes", ListNodesRequest(), {}),
    "two slashes": ("//v1/control/list-nodes", ListNodesRequest(), {}),
    "capitals": ("/V1/fleet/pull-messages", PULL, {}),
    "nothing": ("/v1/fleet/", PULL, {}),
}


@pytest.fixture
def stock() -> FastAPI:
    return main.create_app()


@pytest.fixture
def quick(stock: FastAPI, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setattr(main, "_get_middleware", main._get_middleware)
    monkeypatch.setattr(utils, "run_in_threadpool", utils.run_in_threadpool)
    flower_superlink.change()
    return main.create_app()


def answers(app: FastAPI) -> dict[str, tuple[int, dict[str, str], bytes]]:
    async def ask() -> dict[str, tuple[int, dict[str, str], bytes]]:
        found = {}
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport) as client:
            for name, (path, message, more) in CALLS.items():
                told = {"content-type": PROTOBUF_MEDIA_TYPE, **more}
                reply = await client.post(f"http://here{path}", content=message.SerializeToString(), headers=told)
                by_chance = name in ("registering", "control")  # a node's number, and the time
                headers = {key: "" if by_chance else value for key, value in reply.headers.items()}
                found[name] = (reply.status_code, headers, b"" if by_chance else reply.content)
        return found

    return asyncio.run(ask())


def test_every_call_is_answered_as_by_flowers_own(stock: FastAPI, quick: FastAPI) -> None:
    expected, found = answers(stock), answers(quick)
    assert found == expected
    codes = {name: code for name, (code, _, _) in found.items()}
    assert codes["registering"] == 200, codes
    assert {codes[name] for name in ("another's node", "an unknown key", "no signature")} == {401}
    assert codes["no token"] in (401, 403)
    assert found["sensitive"][1]["cache-control"] == "no-store"


def test_layers_of_the_control_api_see_its_calls_alone(quick: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def note(self: Any, request: Any, call_next: Any) -> Any:
        seen.append(request.url.path)
        return await call_next(request)

    monkeypatch.setattr(ControlAuthenticationMiddleware, "dispatch", note)
    answers(quick)
    paths = [path for path, _, _ in CALLS.values()]
    assert "/v1/control/list-nodes" in seen and not any(path.startswith("/v1/fleet/") for path in seen)
    assert len(seen) == sum(not path.startswith(("/v1/fleet/", "/v1/runtime/")) for path in paths)


def test_an_event_log_is_written_where_there_is_one(quick: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def note(self: Any, request: Any, call_next: Any) -> Any:
        seen.append(request.url.path)
        return await call_next(request)

    monkeypatch.setattr(FleetEventLogMiddleware, "dispatch", note)
    answers(quick)
    assert not any(path.startswith("/v1/fleet/") for path in seen)
    quick.state.fleet_event_log_plugin = SimpleNamespace()
    answers(quick)
    assert "/v1/fleet/register-node" in seen


def test_the_installed_flower_is_the_one_that_it_was_made_for() -> None:
    assert flower_superlink.unfit() is None


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("VERSION", "1.41.", "expected flwr 1.41.x, got 1.42"),
        ("SOURCE", {"flwr.nowhere": {}}, "expected the parts of flwr 1.42.x, got No module named 'flwr.nowhere'"),
        (
            "SOURCE",
            {"flwr.superlink.main": {"Middleware(": 7}},
            "expected 'Middleware(' 7 times in flwr.superlink.main",
        ),
        ("AT_HAND", {"flwr.superlink.main": "nothing"}, "has no attribute 'nothing'"),
    ],
)
def test_another_flower_is_told(monkeypatch: pytest.MonkeyPatch, name: str, value: object, said: str) -> None:
    monkeypatch.setattr(flower_superlink, name, value)
    assert said in str(flower_superlink.unfit())


def test_with_another_flower_it_becomes_the_stock_one_with_a_warning(tmp_path: Path) -> None:
    changed = tmp_path / "changed.py"
    source = Path(flower_superlink.__file__).read_text("utf-8")
    changed.write_text(source.replace('VERSION = "1.42."', 'VERSION = "1.41."'))
    words = [sys.executable, "-P", str(changed), "/bin/echo", "--insecure"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "--insecure\n"
    assert "warning: Flower's own SuperLink serves, which is slower: expected flwr 1.41.x, got" in done.stderr
