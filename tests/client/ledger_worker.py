"""Children that answer and are killed: run by test_ledger_processes.py in a process of its own, which forks.

`kill FOLDER COUNT`: COUNT times, a child answers one task after the other, appending every reply to `released`, until
it is killed with SIGKILL at a random moment. `race FOLDER CHILDREN TRIES`: children spend at once, each line of
`released` being one success. `die FOLDER FUNCTION`: a child answers and kills itself when FUNCTION of
`client.labeler` or `Asked` has returned, inside the ledger's transaction.
"""

import os
import random
import signal
import sys
import time
from decimal import Decimal
from pathlib import Path

from client import labeler
from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.payloads import Asked
from client.policy import Policy
from client.sources.loading import read_table
from protocol.codec import decode_reply, encode_task
from protocol.features import row_bound
from protocol.grid import exponent
from protocol.messages import Mechanism, Refusal, Runs, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust

TRUSTS = frozenset({Trust.LOCAL, Trust.CENTRAL})


def node(folder: Path, cap: str) -> Node:
    """The folder's node, its ledger opened anew as after a restart."""
    table = read_table(folder / "votes.csv", public=False)
    policy = Policy(trusts=TRUSTS, label_cap=Decimal(cap))
    return Node(table, policy, DiskLedger(folder / "ledger.sqlite"), "os", FeatureStore(None))


def task(room: Node, trust: Trust, epsilon: str, study: bytes, rows: Runs | None = None) -> bytes:
    """A task about the folder's file."""
    pairs = room.source.pairs  # type: ignore[attr-defined]
    problem, n, level = Problem(4, "items", True, None, pairs), len(pairs), Decimal(epsilon)
    central = trust is Trust.CENTRAL
    failure = Decimal("1e-6") if central else None
    parameters = {"epsilon": level} | ({"delta": failure} if failure else {})
    menu = Mechanism.of("gaussian-statistic" if central else "randomized-response", **parameters)
    grid = exponent(n, row_bound(problem, None)) if central else None
    return encode_task(
        Task(study, trust, Unit.LABEL, problem, (menu,), n, level, failure, 0, 1, rows=rows, exponent=grid)
    )


def release(folder: Path, raw: bytes, reply: bytes) -> None:
    """One line, written at once: what has left the client."""
    line = f"{raw.hex()} {reply.hex()}\n".encode()
    descriptor = os.open(folder / "released", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line)
    os.close(descriptor)


def answer_for_ever(folder: Path, seed: int) -> None:
    """Random tasks about random rows, until killed."""
    choose = random.Random(seed)
    room = node(folder, "1000000")
    while True:
        rows = Runs.of([0, *sorted(choose.sample(range(1, 24), choose.randint(0, 23)))])
        trust = choose.choice([Trust.LOCAL, Trust.LOCAL, Trust.CENTRAL])
        raw = task(room, trust, choose.choice(["0.1", "0.25", "1"]), choose.randbytes(32), rows)
        release(folder, raw, answer(raw, room))


def kill(folder: Path, count: int) -> None:
    """Fork and kill, again and again, within the time of four answers: a busy machine needs more of it."""
    choose = random.Random(count)
    begin = time.monotonic()
    room = node(folder, "1000000")
    raw = task(room, Trust.LOCAL, "1", bytes(32))
    release(folder, raw, answer(raw, room))
    span = time.monotonic() - begin
    for seed in range(count):
        child = os.fork()
        if child == 0:
            answer_for_ever(folder, seed)
        time.sleep(choose.uniform(0.1, 4) * span)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def race(folder: Path, children: int, tries: int) -> None:
    """All children try to spend 0.1 under a cap of 1."""
    DiskLedger(folder / "ledger.sqlite")
    forked = []
    for number in range(children):
        child = os.fork()
        if child == 0:
            room = node(folder, "1")
            for step in range(tries):
                raw = task(room, Trust.CENTRAL, "0.1", bytes([number, step]) * 16)
                reply = answer(raw, room)
                if not isinstance(decode_reply(reply), Refusal):
                    release(folder, raw, reply)
            os._exit(0)
        forked.append(child)
    for child in forked:
        assert os.waitpid(child, 0)[1] == 0


def die(folder: Path, function: str) -> None:
    """Fork a child that dies in the middle of an answer."""
    place = labeler if function == "report" else Asked
    inner = getattr(place, function)
    setattr(place, function, lambda *parts: (inner(*parts), os.kill(os.getpid(), signal.SIGKILL)))
    room = node(folder, "1")
    child = os.fork()
    if child == 0:
        raw = task(room, Trust.LOCAL, "1", bytes(32))
        release(folder, raw, answer(raw, room))
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


if __name__ == "__main__":
    action, where, *rest = sys.argv[1:]
    {"kill": kill, "race": race, "die": die}[action](Path(where), *(int(n) if n.isdigit() else n for n in rest))
