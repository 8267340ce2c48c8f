"""A node that is made before it is asked, in the process whose forked children answer for it."""

from collections.abc import Iterable
from pathlib import Path

from client import node
from client.node_file import NodeFile
from protocol.runconfig import Config

Stamp = tuple[int, int, int] | None
NAMED = ("file", "items", "features")  # files of a [source]


class Warm:
    """Reads the node's files once, and again where one of them has changed; forked children inherit what it read.

    A ledger is not among them: it is opened for each answer.
    """

    def __init__(self) -> None:
        self._stamps: dict[Path, Stamp] = {}

    def prepare(self, node_config: Config, run_config: Config) -> None:
        """Have the node of these configurations ready. Raises what `client.node.node_of` and `keys_of` raise."""
        if any(_stamp(path) != stamp for path, stamp in self._stamps.items()):
            node.forget()
            self._stamps.clear()
        if not self._stamps:
            self._note(Path(str(node_config[key])) for key in (node.FILE, node.KEY) if key in node_config)
            file = node.file_of(node_config)
            self._note([] if file is None else _files(file))
        node.keys_of(node_config)
        node.node_of(node_config, run_config)

    def _note(self, paths: Iterable[Path]) -> None:
        """Take the stamps of files before they are read."""
        self._stamps.update({path: _stamp(path) for path in paths})


def _files(file: NodeFile) -> list[Path]:
    """What a node is made of, besides its own file."""
    named = [getattr(file.source, name, None) for name in NAMED]
    return [path for path in (*named, file.key, file.server_key) if isinstance(path, Path)]


def _stamp(path: Path) -> Stamp:
    """What changes whenever a file or who may read it does; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns
