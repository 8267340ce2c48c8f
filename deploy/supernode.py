"""A node: Flower's SuperNode in this process, and beside it a warm executor that answers with the installed client.

`python -P -m deploy.supernode [--pin SHA256]... [--or PROGRAM] -- WORDS OF flower-supernode`
"""

import argparse
import os
import socket
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from deploy.flower_private import supernode as flower_supernode
from deploy.frames import Gone, receive, send
from deploy.skew import own_version, version_of

SHORTEST, LONGEST, GROWTH = 0.1, 3.0, 1.3  # seconds between two looks for a message: short after one, then longer
STARTS, SPAN = 5, 60.0  # an executor is started so many times in so many seconds, and not more often
RECENT, MOST_OF = 5, 0.6
MARGIN = 10.0  # seconds that an executor may take beyond those of its child
LONGEST_ANSWER = 3600.0  # a server says how long it waits, but no node waits for ever
KEY = "--auth-supernode-private-key"
REFUSED = """\
halftruth: the server does not let this node come: is its key registered (halftruth keys register), and not revoked?
A node that was killed a moment ago still counts as connected: then it may come again within two minutes."""
EXECUTOR = (sys.executable, "-P", "-m", "deploy.executor")


@dataclass
class Pace:
    """How long to wait without a message: most of the shortest of recent spans between two, then little, then more.

    The shortest and not the average, which would hold on to spans that waiting itself has made long.
    """

    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    next: float = SHORTEST
    _spans: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _since: float | None = None
    _looked: bool = True

    def idle(self) -> None:
        """Let time pass."""
        self.sleep(self.next)
        self.next = min(LONGEST, self.next * GROWTH) if self._looked else SHORTEST
        self._looked = True

    def came(self) -> None:
        """A message came."""
        if self._since is not None:
            self._spans.append(self.now() - self._since)

    def answered(self) -> None:
        """It was answered: the next one may be near."""
        self._since, self._looked = self.now(), False
        self.next = min(LONGEST, max(SHORTEST, MOST_OF * min(self._spans, default=0.0)))


@dataclass
class Executor:
    """The process that answers: started, asked, and started again when it has ended, but not too often."""

    command: Sequence[str] = EXECUTOR
    now: Callable[[], float] = time.monotonic
    _process: "subprocess.Popen[bytes] | None" = None
    _line: socket.socket | None = None
    _starts: deque[float] = field(default_factory=lambda: deque(maxlen=STARTS))

    def keep(self) -> socket.socket | None:
        """The line to a living executor, started where there is none; None where it ended too often of late."""
        if self._line is not None and self._process is not None and self._process.poll() is None:
            return self._line
        self.end()
        if len(self._starts) == STARTS and self.now() - self._starts[0] < SPAN:
            return None
        self._starts.append(self.now())
        self._line, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [*self.command, str(number)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[number])
        return self._line

    def ask(self, question: bytes, seconds: float) -> bytes | None:
        """The answer to a question; None where there is none in time. Asked again where the executor was killed."""
        seconds = min(seconds, LONGEST_ANSWER)
        for _ in range(2):
            line = self.keep()
            if line is None:
                break
            try:
                line.settimeout(seconds + MARGIN)
                send(line, question, seconds)
                return receive(line)[0] or None
            except Gone:
                self.end()
            except TimeoutError:
                self.end()
                break
        return None

    def end(self) -> None:
        """End the executor, and what it started."""
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._line = self._process = None


def main(words: Sequence[str]) -> NoReturn:
    """Be a node until it is ended. Exit code 1 where its connection is lost for good, or Flower is another one.

    With `--or`, another Flower's own SuperNode is started instead, and runs what the server ships.
    """
    parser = argparse.ArgumentParser(prog="deploy.supernode", description=__doc__)
    parser.add_argument("--pin", action="append", default=[], help="SHA-256 of a bundle whose messages are answered")
    parser.add_argument("--or", dest="stock", help="what to run where the installed Flower is not the one expected")
    at = list(words).index("--")
    args, told = parser.parse_args(words[:at]), words[at + 1 :]
    why = flower_supernode.unfit()
    if why is None:
        _run(frozenset(args.pin), told)
    if args.stock is None:
        sys.exit(f"halftruth: the warm executor cannot run ({why}), and the node file allows no other")
    print(f"halftruth: warning: Flower's own executor answers, with the server's code: {why}", file=sys.stderr)
    sys.stderr.flush()
    os.execv(args.stock, [args.stock, *told])


def _run(pins: frozenset[str], words: Sequence[str]) -> NoReturn:
    executor, pace = Executor(), Pace()

    def idle() -> None:
        executor.keep()
        pace.idle()

    def accepts(sha256: str, bundle: bytes) -> bool:
        return (not pins or sha256 in pins) and _has_our_version(bundle)

    executor.keep()
    code = 1
    try:
        flower_supernode.run_supernode(
            words, flower_supernode.Hooks(executor.ask, accepts, idle, pace.came, pace.answered)
        )
        print("the connection to the SuperLink is lost for good", file=sys.stderr)
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else 1
        if code and KEY in words:
            print(REFUSED, file=sys.stderr)
    except Exception:
        traceback.print_exc()
    executor.end()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Flower's server of the node's own port is a thread that would stay


def _has_our_version(bundle: bytes) -> bool:
    """Whether server and node are of one version: others may mean other things by the same words."""
    theirs, ours = version_of(bundle), own_version()
    if theirs != ours:
        print(
            f"halftruth: refused: the server runs version {theirs!r}, this node {ours!r}", file=sys.stderr, flush=True
        )
    return theirs == ours


if __name__ == "__main__":
    main(sys.argv[1:])
