"""Bytes and processor time of one client and of the server in each trust model, over the messages of a deployment.

`python -m studies.bench.costs --size 100x10 --size 100x1000 --runs 5 --out costs.csv` prints a table and writes each
run (.csv or .json). Every client has one label. One exchange of all clients is played in one process: signed tasks,
signed reports, all stages of a session, the shuffler's desk with its file. What is measured of clients is the first
one, as if in a process of its own: nothing that others worked out is left for it.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from client.labeler import Node
from client.secure.membership import Derived, Membership, Pins, fingerprint_of, name_of
from client.shuffled import ToShuffler
from deploy.shuffler_desk import Desk
from deploy.shuffler_store import Store
from protocol.codec_parts import encode_problem
from protocol.study import Cell, Study
from protocol.trust import Trust
from server.batches import Shuffling
from server.exchange import Exchange
from server.listening import listen
from server.register import Known, Register
from server.tasks import offers
from studies.bench.costs_room import Clients, Key, Link, Meter, sign_tasks, sign_words
from studies.bench.costs_show import ENDINGS, Cost, table, write
from studies.cli import count
from studies.in_process import in_process
from studies.load import build

SEED, GROUP = 20261203, 50  # labelers a question, where there are as many
ARMS: dict[Trust, dict[str, Any]] = {
    Trust.CLEAR: {"estimator": "mle"},
    Trust.LOCAL: {"estimator": "rr-mle"},
    Trust.SHUFFLED: {"estimator": "rr-mle"},
    Trust.DISTRIBUTED: {"estimator": "mle"},
    Trust.CENTRAL: {"estimator": "mle"},
}


def key_of(number: int) -> Key:
    """A key that protects nobody."""
    return ec.derive_private_key(SEED + number, ec.SECP384R1())


def played(trust: Trust, clients: int, dimension: int, run: int, folder: Path) -> Cost:
    """One exchange of a trust model. Raises RoundFailed where not everybody answers, and AssertionError on a bug."""
    study, theta = study_of(trust, clients, dimension)
    server, keys, meter = key_of(0), [key_of(1 + number) for number in range(clients)], Meter()
    room = Clients(nodes_of(study, theta, keys), keys, server.public_key(), meter)
    names = [fingerprint_of(key.public_key()) for key in keys]
    register = Register(tuple(Known(f"n{at}", key.public_key(), at) for at, key in enumerate(keys, 1)))
    known = dict(zip(names, (key.public_key() for key in keys), strict=True))
    link = Link(
        Desk(Store(folder / f"{run}.sqlite"), dict.fromkeys(names, 1), server.public_key(), known), server, meter
    )
    opens = X25519PrivateKey.from_private_bytes(bytes(range(32)))
    if trust is Trust.SHUFFLED:
        room.people = [_through(link, at, room, opens, key) for at, key in enumerate(keys)]
    exchange = Exchange(room, list(room.nodes()), 1e6, True, register=register, sign=partial(sign_tasks, server))
    with meter.of("server"):
        (offer,) = offers(study, Cell(clients, 0, 1))
        assert offer.task is not None
        ask = Shuffling(link, opens).asking(exchange.ask) if trust is Trust.SHUFFLED else exchange.ask
        heard = listen([offer.task], ask)[offer.task]
    assert len(heard.collected.rows) == clients and exchange.seen["answered"] == clients * room.exchanges
    size = len(encode_problem(study.problem).SerializeToString(deterministic=True)) * room.tasks
    spent = (meter.seconds.get(name, 0.0) for name in ("client", "server", "shuffler"))
    return Cost(trust.label, clients, dimension, run, room.exchanges, room.up, room.down - size, size, *spent)


def study_of(trust: Trust, clients: int, dimension: int) -> tuple[Study, Any]:
    """A panel of a label a client, the same questions in every trust model, and its truth."""
    spread = np.linspace(1.0, -1.0, dimension) / dimension**0.5
    head = {"name": "costs", "seed": SEED, "repetitions": 1}
    problem = {
        "kind": "pairwise",
        "dimension": dimension,
        "features": "gaussian",
        "questions": max(1, clients // GROUP),
    }
    grid = {"n": [clients], "epsilon": [1.0], "delta": [1e-5]}
    arm = {"trust": trust.label, **ARMS[trust]}
    shape = {**problem, "bound": 3.0, "theta": spread.tolist()}
    loaded = build({"study": head, "problem": shape, "grid": grid, "arm": [arm]}, Path())
    return loaded.study, loaded.theta


def nodes_of(study: Study, theta: Any, keys: Sequence[Key]) -> list[Node]:
    """Clients with the system's coins; the first one has checked nobody's signature before."""
    publics = [key.public_key() for key in keys]
    first, others = Pins(publics), Pins(publics)

    def member(number: int) -> Membership:
        pins, key = others if number else first, keys[number]
        return Membership(partial(sign_words, key), name_of(publics[number]), pins, Derived(SEED, number))

    nodes = in_process(study, theta, len(keys)).nodes
    return [replace(node, entropy="os", seed=None, member=partial(member, number)) for number, node in enumerate(nodes)]


def _through(link: Link, number: int, room: Clients, opens: X25519PrivateKey, key: Key) -> Node:
    def count(size: int) -> None:
        room.up += size

    own = link if number else replace(link, count=count)
    to = ToShuffler(opens.public_key(), partial(sign_words, key), fingerprint_of(key.public_key()), own)
    return replace(room.people[number], shuffler=to)


def measured(sizes: Sequence[tuple[int, int]], runs: int, trusts: Sequence[Trust] = tuple(ARMS)) -> Iterator[Cost]:
    """Costs of each size, trust model and run; a small exchange of each model before compiles and imports."""
    with tempfile.TemporaryDirectory() as folder:
        for trust in trusts:
            played(trust, 4, 2, 0, Path(folder))
        for clients, dimension in sizes:
            for run in range(1, runs + 1):  # models in turn, so that a busy minute hits all of them
                for trust in trusts:
                    with tempfile.TemporaryDirectory(dir=folder) as own:
                        yield played(trust, clients, dimension, run, Path(own))


def size(text: str) -> tuple[int, int]:
    """Clients and numbers: 100x10. Raises argparse.ArgumentTypeError."""
    parts = text.split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"expected clients x numbers such as 100x10, got {text!r}")
    clients, dimension = map(int, parts)
    if clients < 3 or dimension < 1:
        raise argparse.ArgumentTypeError(f"expected 3 clients or more, and a number or more, got {text}")
    return clients, dimension


def file(text: str) -> Path:
    """Where runs go. Raises argparse.ArgumentTypeError."""
    if Path(text).suffix not in ENDINGS:
        raise argparse.ArgumentTypeError(f"expected a file that ends in {' or '.join(ENDINGS)}, got {text!r}")
    return Path(text)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and write; after Ctrl-C what was measured until then."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.bench.costs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", action="append", type=size, metavar="NxD", help="clients x numbers each (100x10)")
    parser.add_argument("--runs", type=count, default=5, help="exchanges of each model and size (5)")
    parser.add_argument("--out", type=file, metavar="FILE", help="each run as a line, .csv or .json")
    args = parser.parse_args(words)
    found, ended = list[Cost](), 0
    try:
        for cost in measured(args.size or [(100, 10)], args.runs):
            found.append(cost)
    except KeyboardInterrupt:
        ended = 130
    print(table(found))
    if args.out is not None and found:
        write(found, args.out)
    return ended


if __name__ == "__main__":
    sys.exit(main())
