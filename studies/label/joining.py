"""The node of a labeler whose answers were released: started beside the page, and ended with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from client.node_file import NodeFile, SuperLink
from client.private_files import replace_private
from deploy import leash
from deploy.background import last_lines
from studies.data.split_nodes import NODE_FILE

LOG = "node.log"
LEAVING = 15.0  # seconds that a node may take to end
SHOWN = 3  # lines of the log of a node that ended


def words_of(folder: Path, link: SuperLink | None) -> list[str]:
    """The words of `halftruth node` for the node of a folder; without a link it connects as its own file says."""
    words = ["node", "--config", str(folder / NODE_FILE)]
    if link is not None:
        words += ["--superlink", link.address]
        words += ["--certs", str(link.root_certificates)] if link.root_certificates else []
        words += ["--key", str(link.key)] if link.key else []
    return words


class Joined:
    """The node's process: none until `start`, and none where nothing says which server it joins."""

    def __init__(self, folder: Path, link: SuperLink | None) -> None:
        self._folder, self._link = folder, link
        self._child: subprocess.Popen[bytes] | None = None
        self.address: str | None = None

    def start(self, node: NodeFile) -> None:
        """Start the node, unless it runs: it reads its files again by itself. Raises OSError."""
        where = self._link or node.superlink
        if where is None or (self._child is not None and self._child.poll() is None):
            return
        self.address = where.address
        program = [sys.executable, "-m", "studies", *words_of(self._folder, self._link)]
        replace_private(self._folder / LOG, b"")
        with (self._folder / LOG).open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(leash.__file__)), str(os.getpid()), *program],
                env={**os.environ, "PYTHONPATH": _import_path()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        """Whether the node is there."""
        return self._child is not None and self._child.poll() is None

    @property
    def ended(self) -> Sequence[str]:
        """The last lines of a node that ended by itself; none where it runs, or was never started."""
        return [] if self._child is None or self.runs else last_lines(self._folder / LOG, SHOWN) or ["without a word"]

    def end(self) -> None:
        """End the node and all that it started."""
        if self._child is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(LEAVING)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


def _import_path() -> str:
    return os.pathsep.join([str(Path(leash.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
