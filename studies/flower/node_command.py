"""`halftruth node`: starts a SuperNode as a node file says, and becomes it."""

import argparse
import os
import sys
from pathlib import Path

from client.ledger_store import LedgerUnavailable
from client.node_file import NodeFile, NodeFileError, SuperLink, SyntheticLabels, build, read_node
from client.record_file import RecordFile
from client.sources.record_table import RecordTable
from client.sources.table import Table
from client.table_file import TableFile
from deploy.ports import HOST, free_port
from deploy.processes import QUIET, FlowerFailed, program
from studies.holder_file import new_ledger, tell
from studies.records.columns import described
from studies.terminal import printable

NODE_EXAMPLES = """\
examples:
  halftruth node --config node.toml

A node file with somebody's labels (protection is what it says here; a server cannot change it):

  [node]
  ledger = "ledger.sqlite"      # what was spent, and what was answered
  [source]
  kind = "table"
  file = "votes.csv"
  [policy]
  trust = ["local"]
  label_cap = 2                 # epsilon in total, for one label
  max_epsilon = 1               # in one task
  [superlink]
  address = "halftruth.example.org:8443"
  root_certificates = "ca.crt"
  key = "node.key"

Of rankings: ranking = "long" (or "wide", "best-worst") and ranking_as = "top" (or "pair", "pairs:3") in [source].
Paths are relative to the node file. The node runs until it is ended, with Ctrl-C for instance."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth node`."""
    parser.epilog = NODE_EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--config", metavar="FILE", required=True, help="the node file (TOML)")
    parser.add_argument("--port", metavar="N", type=int, help="port for the node's own processes (any free one)")
    parser.add_argument(
        "--superlink-port", metavar="N", type=int, help="connect to this port of this machine instead of [superlink]"
    )


def main(args: argparse.Namespace) -> int:
    """Check the node file and what it names, and replace this process by Flower's SuperNode.

    Returns 1 where labels, ledger or Flower cannot be used, 2 for a wrong node file.
    """
    path = Path(args.config).resolve()
    try:
        node = read_node(path)
        link = node.superlink
        if args.superlink_port is not None:
            link = SuperLink(f"{HOST}:{args.superlink_port}", insecure=True, root_certificates=None, key=None)
        if link is None:
            raise NodeFileError(f"{path}: expected a table [superlink] with the address to connect to")
        if not isinstance(node.source, SyntheticLabels):
            _check_source(node, node.source)
        executable = program("flower-supernode")
    except NodeFileError as error:
        return _say(error, 2)
    except (ValueError, LedgerUnavailable, FlowerFailed) as error:
        return _say(error, 1)
    words = supernode_arguments(link, path)
    words += ["--host", HOST, "--port", str(args.port or free_port())]
    return os.execve(executable, [executable, *words], {**os.environ, **QUIET})


def _check_source(node: NodeFile, named: TableFile | RecordFile) -> None:
    """Check the whole file here, before anybody asks: a task's answer says nothing of it."""
    assert node.ledger is not None
    new = new_ledger(node.ledger)
    source = build(node, {}).source
    if isinstance(source, RecordTable):
        print(printable(described(source)), file=sys.stderr)
    elif isinstance(source, Table) and isinstance(named, TableFile):
        tell(source, named.columns, private=sys.stderr.isatty())  # else it may be a log
    if new:
        print(new, file=sys.stderr)


def _say(error: Exception, code: int) -> int:
    print(f"halftruth: {error}", file=sys.stderr)
    return code


def supernode_arguments(link: SuperLink, path: Path) -> list[str]:
    """What flower-supernode is told: where the SuperLink is, and the node file's path, in quotes or Flower opens it.

    >>> supernode_arguments(SuperLink("localhost:8000", True, None, None), Path("/etc/node.toml"))
    ['--superlink', 'localhost:8000', '--node-config', 'config="/etc/node.toml"', '--insecure']
    """
    words = ["--superlink", link.address, "--node-config", f'config="{path}"']
    words += ["--insecure"] if link.insecure else []
    words += ["--root-certificates", str(link.root_certificates)] if link.root_certificates else []
    words += ["--auth-supernode-private-key", str(link.key)] if link.key else []
    return words
