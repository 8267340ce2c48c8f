"""The page's server: for the page of this run alone, whatever else runs on the machine or stands in the browser."""

import itertools
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from client.answers import FIRST
from studies.label.serve import MOST, server_of
from studies.label.session import Session

WORD = "w" * 64
OWN = {"Authorization": f"Bearer {WORD}"}
Open = Callable[..., Session]


@pytest.fixture
def one(session: Open) -> Session:
    return session("--as", "p1")


@pytest.fixture
def page(one: Session) -> Iterator[httpx.Client]:
    """A real server on a port of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = server_of(one, WORD)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
            yield client
        server.should_exit = True
        thread.join()


def key_of(page: httpx.Client) -> str:
    found: str = page.post("/state", json={}, headers=OWN).json()["pair"]["key"]
    return found


def test_the_page_holds_no_pair_and_no_password_and_loads_nothing(page: httpx.Client) -> None:
    reply = page.get("/")
    assert reply.status_code == 200 and "tea" not in reply.text and WORD not in reply.text
    assert "default-src 'none'" in reply.text and "connect-src 'self'" in reply.text and "unsafe" not in reply.text
    assert reply.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert reply.headers["Cache-Control"] == "no-store" and reply.headers["Referrer-Policy"] == "no-referrer"


STRANGERS: tuple[dict[str, Any], ...] = (
    {},
    {"Authorization": "Bearer x"},
    {"Authorization": f"Bearer {WORD[1:]}"},
    {"Authorization": WORD},
    {"Authorization": "Bearer é".encode("latin-1")},
    {**OWN, "Origin": "https://evil.example"},
    {**OWN, "Origin": "null"},
    {**OWN, "Origin": "http://127.0.0.1:9"},
    {**OWN, "Sec-Fetch-Site": "cross-site"},
    {**OWN, "Sec-Fetch-Site": "same-site"},
)


def test_others_are_refused_and_change_nothing(page: httpx.Client, one: Session) -> None:
    for headers, what in itertools.product(STRANGERS, ("state", "about", "review", "answer", "undo", "release")):
        reply = page.post(f"/{what}", json={"pair": one.pairs.all[0].key, "answer": FIRST}, headers=headers)
        assert reply.status_code == 403 and "tea" not in reply.text
        assert not one.answers.now


def test_other_names_do_not_lead_here(page: httpx.Client) -> None:
    for host in ("evil.example", "evil.example:8471", "127.0.0.1.evil.example", "[::1]"):
        assert page.get("/", headers={"Host": host}).status_code == 400
        assert page.post("/state", json={}, headers={**OWN, "Host": host}).status_code == 400


def test_no_address_says_or_changes_anything(page: httpx.Client, one: Session) -> None:
    """Not even with the password: answers come in bodies."""
    for what in ("state", "answer", "release", f"answer?pair={one.pairs.all[0].key}&answer=first"):
        assert page.get(f"/{what}", headers=OWN).status_code == 405
    assert page.options("/answer", headers={"Origin": "https://evil.example"}).status_code == 405
    assert page.post("/nothing", json={}, headers=OWN).status_code == 404
    assert page.get("/docs").status_code == 405 and page.get("/openapi.json").status_code == 405
    assert not one.answers.now


ODD = (
    b"",
    b"[]",
    b"[" * 4000,
    b'{"pair": "secret"}',
    b'{"pair": "secret", "answer": "first"}',
    b'{"pair": ["secret"], "answer": "first"}',
    b'{"pair": "KEY", "answer": "secret"}',
    b'{"pair": "KEY", "answer": ["secret"]}',
    b'{"pair": "KEY", "answer": "first", "more": "secret"}',
    b'{"pair": "KEY", "answer": "first", "secret": ' + b" " * MOST + b"1}",
    b"\xff\xfe",
)


def test_what_is_no_answer_is_refused_and_not_repeated(page: httpx.Client, one: Session) -> None:
    headers = {**OWN, "Content-Type": "application/json"}
    for body in ODD:
        reply = page.post("/answer", content=body.replace(b"KEY", key_of(page).encode()), headers=headers)
        assert reply.status_code == 400 and reply.json()["error"].startswith(("expected", "["))
        assert "secret" not in reply.text and not one.answers.now
    assert page.post("/answer", content=b"{}", headers={**OWN, "Content-Type": "text/plain"}).status_code == 400


def test_answers_are_given_and_nothing_is_logged(
    page: httpx.Client, one: Session, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    key = key_of(page)
    told = page.post(
        "/answer", json={"pair": key, "answer": "tie"}, headers={**OWN, "Origin": str(page.base_url).rstrip("/")}
    ).json()
    assert told["counts"]["answered"] == 1 and told["undo"] and told["pair"]["key"] != key
    assert page.post("/undo", json={}, headers=OWN).json()["pair"]["key"] == key
    page.post("/answer", json={"pair": key, "answer": "first"}, headers=OWN)
    assert page.post("/release", json={"answered": 2, "skipped": 0}, headers=OWN).status_code == 409
    assert page.post("/release", json={"answered": 1, "skipped": 0}, headers=OWN).json()["counts"]["released"] == 1
    assert page.post("/answer", json={"pair": key, "answer": "second"}, headers=OWN).status_code == 409
    assert [
        (pair["answer"], pair["released"]) for pair in page.post("/review", json={}, headers=OWN).json()["pairs"]
    ] == [
        ("first", True),
        (None, False),
        (None, False),
    ]
    said = "".join((caplog.text, *capfd.readouterr()))
    assert key not in said and "first" not in said and WORD not in said


def test_what_goes_wrong_is_told_without_its_text(
    page: httpx.Client, one: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the secret answer is first")

    monkeypatch.setattr(one.answers, "put", fail)
    reply = page.post("/answer", json={"pair": key_of(page), "answer": "first"}, headers=OWN)
    assert reply.status_code == 500 and "secret" not in reply.text + caplog.text and "RuntimeError" in caplog.text


def test_a_disk_that_is_full_is_told(page: httpx.Client, one: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "answers.json")

    monkeypatch.setattr("client.answers.replace_private", full)
    reply = page.post("/answer", json={"pair": key_of(page), "answer": "first"}, headers=OWN)
    assert reply.status_code == 507 and reply.json()["error"] == "not kept: answers.json: No space left on device"
    assert not one.answers.now
