"""A whole client: the bytes of its reply, whatever they say, for label files that are neighbours.

Refusals, length, order and presence of rows are in these bytes. When a reply comes, and how long it takes, is not.
"""

import shutil
import tempfile
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from client.draws import Draws
from client.labeler import Node, answer
from client.ledger import DiskLedger, MemoryLedger
from client.policy import Policy
from client.sources.loading import read_table
from protocol.channel import DiscreteChannel
from protocol.codec import Signed, decode_reply, decode_task, encode_task
from protocol.coins import Words
from protocol.mechanisms.randomized_response import randomized_response
from protocol.messages import Mechanism, Refusal, Task, Ties
from protocol.numeric import numeric_channel
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.study import Cell
from protocol.terms import TIE
from protocol.trust import Trust
from server.evidence import Server
from server.rounds import play
from studies.audit.exact import Axis, Box, Law, enumerated
from studies.audit.given import GivenDraws, GivenLabels, GivenRecords
from studies.audit.labels import coin_cuts, with_ties
from studies.audit.numbers import scalar_boxes
from studies.audit.subject import Claim, Outputs, Subject, all_pairs
from studies.load import build

ROWS, WIDTH = 2, 1024
SEED = 5
FILES = {  # who wins the last of three rows, or nobody, or both
    "first": "item_a",
    "second": "item_b",
    "tie": "tie",
    "no winner": "",
}
_NOTE = "client.labeler:answer on all classes of its coins, whole replies"
_FILE = "client.labeler:answer on a file and a ledger on disk, whole replies"
FILE_PACE = 0.004
Given = Callable[[Words], Draws]


@dataclass(frozen=True)
class WithCoins(Node):
    """A node whose coins are given."""

    given: Draws | None = field(default=None, repr=False)

    def draws(self, task: Task, repetition: int) -> Draws:
        """The given coins."""
        assert self.given is not None
        return self.given


def of_client(name: str, epsilon: Decimal) -> Subject:
    """A client of two labels or records in a study of local arms: the exact law of its reply's bytes."""
    return CLIENTS[name](f"node/{name}", epsilon)


def of_sources(
    name: str,
    epsilon: Decimal,
    sources: Mapping[str, GivenLabels],
    given: Given = GivenDraws,
    ties: Ties = Ties.COIN,
) -> Subject:
    """A client of these labels, among them perhaps `ties`: all pairs that differ in one; `given`: coins of words."""
    mechanism = "randomized-response"
    table, raw = randomized_response(epsilon), _raw(_pairs(mechanism), epsilon)
    if any(TIE in source.values for source in sources.values()):
        table = with_ties(table, mechanism, epsilon, ties)
        raw = encode_task(replace(decode_task(raw), ties=ties))
    return _subject(name, epsilon, "label", raw, sources, _boxes_of(table), given)


def _labels(values: int, ties: Ties, name: str, epsilon: Decimal) -> Subject:
    vectors = product(range(values), repeat=ROWS)
    return of_sources(name, epsilon, {str(vector): GivenLabels(vector) for vector in vectors}, ties=ties)


def _boxes_of(table: DiscreteChannel) -> Callable[[Any], list[Box]]:
    axis = Axis.cut(coin_cuts(table))
    return lambda source: [[axis] * ROWS]


def _records(name: str, epsilon: Decimal) -> Subject:
    channel = numeric_channel("duchi", {"epsilon": epsilon, "threshold": Decimal(1), "dimension": Decimal(1)})
    arm = {"trust": "local", "mechanism": "duchi", "estimator": "mean", "threshold": Decimal(1)}
    problem = {"kind": "records", "model": "mean", "dimension": 1}
    inputs = {str(values): GivenRecords(np.array(values)[:, None]) for values in product((9.0, -9.0, 0.3), repeat=ROWS)}

    def boxes(source: GivenRecords) -> list[Box]:
        gradients = np.clip(-source.features[:, 0], -1.0, 1.0)
        return [[scalar_boxes(channel, float(t))[0][0] for t in gradients]]

    return _subject(name, epsilon, "record", _raw((problem, arm), epsilon), inputs, boxes)


def _pairs(mechanism: str) -> tuple[dict[str, Any], dict[str, Any]]:
    problem = {"kind": "pairwise", "dimension": 3, "features": "gaussian", "sum_zero": True, "bound": Decimal(3)}
    arm = {"trust": "local", "mechanism": mechanism, "estimator": "debiased"}
    return {**problem, "theta": [Decimal(0)] * 3}, arm


CLIENTS: dict[str, Callable[[str, Decimal], Subject]] = {
    "labels": partial(_labels, 2, Ties.NONE),
    "ties": partial(_labels, 3, Ties.COIN),
    "randomized-ties": partial(_labels, 3, Ties.RANDOMIZED),
    "records": _records,
}


class _Asked(Exception):
    """The tasks of a study."""

    def __init__(self, tasks: list[bytes]) -> None:
        super().__init__("tasks")
        self.tasks = tasks


