"""A node's warm executor: imports the installed client once, and answers each question in a forked child.

Started by the node's SuperNode with a socket to it, and ends with it. It never sees a bundle that a server ships.
"""

import gc
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from client.app import app
from client.warm import Warm
from deploy.flower_private import supernode as flower_supernode
from deploy.forked import Abandoned, Died, TooSlow, in_child
from deploy.frames import Gone, receive, send

Answer = Callable[[bytes], bytes]
TRIES = 2  # a child that was killed is asked once more: what it has charged is in the ledger


def serve(line: socket.socket, answer: Answer, prepare: Callable[[bytes], None] = lambda question: None) -> None:
    """Answer questions until the other end of the line closes; an empty answer says that there is none.

    `prepare` is done here, and its child inherits what it made.
    """
    while True:
        try:
            question, seconds = receive(line)
            prepare(question)
            send(line, _answer(line, lambda question=question: answer(question), seconds))  # type: ignore[misc]
        except (Gone, Abandoned):
            return


def _answer(line: socket.socket, work: Callable[[], bytes], seconds: float) -> bytes:
    for _ in range(TRIES):
        try:
            return in_child(work, seconds, line.fileno())
        except Died:
            print("the client ended without an answer", file=sys.stderr, flush=True)
        except TooSlow:
            print(f"the client gave no answer within {seconds:.0f} seconds", file=sys.stderr, flush=True)
            break
    return b""


def main(words: list[str]) -> int:
    """Serve the socket whose number is the only argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the SuperNode, with which this process ends
    gc.collect()
    gc.freeze()  # or a child's first collection would copy all of these pages
    with socket.socket(fileno=int(words[0])) as line:
        serve(line, reply_to, _preparing(Warm()))
    return 0


def reply_to(question: bytes) -> bytes:
    """What the installed client answers."""
    message, context = flower_supernode.opened(question)
    return flower_supernode.closed(app(message, context))


def _preparing(warm: Warm) -> Callable[[bytes], None]:
    def prepare(question: bytes) -> None:
        with suppress(Exception):  # the child meets it as well, and refuses with a code
            _, context = flower_supernode.opened(question)
            warm.prepare(context.node_config, context.run_config)

    return prepare


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
