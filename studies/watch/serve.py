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
from studies.terminal import print_line
from studies.watch.look import Watch
from studies.watch.show import FOUND, LOOKING, document, head, lines
from studies.web.markup import Markup, tag
from studies.web.page import LOOK, own, page

LOOPBACK = ["127.0.0.1", "localhost", "["]  # the last is [::1] as far as it is compared: up to a colon
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}
ENDING = 2  # seconds that open connections may take when it ends


def application(watch: Watch, every: float, hosts: list[str]) -> FastAPI:
    """The page at / and what it asks for at /seen.json; for requests to `hosts` only, so that no other site's name
    can be made to lead here.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    text, lock = _page(every), threading.Lock()

    @app.get("/", response_class=HTMLResponse)
    def index(request: Request) -> Response:
        return HTMLResponse(text, headers=HEADERS)

    @app.get("/seen.json")
    def seen(request: Request) -> Response:
        with lock:  # the watch remembers what it has read
            return JSONResponse(_said(watch), headers=HEADERS)

    return app


def serve(watch: Watch, every: float, host: str, port: int) -> None:
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
            print_line("Whoever reaches this address sees errors, names of arms and nodes: it asks for no password.")
        config = uvicorn.Config(
            application(watch, every, _hosts(host, named)),
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


def _said(watch: Watch) -> dict[str, Any]:
    try:
        seen = watch.look(time.time())
    except StudyError as error:
        return {"state": None, "head": f"Waits for a run: {error}"}
    return {**document(seen), "head": head(seen), "lines": list(lines(seen))}


def _page(every: float) -> str:
    top = tag(
        "header",
        tag("a", "Skip to the run", href="#main", class_="skip"),
        tag("span", "halftruth watch", class_="name"),
        tag("button", "Colours: system", type="button", id="theme"),
        class_="top",
    )
    units = _table("Units that are finished, by n", "units", ("n", "progress", "units", "repetitions"), (0, 1))
    heads = ("arm", "mean", "95 % interval", "repetitions", "on a logarithmic axis")
    errors = tag(
        "section",
        tag("h2", "Errors so far"),
        tag("div", id="controls", class_="controls"),
        _table(f"{FOUND[0].upper()}{FOUND[1:]}", "errors", heads, (0, 4)),
        tag("p", LOOKING, class_="small quiet"),
        id="errors-part",
        hidden=True,
    )
    said = tag("section", tag("h2", "Notes"), tag("ul", id="lines"), id="lines-part", hidden=True)
    main = tag(
        "main",
        tag("h1", "A run"),
        tag("p", "Looking.", id="state", class_="state", role="status"),
        tag("p", id="lost", class_="lost", role="alert"),
        tag("div", tag("section", tag("h2", "Progress"), units), errors, said, id="run", hidden=True),
        tag("noscript", tag("p", "This page needs JavaScript, which it brings along.")),
        id="main",
    )
    styles = [*own("studies.web", LOOK), *own("studies.watch.html", ("watch.css",))]
    scripts = [*own("studies.web", ("theme.js", "dom.js")), *own("studies.watch.html", ("watch.js",))]
    return page("halftruth watch", tag("div", top, main), {"every": every}, styles, scripts, asks=True)


def _table(caption: str, name: str, heads: tuple[str, ...], text: tuple[int, ...]) -> Markup:
    """A table whose body the page's script fills."""
    cells = [tag("th", word, scope="col", class_="text" if at in text else None) for at, word in enumerate(heads)]
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *cells)), tag("tbody", id=name))
    return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)