def _raw(what: tuple[Mapping[str, Any], Mapping[str, Any]], epsilon: Decimal) -> bytes:
    """The bytes of the task that a study of one arm asks first."""
    problem, arm = what
    head: dict[str, Any] = {"study": {"name": "audit", "seed": SEED, "repetitions": 1}, "problem": dict(problem)}
    if problem["kind"] == "records":
        head["records"] = {"features": "normal(1)", "tail": Decimal(1), "moment": Decimal(1)}
    loaded = build({**head, "arm": [dict(arm)], "grid": {"n": [ROWS], "epsilon": [epsilon]}}, Path())

    def ask(tasks: list[bytes]) -> NoReturn:
        raise _Asked(tasks)

    try:
        list(play(loaded.study, Cell(ROWS, 0, 1), ask, Server(FeatureStore(SEED), SEED)))
    except _Asked as asked:
        return asked.tasks[0]
    raise ValueError("expected a study that asks somebody")


def _subject(
    name: str,
    epsilon: Decimal,
    unit: str,
    raw: bytes,
    inputs: Mapping[str, Any],
    boxes: Callable[[Any], list[Box]],
    given: Given = GivenDraws,
) -> Subject:
    near = tuple(pair for pair in all_pairs(inputs) if _distance(*(inputs[one] for one in pair)) == 1)

    def laws() -> Mapping[str, Law]:
        replies = partial(_replies, raw, FeatureStore(SEED), given)
        return {key: enumerated(partial(replies, source), boxes(source)) for key, source in inputs.items()}

    return Subject(name, Claim(epsilon, Decimal(0), unit), inputs, near, _NOTE, laws=laws)


def _distance(one: GivenLabels | GivenRecords, other: GivenLabels | GivenRecords) -> int:
    left, right = (source.values if isinstance(source, GivenLabels) else source.features for source in (one, other))
    return int((np.asarray(left) != np.asarray(right)).sum())


def _replies(raw: bytes, features: FeatureStore, given: Given, source: Any, words: Words) -> NDArray[np.uint8]:
    """Replies as rows of bytes of one length, their own length in front."""
    replies = []
    for coins in words:
        node = WithCoins(source, Policy.simulation(), MemoryLedger(), "os", features, given=given(coins[:, None]))
        replies.append(answer(raw, node))
    if max(map(len, replies)) > WIDTH:
        raise ValueError(f"expected replies of at most {WIDTH} bytes about {ROWS} rows, got longer ones")
    padded = [len(reply).to_bytes(4, "big") + reply.ljust(WIDTH, b"\0") for reply in replies]
    return np.frombuffer(b"".join(padded), dtype=np.uint8).reshape(len(replies), 4 + WIDTH)


# A file on disk, as a holder has it


def of_file(epsilon: Decimal) -> Subject:
    """A client with a file of three comparisons, of which the last one's winner differs, and a new ledger each time."""
    inputs = {name: _lines(winner) for name, winner in FILES.items()}
    return Subject(
        "node/file",
        Claim(epsilon, Decimal(0), "label"),
        inputs,
        all_pairs(inputs),
        _FILE,
        draw=lambda lines, count, coins: _answers(lines, epsilon, count),
        views=VIEWS,
        pace=FILE_PACE,
    )


def _lines(winner: str) -> str:
    rows = ["labeler,item_a,item_b,winner", "r1,x,y,item_a", "r2,z,y,item_b", f"r3,z,x,{winner}"]
    return "\n".join(rows) + "\n"


def _answers(lines: str, epsilon: Decimal, count: int) -> Outputs:
    """Replies to one task, each from a ledger of its own."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # else every answer waits for a disk
    with tempfile.TemporaryDirectory(prefix="halftruth-audit-", dir=memory) as folder:
        path = Path(folder) / "votes.csv"
        path.write_text(lines, encoding="utf-8")
        table = read_table(path, False)
        problem = Problem(len(table.items), "items", True, None, table.pairs)
        menu = (Mechanism.of("randomized-response", epsilon=epsilon),)
        task = Task(b"a" * 32, Trust.LOCAL, Unit.LABEL, problem, menu, 3, epsilon, None, 0, 1, ties=Ties.COIN)
        raw, features, found = encode_task(task), FeatureStore(None), []
        new, ledger = Path(folder) / "new.sqlite", Path(folder) / "ledger.sqlite"
        DiskLedger(new)
        for _ in range(count):
            shutil.copyfile(new, ledger)  # in place of making one each time
            found.append(answer(raw, Node(table, Policy(), DiskLedger(ledger, start=False), "os", features)))
        return found


def _code(output: Hashable) -> Hashable:
    reply = decode_reply(_raw_of(output))
    return reply.code.name if isinstance(reply, Refusal) else "report"


def _rows_of(output: Hashable) -> Hashable:
    reply = decode_reply(_raw_of(output))
    if isinstance(reply, Refusal):
        return ()
    reports = [each.report for each in reply if isinstance(each, Signed)]
    return tuple(() if each.rows is None else tuple(each.rows.numbers().tolist()) for each in reports)


def _raw_of(output: Hashable) -> bytes:
    assert isinstance(output, bytes)
    return output


VIEWS: dict[str, Callable[[Hashable], Hashable]] = {
    "the length": lambda output: len(_raw_of(output)),
    "the refusal": _code,
    "the rows answered": _rows_of,
}
