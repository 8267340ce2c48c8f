"""A node that lies, a program that tests start: a real SuperNode whose client is the honest one with changed replies.

Which lie it tells follows from the cell: the first repetition that a task is about. LIAR_KEYS is a folder of keys: its
own, another node's (whose signatures it has captured, as whoever carries messages may have), and one nobody registered.
While there is a file STALLS in it, replies are announced to the SuperLink and never uploaded.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supernode import start_client_internal as flower

from client.labeler import answer
from client.node import node_of
from client.signing import signer
from deploy import executor, supernode
from protocol import halftruth_pb2 as wire
from protocol.codec import decode_task, decode_tasks, encode_bundle, sign_reply
from protocol.parcel import parcel_of

FOLDER = Path(os.environ.get("LIAR_KEYS", "."))
ANOTHER = "another node's reply"
STALLS = "stalls"
Change = Callable[[wire.Report], object]
Lie = Callable[[list[bytes]], list[bytes]]


def values(report: wire.Report, change: Callable[[np.ndarray], object]) -> None:
    """Change the numbers of a report in place."""
    array = report.payload.values
    numbers = np.frombuffer(array.data, dtype="<f8").copy()
    change(numbers)
    array.data = numbers.tobytes()


def shape(report: wire.Report) -> None:
    """A coordinate more than was asked for."""
    array = report.payload.values
    array.shape[2] += 1
    array.data = np.zeros(array.shape).tobytes()


def rows(report: wire.Report, start: int, count: int) -> None:
    """Other rows, as many as there are numbers for."""
    del report.rows[:]
    report.rows.add(start=start, step=1, count=count)


def own(change: Change, key: str = "node-3") -> Lie:
    """What the node would have said, changed, and signed with a key."""

    def lie(replies: list[bytes]) -> list[bytes]:
        said = [changed(raw, change) for raw in replies]
        return [sign_reply(raw, signer(FOLDER / key)) for raw in said] if key else said

    return lie


def changed(raw: bytes, change: Change) -> bytes:
    """A reply whose reports are changed."""
    reply = wire.Reply.FromString(raw)
    for item in reply.reports:
        report = wire.Report.FromString(item.report)
        change(report)
        item.report = report.SerializeToString(deterministic=True)
    return reply.SerializeToString(deterministic=True)


def kept(replies: list[bytes]) -> list[bytes]:
    """Its own good reply to the first cell's tasks."""
    return [(FOLDER / f"kept-{place}").read_bytes() for place in range(len(replies))]


def nothing(report: wire.Report) -> None:
    """The truth."""


LIES: dict[str, Lie] = {
    "the truth": own(nothing),
    "NaN": own(lambda report: values(report, lambda numbers: numbers.fill(np.nan))),
    "one infinity": own(lambda report: values(report, lambda numbers: numbers.put(0, np.inf))),
    "a wrong shape": own(shape),
    "out of range": own(lambda report: values(report, lambda numbers: numbers.fill(1e6))),
    "another node's rows": own(lambda report: rows(report, 0, 15)),
    "rows of nobody": own(lambda report: rows(report, 1 << 40, 15)),
    "unsigned": own(nothing, key=""),
    "another key": own(nothing, key="stranger"),
    ANOTHER: own(nothing, key="node-0"),  # with the other's labels: its reply to these very tasks
    "a reply to another task": kept,
    "no reply": lambda replies: [b"no reply" for _ in replies],
    "too few replies": lambda replies: replies[:0],
}
FIRST = next(iter(LIES))
app = ClientApp()


@app.query()
def query(message: Message, context: Context) -> Message:
    """Tell this cell's lie."""
    tasks, _ = decode_tasks(parcel_of(message.content))
    name = list(LIES)[decode_task(tasks[0]).first_repetition]
    node = {**context.node_config, **({"partition-id": 0} if name == ANOTHER else {})}
    replies = LIES[name]([answer(raw, node_of(node, context.run_config)) for raw in tasks])
    if name == FIRST:
        for place, raw in enumerate(replies):
            (FOLDER / f"kept-{place}").write_bytes(raw)
    with (FOLDER / "told.txt").open("a", encoding="utf-8") as file:
        file.write(f"{name}\n")
    bundle = Array(np.frombuffer(encode_bundle(replies), dtype=np.uint8))
    return Message(RecordDict({"halftruth": ArrayRecord({"bundle": bundle})}), reply_to=message)


def main(words: list[str]) -> NoReturn:
    """Be a SuperNode, or with --executor the process that answers for it."""
    if words[0] == "--executor":
        executor.app = app  # in place of the installed client
        sys.exit(executor.main(words[1:]))
    upload = flower.push_object_contents_from_iterable
    flower.push_object_contents_from_iterable = (  # type: ignore[assignment]
        lambda *what, **how: None if (FOLDER / STALLS).exists() else upload(*what, **how)
    )
    command = [sys.executable, __file__, "--executor"]
    supernode.Executor = partial(supernode.Executor, command)  # type: ignore[misc, assignment]
    supernode.main(words)


if __name__ == "__main__":
    main(sys.argv[1:])
