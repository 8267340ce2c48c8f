"""Which node a process is: the one of its own file, or a part of a simulation. A run's configuration cannot choose."""

from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from client.labeler import Node
from client.ledger import MemoryLedger
from client.policy import Policy
from client.secure.membership import simulated
from client.signing import Keys
from client.sources.synthetic import synthetic
from protocol import runconfig, strict
from protocol.runconfig import Config, Scalar
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import MOST

if TYPE_CHECKING:
    from client.node_file import NodeFile

MOST_NODES = 4  # kept in a process that answers for several virtual clients
MOST_BYTES = 1 << 27  # of public features kept by each
# Of a node's own configuration: its file, labels and ledger where the file names none, the key that signs its reports.
FILE, LABELS, LEDGER, KEY = "config", "labels", "ledger", "key"
Items = tuple[tuple[str, Scalar], ...]


def node_of(node_config: Config, run_config: Config) -> Node:
    """The node that answers, made once a process for each configuration.

    `node_config` is what the node was started with: `config` names its file, and all that concerns the node comes from
    there, but for labels, ledger and key where these are named beside it. Its ledger was made when the node started;
    where it is gone the node refuses. Without a file there is nobody to protect: labels are synthetic, those of part
    `partition-id` out of `num-partitions`, coins are addressed, every trust model is allowed; study, seed and truth
    come from the run.

    Raises StudyError and what `client.node_file.read_node` and `build` raise.
    """
    return _node(_items(node_config), _items(run_config))


def keys_of(node_config: Config) -> Keys:
    """What the node signs with and whose tasks it answers: of its file, read once a process.

    Without a file, tasks are anybody's; `key` names the key, whatever a file says. Raises what `node_of` raises, and
    KeyUnusable.
    """
    return _keys(_items(node_config))


def file_of(node_config: Config) -> "NodeFile | None":
    """The node's file; None without one. Raises what `node_of` raises."""
    return _file(node_config) if FILE in node_config else None


def forget() -> None:
    """Read all files again when they are needed next."""
    for kept in (_keys, _node):
        kept.cache_clear()


@lru_cache(maxsize=MOST_NODES)
def _keys(node_items: Items) -> Keys:
    node_config = dict(node_items)
    own = _named(node_config, KEY)
    if FILE not in node_config:
        return Keys.load(own, None)
    node = _file(node_config)
    return Keys.load(own or node.key, node.server_key)


@lru_cache(maxsize=MOST_NODES)
def _node(node_items: Items, run_items: Items) -> Node:
    node_config, run_config = dict(node_items), dict(run_items)
    if FILE in node_config:
        from client.node_file import build

        # For a message no ledger is made: it is there, or is lost.
        return build(_file(node_config), run_config, start=False)
    return _virtual(node_config, run_config)


def _virtual(node_config: Mapping[str, Scalar], run_config: Config) -> Node:
    study = runconfig.read(run_config).study
    keys = ("partition-id", "num-partitions")
    top = strict.table(node_config, "node config", (*keys, KEY), keys)
    clients = strict.integer(top["num-partitions"], "[node config] num-partitions", 1, MOST)
    client = strict.integer(top["partition-id"], "[node config] partition-id", 0, clients - 1)
    features = FeatureStore(study.seed, MOST_BYTES)
    source = synthetic(run_config, study, study.seed, features, (client, clients))
    member = partial(simulated, study.seed, client, clients)
    return Node(source, Policy.simulation(), MemoryLedger(), "addressed", features, study.seed, study, member)


def _file(node_config: Mapping[str, Scalar]) -> "NodeFile":
    from client.node_file import read_node  # a simulation's many clients have no file

    top = strict.table(node_config, "node config", (FILE, LABELS, LEDGER, KEY), (FILE,))
    path = _named(top, FILE)
    assert path is not None
    return read_node(path, _named(top, LABELS), _named(top, LEDGER))


def _named(node_config: Mapping[str, Scalar], key: str) -> Path | None:
    """The path that a key names, if it is there."""
    if key not in node_config:
        return None
    path = Path(strict.text(node_config[key], f"[node config] {key}"))
    if not path.is_absolute():
        raise StudyError(f"[node config] {key}: expected an absolute path, got {str(path)!r}")
    return path


def _items(config: Config) -> Items:
    return tuple(sorted(config.items()))
