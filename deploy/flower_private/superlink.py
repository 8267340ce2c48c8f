"""Flower's SuperLink in this process, answering routine calls with less work.

`python -P superlink.py PROGRAM WORDS OF flower-superlink`; with another Flower it becomes PROGRAM, with a
warning. A call of a node or of a server's app passes through eight layers, of which four only look at the Control API
and one only writes a log that is off: those are left out. What decides who may call is untouched: the signatures of
nodes, the tokens of tasks. Needs the standard library and Flower only.
"""

import inspect
import os
import sys
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from importlib import import_module, metadata
from typing import Any

VERSION = "1.42."
CONTROL = "flwr.superlink.routers.control.middlewares"
FLEET = "flwr.superlink.routers.fleet.middlewares"
SOURCE = {  # how often these say what is relied on below
    CONTROL: {
        "(BaseHTTPMiddleware)": 4,
        "if not _is_control_path(request.url.path) or _is_control_sensitive_route(": 1,
        "if self._license_plugin is None or not _is_control_path(request.url.path):": 1,
        "if not _is_control_path(request.url.path) or _is_control_auth_route(request):": 1,
        "if _is_control_sensitive_route(request):": 1,
        'return path.startswith("/v1/control/")': 1,
        '("POST", "/v1/control/': 5,
        '("POST", "': 5,
    },
    FLEET: {
        "(BaseHTTPMiddleware)": 1,
        "if plugin is None or not isinstance(protobuf_request, Message):": 1,
        'request.app.state, "fleet_event_log_plugin", None': 1,
    },
    "flwr.superlink.main": {"middleware=_get_middleware(),": 1, "Middleware(": 8, "Middleware(Control": 4},
    "fastapi.dependencies.utils": {"await run_in_threadpool(call, **solved_result.values)": 1},
}
LAYERS = {  # that let routine calls through unchanged; the last where there is no such plugin
    "ControlSensitiveResponseMiddleware": "",
    "ControlAuthenticationMiddleware": "",
    "ControlLicenseMiddleware": "",
    "ControlEventLogMiddleware": "",
    "FleetEventLogMiddleware": "fleet_event_log_plugin",
}
ROUTINE = ("/v1/fleet/", "/v1/runtime/")
AT_HAND = {  # what only reads a variable: asked in place and not in a thread of its own
    "flwr.superlink.dependencies.linkstate": "get_linkstate",
    "flwr.supercore.protobuf.translation": "get_protobuf_request",
}
Scope = MutableMapping[str, Any]
App = Callable[..., Awaitable[None]]


class Past:
    """A layer that routine calls go past, as they would go through it: unless the app has the plugin that it serves."""

    def __init__(self, app: App, layer: Callable[[App], App], plugin: str) -> None:
        self._app, self._layer, self._plugin = app, layer(app), plugin

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer one call."""
        routine = scope["type"] == "http" and scope["path"].startswith(ROUTINE)
        past = routine and (not self._plugin or getattr(scope["app"].state, self._plugin) is None)
        await (self._app if past else self._layer)(scope, receive, send)


def unfit() -> str | None:
    """Why the installed Flower is not the one that these changes were made for; None where it is."""
    version = metadata.version("flwr")
    if not version.startswith(VERSION):
        return f"expected flwr {VERSION}x, got {version}"
    try:
        sources = {name: inspect.getsource(import_module(name)) for name in SOURCE}
        for name, part in AT_HAND.items():
            getattr(import_module(name), part)
    except (ImportError, OSError, AttributeError) as error:
        return f"expected the parts of flwr {VERSION}x, got {error}"
    for name, counts in SOURCE.items():
        for words, count in counts.items():
            if (found := sources[name].count(words)) != count:
                return f"expected {words!r} {count} times in {name}, got {found}"
    return None


def change() -> None:
    """Leave out what routine calls do not need, of an app that is made after this."""
    main, utils = import_module("flwr.superlink.main"), import_module("fastapi.dependencies.utils")
    layers, thread = main._get_middleware, utils.run_in_threadpool
    at_hand = frozenset(getattr(import_module(name), part) for name, part in AT_HAND.items())

    async def ask(call: Callable[..., Any], **values: Any) -> Any:
        return call(**values) if call in at_hand else await thread(call, **values)

    setattr(main, "_get_middleware", lambda: [_past(layer) for layer in layers()])  # noqa: B010
    setattr(utils, "run_in_threadpool", ask)  # noqa: B010


def _past(layer: Any) -> Any:
    """A layer, or a way past it."""
    name = layer.cls.__name__
    return type(layer)(Past, layer.cls, LAYERS[name]) if name in LAYERS else layer


def main(words: Sequence[str]) -> int:
    """Be a SuperLink until it is ended."""
    why = unfit()
    if why is not None:
        print(f"halftruth: warning: Flower's own SuperLink serves, which is slower: {why}", file=sys.stderr)
        sys.stderr.flush()
        os.execv(words[0], list(words))
    change()
    sys.argv = list(words)
    return int(import_module("flwr.superlink.cli").flower_superlink() or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
