"""What `halftruth data split` writes for a node: its rows, the public items, and a node file with its policy."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.sources.outcomes import MISSING, WRITTEN
from client.sources.ranking_labels import RankingAs
from client.sources.table import Table
from protocol.trust import Trust
from studies.data.split_members import NODE_LINE
from studies.federate.facts import Terms
from studies.federate.folder import FEATURES, ITEMS, open_private, write_csv, write_items
from studies.split_rankings import HEADER as RANKING_HEADER
from studies.split_rankings import RANKINGS as RANKINGS_FILE
from studies.split_rankings import SOURCE as RANKING_COLUMNS
from studies.split_rankings import ranking_lines

PROMPT = "prompt"  # its column, where items are answers to prompts
LOCAL = Terms(Trust.LOCAL)
VOTES, NODE_FILE = "votes.csv", "node.toml"
HEADER = ("row", "labeler", "item_a", "item_b", "winner", "question")
COLUMNS = """\
row = "row"
labeler = "labeler"
item_a = "item_a"
item_b = "item_b"
winner = "winner"
coding = "sides"
questions = ["question"]
"""
SHUFFLED_KEY = '# key = "node.key"              # the node\'s own, of halftruth keys new node.key\n'
NODE_KEYS = {Trust.DISTRIBUTED: NODE_LINE, Trust.SHUFFLED: SHUFFLED_KEY}
SHUFFLER = """
# [shuffler]                    # where answers go, and who opens them
# address = "shuffler.example.org:9443"
# root_certificates = "shuffler-ca.crt"
# server_key = "sealing.key.pub"
"""
TOLD_SHUFFLED = """\
Before it answers, each node needs a key of its own (halftruth keys new node.key), and where the shuffler is: the last
lines of its node.toml, and docs/SHUFFLING.md."""


def node_toml(policy: str, public: bool, described: bool, terms: Terms = LOCAL, prompts: bool = False) -> str:
    """A node file for the files beside it, with these lines of a policy."""
    asked = terms.asked
    features = f"features = {json.dumps(FEATURES)}\n" if described else ""
    features += f"prompt = {json.dumps(PROMPT)}\n" if prompts else ""
    file = VOTES if asked is None else RANKINGS_FILE
    columns = COLUMNS if asked is None else f"ranking_as = {json.dumps(str(asked))}\n{RANKING_COLUMNS}"
    return f"""\
[node]
entropy = "os"
ledger = "ledger.sqlite"        # what was spent, and what was answered: keep it
{NODE_KEYS.get(terms.trust, "")}
[source]
kind = "table"
file = {json.dumps(file)}
items = {json.dumps(ITEMS)}
{features}{columns}public = {json.dumps(public)}

[policy]
{policy}
# [superlink]                   # where the server is
# address = "halftruth.example.org:8443"
# root_certificates = "ca.crt"
# key = "node.key"
{SHUFFLER if terms.trust is Trust.SHUFFLED else ""}"""


def write_node(folder: Path, table: Table, rows: NDArray[np.int64], node: str, asked: RankingAs | None) -> None:
    """Write a node's folder, for its owner alone: rows of a table by position, public items, a node file."""
    folder.mkdir(mode=0o700, parents=True)
    if asked is None:
        write_csv(folder / VOTES, (*HEADER, *((PROMPT,) if table.answers else ())), _votes(table, rows))
    else:
        own = set(rows.tolist())
        lines = (line for start, lines in ranking_lines(table, asked) if start in own for line in lines)
        write_csv(folder / RANKINGS_FILE, RANKING_HEADER, lines)
    write_items(folder, table.items, table.feature_names, table.features)
    with open_private(folder / NODE_FILE) as file:
        file.write(node)


def _votes(table: Table, rows: NDArray[np.int64]) -> Iterator[tuple[object, ...]]:
    """The lines of a node's comparisons."""
    values, missing = table.values.reveal(), table.missing.reveal()
    for place in rows.tolist():
        items = [table.items[item] for item in table.pairs[place].tolist()]
        (a, *prompt), (b, *_) = (table.answers.get(item, (item,)) for item in items)
        winner = WRITTEN[MISSING if missing[place] else int(values[place])]
        row, labeler = int(table.rows_held[place]), table.labelers[table.owners[place]]
        yield row, labeler, a, b, winner, table.questions[place], *prompt
