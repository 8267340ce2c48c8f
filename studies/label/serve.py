"""The page's server: on the loopback interface alone, for whoever has the password of this run and nobody else.

Answers come in bodies of POST, never in addresses; nothing that comes is logged, and no error repeats it.
"""

import hmac
import json
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import HTMLResponse, JSONResponse

from client.answers import Frozen
from client.draws import password
from protocol import strict
from protocol.strict import StudyError, told
from studies.label.page import page_of
from studies.label.session import OtherCounts, Session
from studies.terminal import print_line

HOST = "127.0.0.1"
NAMES = [HOST, "localhost"]
MOST = 1 << 12  # bytes of a request
ENDING = 2  # seconds that open connections may take when it ends
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page's own policy, in its head, cannot say that
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
FORBIDDEN, CONFLICT, FULL, WRONG, BROKEN = 403, 409, 507, 400, 500
_log = logging.getLogger("halftruth.label")
Content = dict[str, Any]


class _Refused(Exception):
    """A request that does not come from the page of this run."""


def application(session: Session, word: str) -> FastAPI:
    """The page at /, which holds no pair, and what it asks for, with the password `word` in a header.

    The password keeps out other users of the machine; that no other site can set the header, pages in the same
    browser. Requests to other names than this machine's are refused, so that no name can be made to lead here.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=NAMES)
    text, lock = page_of(), threading.Lock()

    @app.get("/", response_class=HTMLResponse)
    def index() -> Response:
        return HTMLResponse(text, headers=HEADERS)

    @app.post("/{what}")
    async def act(what: str, request: Request) -> Response:
        try:
            content = await _content(request, word)
            with lock:
                return JSONResponse(ACTS[what](session, content), headers=HEADERS)
        except Exception as error:  # its text could hold an answer: only what is ours is told
            code, said = _words(error)
            return JSONResponse({"error": said}, code, headers=HEADERS)

    return app


def server_of(session: Session, word: str) -> uvicorn.Server:
    """A server of the page, which logs no request."""
    config = uvicorn.Config(
        application(session, word),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=ENDING,
        ws="none",
    )
    return uvicorn.Server(config)


def serve(session: Session, port: int) -> None:
    """Serve the page until Ctrl-C. Raises StudyError for a port that is taken."""
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise StudyError(f"--port: expected one that is free, got {port}: {told(error)}; 0 takes any") from None
    word = password()
    with listening:
        counts = session.state()["counts"]
        print_line(
            f"{counts['all']} pairs of {session.pairs.labeler}, {counts['left']} to answer. Open this page, and show "
            "its address to nobody:"
        )
        print_line(f"http://{HOST}:{listening.getsockname()[1]}/#{word}", "bold")
        print_line(f"Answers are kept in {session.folder}. Ctrl-C ends the page and its node; start it again to go on.")
        server_of(session, word).run(sockets=[listening])


async def _content(request: Request, word: str) -> Content:
    """What the page says, once it is known to be the page. Raises _Refused, ValueError."""
    headers = request.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
    mine = (None, f"http://{headers.get('host')}")
    given = headers.get("authorization", "").encode()
    if origin not in mine or site != "same-origin" or not hmac.compare_digest(given, f"Bearer {word}".encode()):
        raise _Refused
    if headers.get("content-type") != "application/json":
        raise ValueError("expected JSON, got something else")
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > MOST:
            raise ValueError(f"expected at most {MOST} bytes, got more")
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("expected JSON, got something else") from None
    if not isinstance(content, dict):
        raise ValueError("expected an object, got something else")
    return content


def _words(error: Exception) -> tuple[int, str]:
    """A status, and what may be said of an error."""
    if isinstance(error, _Refused):
        return FORBIDDEN, "expected the address that halftruth label printed when it was started last"
    if isinstance(error, KeyError):
        return 404, "expected something that this page asks for"
    if isinstance(error, Frozen | OtherCounts):
        return CONFLICT, str(error)
    if isinstance(error, OSError):
        return FULL, f"not kept: {told(error)}"
    if type(error) in (ValueError, StudyError):
        return WRONG, str(error)
    _log.warning("a request of the page failed: %s", type(error).__name__)
    return BROKEN, "not done: an error inside halftruth label"


def _state(session: Session, content: Content) -> Content:
    strict.table(content, "state", ("pair",))
    key = content.get("pair")
    return session.state(key if isinstance(key, str) else None)


def _about(session: Session, content: Content) -> Content:
    strict.table(content, "about", ())
    return session.about()


def _review(session: Session, content: Content) -> Content:
    strict.table(content, "review", ())
    return {"pairs": session.review()}


def _answer(session: Session, content: Content) -> Content:
    strict.table(content, "answer", ("pair", "answer"), ("pair", "answer"))
    key, kind = content["pair"], content["answer"]
    if not isinstance(key, str) or not isinstance(kind, str):
        raise ValueError("expected a pair and an answer, got something else")
    session.answer(key, kind)
    return session.state()


def _undo(session: Session, content: Content) -> Content:
    strict.table(content, "undo", ())
    return session.state(session.undo())


def _release(session: Session, content: Content) -> Content:
    keys = ("answered", "skipped")
    strict.table(content, "release", keys, keys)
    answered, skipped = (strict.integer(content[key], key, 0, 1 << 31) for key in keys)
    session.release(answered, skipped)
    return session.state()


ACTS: dict[str, Callable[[Session, Content], Content]] = {
    "state": _state,
    "about": _about,
    "review": _review,
    "answer": _answer,
    "undo": _undo,
    "release": _release,
}
