"""`halftruth node`: checks a node file and what it names, and becomes the SuperNode that it says."""

import argparse
import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from client.ledger_store import LedgerUnavailable
from client.node_file import NodeFile, NodeFileError, SuperLink, SyntheticLabels, build
from client.private_files import readable_by_others
from client.record_file import RecordFile
from client.signing import Keys
from client.sources.record_table import RecordTable
from client.sources.table import Table
from client.table_file import TableFile
from deploy import bundles, probe
from deploy.ports import HOST, free_port
from deploy.processes import QUIET, FlowerFailed, program
from studies.flower import node_flags
from studies.holder_file import new_ledger, tell
from studies.records.columns import described
from studies.terminal import printable

NODE_EXAMPLES = """\
examples:
  halftruth node --config node.toml
  halftruth node --labels votes.csv --policy policy.toml --superlink example.org:8443 --certs ca.crt --key node.key
  halftruth node --superlink 127.0.0.1:8000 --part 0/2        synthetic labels, for a look at a federation

A policy file is a node file that names no labels: its table [policy] is enough. It, labels and key are read; the ledger
beside the labels is all that is written.

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

The node answers with the client that is installed here, whatever code the server ships. Pin that as well with
bundles = ["SHA256"] in [policy]; [node] executor = "stock" runs the server's instead.

Of rankings: ranking = "long" (or "wide", "best-worst") and ranking_as = "top" (or "pair", "pairs:3") in [source].
Paths are relative to the node file. The node runs until it is ended, with Ctrl-C for instance."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth node`."""
    parser.epilog = NODE_EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--config", metavar="FILE", help="the node file (TOML)")
    what.add_argument(
        "--show-bundle",
        action="store_true",
        help="print the SHA-256 of the code that this installation ships, for [policy] bundles, and exit",
    )
    parser.add_argument("--port", metavar="N", type=int, help="port for the node's own processes (any free one)")
    node_flags.add_arguments(parser, what)


def main(args: argparse.Namespace) -> int:
    """Check the node file and what it names, and replace this process by the node's.

    Returns 1 where labels, ledger or Flower cannot be used, 2 for a wrong node file.
    """
    if args.show_bundle:
        return _show_bundle()
    try:
        chosen = node_flags.chosen(args)
        node = chosen.node
        if node is not None:
            Keys.load(node.key, node.server_key)  # here, where somebody reads why not
        if node is not None and not isinstance(node.source, SyntheticLabels):
            _check_source(node, node.source)
        stock = program("flower-supernode")
        link = chosen.link
        if why := probe.look(link.address, link.root_certificates, keyed=link.key is not None):
            print(f"halftruth: {printable(why)}", file=sys.stderr)
    except NodeFileError as error:
        return _say(error, 2)
    except (ValueError, LedgerUnavailable, FlowerFailed) as error:
        return _say(error, 1)
    words = [*supernode_arguments(chosen.link, chosen.config), "--host", HOST, "--port", str(args.port or free_port())]
    return _become(node, words, stock)


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
    if readable_by_others(named.file):
        print(f"Others on this machine can read {printable(str(named.file))}: chmod 600", file=sys.stderr)


def _become(node: NodeFile | None, words: Sequence[str], stock: str) -> int:
    """Replace this process by ours, or by `stock`, Flower's SuperNode, which runs what the server ships.

    Where ours cannot run here it becomes the other, with a warning, but never beside somebody's labels.
    """
    environment = {**os.environ, **QUIET}
    if node is not None and node.executor == "stock":
        return os.execve(stock, [stock, *words], environment)
    where = [str(Path(bundles.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = [] if _insists(node) else ["--or", stock]
    told += [word for pin in (node.bundles if node else ()) for word in ("--pin", pin)]
    command = [sys.executable, "-P", "-m", "deploy.supernode", *told, "--", *words]
    return os.execve(sys.executable, command, {**environment, "PYTHONPATH": os.pathsep.join(where)})


def _insists(node: NodeFile | None) -> bool:
    """Whether no code but the installed one may answer: somebody's labels are there, or the file says or pins so."""
    if node is None:
        return False
    if not isinstance(node.source, SyntheticLabels):
        return True
    with node.path.open("rb") as file:
        said = "executor" in tomllib.load(file).get("node", {})
    return said or bool(node.bundles) or node.server_key is not None


def _show_bundle() -> int:
    try:
        print(bundles.sha256(bundles.staged_bundle()))
    except FlowerFailed as error:
        return _say(error, 1)
    return 0


def _say(error: Exception, code: int) -> int:
    print(f"halftruth: {error}", file=sys.stderr)
    return code


def supernode_arguments(link: SuperLink, config: str) -> list[str]:
    """What flower-supernode is told: where the SuperLink is, and the node's configuration, its texts in quotes.

    >>> supernode_arguments(SuperLink("localhost:8000", True, None, None), 'config="/etc/node.toml"')
    ['--superlink', 'localhost:8000', '--node-config', 'config="/etc/node.toml"', '--insecure']
    """
    words = ["--superlink", link.address, "--node-config", config]
    words += ["--insecure"] if link.insecure else []
    words += ["--root-certificates", str(link.root_certificates)] if link.root_certificates else []
    words += ["--auth-supernode-private-key", str(link.key)] if link.key else []
    return words
