"""`halftruth data split`: a file becomes the files of several nodes, each with the whole of its labelers."""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.sources.ranking_columns import RankingColumns
from client.sources.ranking_labels import RankingAs
from client.sources.record_table import RecordTable
from client.sources.table import Table
from protocol import strict
from protocol.counting import counted
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.data.split_flags import add_arguments, check_kind
from studies.data.split_members import TOLD, check_members, write_members
from studies.data.split_nodes import TOLD_SHUFFLED, node_toml, write_node
from studies.data.split_policy import cap_of, policy_of, spending
from studies.federate.facts import Terms, facts_of
from studies.federate.folder import write_facts
from studies.fit.claim import read_unit
from studies.fit.ranking import check_asked
from studies.holder_file import read_file, tell, wanted
from studies.split_records import split_records

__all__ = ("add_arguments", "main", "split")

NODE, SERVER = "node-{}", "server"


def main(args: argparse.Namespace) -> int:
    """Run `halftruth data split`: exit code 0 done; StudyError is wrong use or a file that does not read."""
    out, trust = strict.folder(Path(args.out), "--out"), Trust.parse(args.trust)
    if out.exists() and any(out.iterdir()):
        raise StudyError(f"--out: expected a new or empty folder, got {out}")
    check_kind(args)
    if args.records:
        return split_records(args, split, cap_of)
    unit = read_unit(args, trust)
    table = read_file(args)
    terms = Terms(trust, *unit, args.ties_public, _asked(args, table, trust, unit[0]))
    policy = policy_of(args, terms)
    if not 1 <= args.nodes <= len(table.labelers):
        raise StudyError(f"--nodes: expected 1..{len(table.labelers)}, the number of labelers, got {args.nodes}")
    check_members(trust, args.nodes)
    tell(table, wanted(args))
    facts = facts_of(table, terms, args.nodes)
    node = node_toml(policy, args.public_data, table.features is not None, terms, bool(table.answers))
    strict.make_folder(out, "--out")
    folders = [out / NODE.format(index) for index in range(args.nodes)]
    for folder, rows in zip(folders, split(table, args.nodes), strict=True):
        write_node(folder, table, rows, node, terms.asked)
        print(f"{folder}: {counted(len(rows), 'row')}")
    if trust is Trust.DISTRIBUTED:
        write_members(folders)
        print(TOLD)
    if trust is Trust.SHUFFLED:
        print(TOLD_SHUFFLED)
    write_facts(out / SERVER, facts)
    print(f"{out / SERVER}: public facts about {counted(len(table.pairs), 'row')}")
    print(spending(args, terms))
    return 0


def split(table: Table | RecordTable, nodes: int) -> list[NDArray[np.int64]]:
    """Positions of the rows of each node, increasing: labelers with most rows first, each to the node with fewest.

    A labeler lives on one node: on two, one label would be answered for, and paid, twice.
    """
    rows = np.bincount(table.owners, minlength=len(table.labelers))
    load, home = [0] * nodes, np.zeros(len(table.labelers), dtype=np.int64)
    for labeler in np.argsort(-rows, kind="stable").tolist():
        node = load.index(min(load))
        home[labeler] = node
        load[node] += int(rows[labeler])
    return [np.flatnonzero(home[table.owners] == node) for node in range(nodes)]


def _asked(args: argparse.Namespace, table: Table, trust: Trust, unit: Unit) -> RankingAs | None:
    """What each ranking answers; None for comparisons. Raises StudyError where that cannot be protected."""
    if not isinstance(table.columns, RankingColumns):
        return None
    asked = RankingAs.parse(args.ranking_as or "top")
    check_asked(asked, trust, unit, table)
    return asked
