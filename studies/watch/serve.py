"""`halftruth watch --serve`: the same as a page, by a server that only reads, on the loopback interface by default."""

import ipaddress
import socket
import threading
import time
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import HTMLResponse, JSONResponse

from protocol.strict import StudyError, told
from studies.report.arms import looks
from studies.terminal import print_line
from studies.watch.budgets import Budgets, Left
from studies.watch.look import Seen, Watch
from studies.watch.nodes import budget_notes, message_rows, words_of
from studies.watch.page import text_of
from studies.watch.show import document, lines, standing

LOOPBACK = ["127.0.0.1", "localhost", "["]  # the last is [::1] as far as it is compared: up to a colon
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}
ENDING = 2  # seconds that open connections may take when it ends


def application(watch: Watch | None, budgets: Budgets, every: float, hosts: list[str]) -> FastAPI:
    """The page at / and what it asks for at /seen.json; for requests to `hosts` only, so that no other site's name
    can be made to lead here.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    text, lock = text_of(every), threading.Lock()

    @app.get("/", response_class=HTMLResponse)
    def index(request: Request) -> Response:
        return HTMLResponse(text, headers=HEADERS)

    @app.get("/seen.json")
    def seen(request: Request) -> Response:
        with lock:  # the watch remembers what it has read
            return JSONResponse(_said(watch, budgets), headers=HEADERS)

    return app


def serve(watch: Watch | None, budgets: Budgets, every: float, host: str, port: int) -> None:
    """Serve the page until Ctrl-C. Raises StudyError where the address cannot be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise StudyError(
            f"--host, --port: expected an address that is free here, got {host}:{port}: {told(error)}"
        ) from None
    named = f"[{host}]" if ":" in host else host
    with listening:
        print_line(f"Page: http://{named}:{listening.getsockname()[1]}/ (Ctrl-C ends it, and does nothing to the run)")
        if not _loops(host):
            print_line(
                "Whoever reaches this address sees errors, budgets, names of arms and nodes: it asks for no password."
            )
        config = uvicorn.Config(
            application(watch, budgets, every, _hosts(host, named)),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=ENDING,
        )
        uvicorn.Server(config).run(sockets=[listening])


def _hosts(host: str, named: str) -> list[str]:
    """Names under which the page may be asked for; any where it listens on all interfaces."""
    if host in ("0.0.0.0", "::"):
        return ["*"]
    return LOOPBACK if _loops(host) else [named.partition(":")[0], *LOOPBACK]


def _loops(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _said(watch: Watch | None, budgets: Budgets) -> dict[str, Any]:
    """What the page shows: the JSON document, and the same in words."""
    found, seen, words = budgets.look(), None, "budgets of nodes on this machine"
    try:
        seen = None if watch is None else watch.look(time.time())
    except StudyError as error:
        words = f"waits for a run: {error}"
    totals = [
        (one.node if at == 0 else "", f"a {each.whose}, {each.total}", *words_of(each), _share(each))
        for one in found
        for at, each in enumerate(one.lefts)
    ]
    told: dict[str, Any] = {"totals": totals, "budget_lines": list(budget_notes(found))}
    if seen is None:
        return {**document(None, found), **told, "standing": words}
    rows = list(message_rows(seen.messages)) if seen.messages.rounds else []
    told |= {"standing": standing(seen), "kinds": rows, "lines": list(lines(seen)), "arms": _arms(seen)}
    return {**document(seen, found), **told}


def _arms(seen: Seen) -> list[tuple[str, str, str]]:
    """(name, label, trust) of the study's arms, in its order."""
    labels = looks(seen.arms)
    return [(arm.name, labels[arm.name].label, "none" if arm.trust is None else arm.trust.label) for arm in seen.arms]


def _share(each: Left) -> float | None:
    """How much of a cap is spent, from 0 to 1."""
    return None if each.cap is None else min(1.0, float(each.spent / each.cap))
