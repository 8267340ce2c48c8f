"""`python -m studies.flower.scale`: the bytes of a round by how many nodes and labels, from a real client's replies."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.labeler import Node, answer
from client.ledger import MemoryLedger
from client.policy import Policy
from client.signing import Sign, signer
from client.sources.synthetic import drawn
from deploy.node_keys import ensure_key
from protocol.codec import decode_reply, encode_bundle, encode_task, sign_reply
from protocol.messages import Refusal, Task
from protocol.store import FeatureStore
from protocol.study import MOST, cells
from protocol.trust import Trust
from server.tasks import offers
from studies.load import Loaded, build
from studies.terminal import print_line, print_table

NODES = (10, 1_000, 100_000)
LABELS = (1, 100, 10_000, 1_000_000)
TRUSTS = (Trust.LOCAL, Trust.CENTRAL)
UNITS = ("B", "kB", "MB", "GB")
ARMS = (
    {"trust": "local", "estimator": "debiased"},
    {"trust": "central", "mechanism": "gaussian-statistic-clipped", "estimator": "mle"},
)


@dataclass(frozen=True)
class Message:
    """One task to one of `nodes` nodes with `labels` labels each, and its signed reply: bytes on either way, and the
    CPU seconds of a client that answers and of a server that reads the answer.
    """

    nodes: int
    labels: int
    trust: Trust
    down: int
    up: int
    answering: float
    reading: float

    @property
    def round(self) -> int:
        """Bytes of all messages of a round, both ways."""
        return self.nodes * (self.down + self.up)


def messages(nodes: Sequence[int], labels: Sequence[int], dimension: int) -> Iterator[Message]:
    """A message for each number of nodes, of labels, and each trust model; those with more than 2^32 - 1 rows are left
    out: a row's number has 32 bits.
    """
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "node.key"
        ensure_key(key)
        sign = signer(key)
    for count in nodes:
        for each in labels:
            if count * each <= MOST:
                loaded = _study(count * each, dimension)
                yield from (_message(loaded, count, each, trust, sign) for trust in TRUSTS)


def _study(n: int, dimension: int) -> Loaded:
    theta = [0.5 - (index % 2) for index in range(dimension)]
    problem = {"kind": "pairwise", "dimension": dimension, "features": "gaussian", "theta": theta, "bound": dimension}
    grid = {"n": [n], "epsilon": [1], "delta": [1e-5]}
    study = {"name": "scale", "seed": 7, "repetitions": 1}
    return build({"study": study, "problem": problem, "grid": grid, "arm": list(ARMS)}, Path())


def _message(loaded: Loaded, nodes: int, labels: int, trust: Trust, sign: Sign) -> Message:
    study = loaded.study
    (task,) = (found for found in _tasks(loaded) if found.trust is trust)
    features = FeatureStore(study.seed)
    source = drawn(study, loaded.truth, study.seed, features, (0, nodes))
    node = Node(source, Policy.simulation(), MemoryLedger(), "addressed", features, study.seed)
    raw = encode_task(task)
    begun = time.process_time()
    reply = sign_reply(answer(raw, node), sign)
    answered = time.process_time()
    if isinstance(decode_reply(reply), Refusal):
        raise ValueError(f"expected a report about {labels} labels, got a refusal")
    read = time.process_time() - answered
    down, up = len(encode_bundle([raw], bytes(len(sign(raw))))), len(encode_bundle([reply]))
    return Message(nodes, labels, trust, down, up, answered - begun, read)


def _tasks(loaded: Loaded) -> Iterator[Task]:
    (cell,) = cells(loaded.study)
    for offer in offers(loaded.study, cell):
        yield from offer.asked


def size(count: float) -> str:
    """A number of bytes for people.

    >>> size(125_123), size(99), size(3.2e10)
    ('125 kB', '99 B', '32 GB')
    """
    scale = max(index for index in range(len(UNITS)) if index == 0 or count >= 1_000**index)
    return f"{count / 1_000**scale:.3g} {UNITS[scale]}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m studies.flower.scale", description=__doc__)
    parser.add_argument("--dimension", type=int, default=20, help="(20)")
    args = parser.parse_args()
    rows = [
        (
            f"{found.nodes:,}",
            f"{found.labels:,}",
            found.trust.label,
            size(found.down),
            size(found.up),
            size(found.round),
            f"{1e3 * found.answering:.3g}",
            f"{1e3 * found.reading:.3g}",
        )
        for found in messages(NODES, LABELS, args.dimension)
    ]
    columns = ["nodes", "labels each", "trust", "to a node", "from a node", "a round", "answer, ms", "read, ms"]
    print_table(columns, rows, ["trust"])
    print_line("ms of CPU: a client that answers and signs, a server that reads one reply")
    return 0


if __name__ == "__main__":
    sys.exit(main())
