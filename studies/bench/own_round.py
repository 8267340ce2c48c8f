"""What a round costs in our own code, in one process: compute, serialisation, signatures."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from client.signing import signer, vouching
from deploy.node_keys import ensure_key
from protocol.codec import (
    decode_bundle,
    decode_reply,
    decode_task,
    decode_tasks,
    encode_bundle,
    encode_reply,
    encode_report,
    encode_task,
    sign_reply,
)
from protocol.messages import Refusal, Report
from protocol.study import cells
from server.rounds import play
from server.signatures import public_key, signed_by, tasks_signer
from studies.bench.measure import timed
from studies.in_process import in_process
from studies.load import Loaded

Exchange = tuple[list[bytes], list[bytes]]  # the tasks of a round, and all replies to them


@dataclass(frozen=True)
class Own:
    """CPU seconds of a round, of the server and all its clients."""

    compute: float
    serialisation: float
    signatures: float


def own(loaded: Loaded, clients: int, signed: bool) -> Own:
    """Play a study's rounds in one process, then only write and read their messages, then only sign and check them.

    `signed`: reports and tasks are, as in a careful federation.
    """
    _played(loaded, clients)  # kernels are compiled
    exchanges: list[Exchange] = []
    whole = timed(lambda: exchanges.extend(_played(loaded, clients)), time.process_time)
    inside = sum(_codec(*exchange) for exchange in exchanges)
    around = sum(_bundles(*exchange, clients) for exchange in exchanges)
    keys = _signing(exchanges, clients) if signed else 0.0
    rounds = len(exchanges)
    return Own(max(whole - inside, 0.0) / rounds, (inside + around) / rounds, keys / rounds)


def _played(loaded: Loaded, clients: int) -> list[Exchange]:
    """All exchanges of a study of one cell, with clients that have answered nothing yet."""
    room = in_process(loaded.study, loaded.truth, clients)
    exchanges: list[Exchange] = []

    def ask(tasks: list[bytes]) -> list[bytes]:
        replies = room.ask(tasks)
        exchanges.append((tasks, replies))
        return replies

    (cell,) = cells(loaded.study)
    for _ in play(loaded.study, cell, ask, room.server):
        pass
    return exchanges


def _codec(tasks: list[bytes], replies: list[bytes]) -> float:
    """Tasks written once and read by every client, reports written, replies read: what one process does as well."""
    asked, reports = [decode_task(raw) for raw in tasks], [_reports(raw) for raw in replies]

    def work() -> None:
        for task in asked:
            encode_task(task)
        for place, raw in enumerate(replies):
            decode_task(tasks[place % len(tasks)])
            encode_reply([(encode_report(report), b"") for report in reports[place]])
            decode_reply(raw)

    return timed(work, time.process_time)


def _bundles(tasks: list[bytes], replies: list[bytes], clients: int) -> float:
    """What is around tasks and replies where they leave a process: a bundle to each client, and one back."""
    each = len(tasks)

    def work() -> None:
        raw = encode_bundle(tasks)
        for client in range(clients):
            decode_tasks(raw)
            decode_bundle(encode_bundle(replies[client * each : (client + 1) * each]))

    return timed(work, time.process_time)


def _signing(exchanges: list[Exchange], clients: int) -> float:
    """The server signs a round's tasks, each client checks that, and signs its reports, which the server checks."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        own_key = public_key(ensure_key(path)[0].line, "a round's key")
        sign, vouched, sign_tasks = signer(path), vouching(path.with_name("key.pub")), tasks_signer(path)

    def work() -> None:
        for tasks, replies in exchanges:
            signature = sign_tasks(tasks)
            for _ in range(clients):
                vouched(tasks, signature)
            for raw in replies:
                answer = decode_reply(sign_reply(raw, sign))
                assert not isinstance(answer, Refusal)
                assert all(signed_by(own_key, one.raw, one.signature) for one in answer)

    return timed(work, time.process_time)


def _reports(raw: bytes) -> list[Report]:
    answer = decode_reply(raw)
    return [] if isinstance(answer, Refusal) else [one.report for one in answer]
