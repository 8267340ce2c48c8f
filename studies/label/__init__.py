"""`halftruth label`: a person answers comparisons in a page on their own machine, and releases them to a node."""

import argparse
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol.strict import StudyError

if TYPE_CHECKING:  # a command's --help need not wait for numpy
    from client.node_file import NodeFile, SuperLink
    from studies.label.session import Session

PORT = 8471
EXAMPLES = """\
examples:
  halftruth label --pairs pairs.csv --policy policy.toml                         answer, and release when ready
  halftruth label --pairs pairs.csv --policy policy.toml --federation            join halftruth up on this machine
  halftruth label --pairs pairs.csv --policy policy.toml --superlink example.org:8443 --certs ca.crt --key node.key
  halftruth label --config node-1/node.toml --out mine                           a folder of halftruth data split

pairs.csv is a file of comparisons in which nobody has answered yet: its winner is empty, or there is no such column.

  labeler,item_a,item_b
  p1,tea,coffee
  p1,tea,water

policy.toml is what halftruth node takes: what a server may ask, and at which price.

  [policy]
  trust = ["local"]             # answers are randomised before they leave
  label_cap = 2                 # epsilon in total, for one answer
  max_epsilon = 1               # in one question

The page is on this machine alone, and its address has a password. Arrow keys choose, = says about equal, S skips,
Backspace takes back. Answers are in --out, for your user only: close the page, or this program, and go on later; new
pairs may have come. Nothing leaves before you release. Then answers are frozen, this starts your node, which randomises
what it is asked for, and ends it with Ctrl-C; halftruth node --config OUT/node.toml starts it without the page. Pairs
without an answer are left out, which a server sees: it asks with --mode live. docs/LABELING.md says more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `halftruth label`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--pairs", metavar="FILE", help="the pairs, with --policy")
    what.add_argument("--config", metavar="FILE", help="a node file whose labels are the pairs, in place of both")
    parser.add_argument(
        "--policy", metavar="FILE", help="what the answers may be asked: [policy] of a node file (TOML)"
    )
    parser.add_argument("--out", metavar="DIR", help="where answers are kept (PAIRS.answers)")
    parser.add_argument("--as", metavar="NAME", dest="labeler", help="whose pairs, where the file has several labelers")
    parser.add_argument("--texts", metavar="FILE", help="whole texts of items, to be shown: columns text, and item")
    parser.add_argument("--port", metavar="N", type=int, default=PORT, help=f"port of the page ({PORT}; 0: any free)")
    group = parser.add_argument_group("the federation that is joined after a release ([superlink] of the file)")
    group.add_argument(
        "--federation", metavar="DIR", nargs="?", const="", help="the one that runs on this machine, by its --state"
    )
    group.add_argument("--superlink", metavar="HOST:PORT", help="where its server is")
    group.add_argument("--certs", metavar="FILE", help="the CA's certificate, ca.crt, which the server's has to be of")
    group.add_argument("--key", metavar="FILE", help="the node's private key, of halftruth keys new")


def main(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C: exit code 0. StudyError is wrong use, or files that do not read."""
    from client.answers import AnswersUnusable, held
    from client.node_file import NodeFileError
    from client.sources.reading import SourceError
    from studies.label.serve import serve
    from studies.terminal import printable

    if not 0 <= args.port <= 65535:
        raise StudyError(f"--port: expected 0 to 65535, got {args.port}")
    try:
        with held(own_folder(read_files(args)[2])):
            session = opened(args)
            try:
                serve(session, args.port)
            finally:
                session.joined.end()
    except (AnswersUnusable, NodeFileError, SourceError) as error:
        raise StudyError(printable(str(error))) from None
    return 0


def opened(args: argparse.Namespace) -> "Session":
    """The session that the flags say; what was released before is in its folder, and its node started.

    Raises StudyError, NodeFileError, SourceError, AnswersUnusable, FlowerFailed.
    """
    from client.answers import FILE, Answers
    from client.table_file import TableFile
    from studies.label.joining import Joined
    from studies.label.pairs import read_pairs
    from studies.label.session import Session

    node, content, folder = read_files(args)
    assert isinstance(node.source, TableFile)
    pairs = read_pairs(node.source, args.labeler, None if args.texts is None else Path(args.texts))
    joined = Joined(folder, link_of(args, node))
    own_folder(folder)
    return Session(folder, pairs, Answers(folder / FILE, pairs.labeler), node, content, joined)


def own_folder(folder: Path) -> Path:
    """The folder of answers, made where it is not there. Raises StudyError where others can put files into it."""
    from protocol import strict

    made = strict.make_folder(folder, "--out", 0o700)
    if os.name == "posix" and made.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StudyError(
            f"--out: expected a folder that only you write to, got {made}: others could give your node another policy; "
            "chmod go-w"
        )
    return made


def read_files(args: argparse.Namespace) -> "tuple[NodeFile, dict[str, Any], Path]":
    """The node file or policy, its content, and the folder of answers. Raises StudyError, NodeFileError."""
    import tomllib
    from dataclasses import replace
    from decimal import Decimal

    from client.node_file import read_node
    from client.table_file import TableFile
    from studies.label.release import LEDGER

    if (args.policy is None) != (args.pairs is None):
        raise StudyError("--pairs, --policy: expected both, or --config")
    path = Path(args.config or args.policy)
    node = read_node(path, None if args.pairs is None else Path(args.pairs))
    if not isinstance(node.source, TableFile):
        raise StudyError(f'{path}: expected [source] kind = "table" with the pairs to answer, got another')
    if not node.source.file.is_file():
        raise StudyError(f"{node.source.file}: expected a file of pairs, found none")
    content = tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
    folder = Path(args.out).resolve() if args.out else node.source.file.with_name(f"{node.source.file.name}.answers")
    if "ledger" not in content.get("node", {}):
        node = replace(node, ledger=folder / LEDGER)
    return node, content, folder.resolve()


def link_of(args: argparse.Namespace, node: "NodeFile") -> "SuperLink | None":
    """Where the node connects, as the flags say; None leaves it to its file. Raises StudyError, FlowerFailed."""
    from client.node_file import SuperLink
    from studies.flower.node_flags import link_of as link_of_flags

    if args.federation is None:
        given = (args.superlink, args.certs, args.key) != (None, None, None)
        key = None if args.key is None else Path(args.key).resolve()
        return link_of_flags(args, node, key) if given else None
    from deploy.look import running
    from studies.flower.state_flag import state_of

    if args.superlink is not None or args.certs is not None:
        raise StudyError("--federation: knows where its server is: leave --superlink and --certs out")
    record = running(state_of(args.federation or None))
    if record.plan.keys and args.key is None:
        raise StudyError(
            "--key: expected the node's key with a federation that knows its nodes by keys: halftruth keys new, then "
            "halftruth keys register"
        )
    key = Path(args.key).resolve() if args.key else None
    return SuperLink(record.address, record.authority is None, record.authority, key)
