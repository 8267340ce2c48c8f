"""Flags of `halftruth node` that say what a node is and where it connects, in place of a node file or beside one."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from client.node_file import NodeFile, NodeFileError, SuperLink, read_node
from deploy.certs import LOOPBACK
from studies.cli import count


@dataclass(frozen=True)
class Chosen:
    """A node: its file, None for a part of synthetic rows; Flower's configuration of it; and where it connects."""

    node: NodeFile | None
    config: str
    link: SuperLink


def add_arguments(parser: argparse.ArgumentParser, what: "argparse._MutuallyExclusiveGroup") -> None:
    """The flags; `what` holds those of which one is needed."""
    what.add_argument("--labels", metavar="FILE", help="the labels, with --policy in place of a node file")
    what.add_argument("--part", metavar="I/K", help="synthetic labels of any study: part I of K, from 0 on")
    parser.add_argument("--policy", metavar="FILE", help="what --labels may be asked: [policy] of a node file (TOML)")
    parser.add_argument("--ledger", metavar="FILE", help="the ledger of --labels (LABELS.ledger.sqlite)")
    parser.add_argument("--superlink", metavar="HOST:PORT", help="where the server is, in place of [superlink]")
    parser.add_argument("--certs", metavar="FILE", help="the CA's certificate, ca.crt, which the server's has to be of")
    parser.add_argument("--key", metavar="FILE", help="the node's private key, of halftruth keys new")


def chosen(args: argparse.Namespace) -> Chosen:
    """What the flags say. Raises NodeFileError where they do not fit."""
    key = None if args.key is None else _file(args.key, "--key")
    signs = [] if key is None else [f'key="{key}"']
    if args.labels is None and (args.policy or args.ledger) is not None:
        raise NodeFileError("--policy, --ledger: expected --labels with them")
    if args.part is not None:
        part, parts = _part(args.part)
        words = [f"partition-id={part}", f"num-partitions={parts}", *signs]
        return Chosen(None, " ".join(words), link_of(args, None, key))
    if args.labels is not None:
        return _of_labels(args, key, signs)
    path = Path(args.config).resolve()
    node = read_node(path)
    return Chosen(node, " ".join([f'config="{path}"', *signs]), link_of(args, node, key))


def _of_labels(args: argparse.Namespace, key: Path | None, signs: list[str]) -> Chosen:
    if args.policy is None:
        raise NodeFileError("--labels: expected --policy policy.toml with it: what the labels may be asked")
    policy, labels = _file(args.policy, "--policy"), _file(args.labels, "--labels")
    ledger = None if args.ledger is None else _plain(Path(args.ledger).resolve(), "--ledger")
    node = read_node(policy, labels, ledger)
    words = [f'config="{policy}"', f'labels="{labels}"', *([f'ledger="{ledger}"'] if ledger else []), *signs]
    return Chosen(node, " ".join(words), link_of(args, node, key))


def link_of(args: argparse.Namespace, node: NodeFile | None, key: Path | None) -> SuperLink:
    """Where a node connects: `--superlink` with its certificates and `key`, or its own file. Raises NodeFileError."""
    if args.superlink is None:
        if args.certs is not None or key is not None:
            raise NodeFileError("--certs, --key: expected --superlink with them: else [superlink] has its own")
        if node is None:
            raise NodeFileError("--part: expected --superlink HOST:PORT with it")
        if node.superlink is None:
            raise NodeFileError(f"{node.path}: expected a table [superlink] with the address, or --superlink HOST:PORT")
        return node.superlink
    host = args.superlink.rpartition(":")[0].strip("[]")
    certs = None if args.certs is None else _file(args.certs, "--certs")
    if certs is None and host not in LOOPBACK:
        raise NodeFileError(f"--superlink {args.superlink}: expected --certs ca.crt with a server of another machine")
    if certs is None and key is not None:
        raise NodeFileError("--key: expected --certs with it: a key proves nothing without encryption")
    return SuperLink(args.superlink, insecure=certs is None, root_certificates=certs, key=key)


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    try:
        of = count(parts)
    except argparse.ArgumentTypeError:
        of = 0
    if not part.isdecimal() or not int(part) < of:
        raise NodeFileError(f"--part: expected I/K with 0 <= I < K, such as 0/4, got {text!r}")
    return int(part), of


def _file(text: str, flag: str) -> Path:
    path = Path(text).resolve()
    if not path.is_file():
        raise NodeFileError(f"{flag}: expected a file, found none at {path}")
    return _plain(path, flag)


def _plain(path: Path, flag: str) -> Path:
    if '"' in str(path):  # Flower's own syntax has no way to write it
        raise NodeFileError(f"{flag}: expected a path without quotation marks, got {path}")
    return path
